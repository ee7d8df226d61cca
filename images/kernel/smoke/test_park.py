"""Parked forks in the image: the scenes of coppice_kernel's own tests, the probes of branching.md 5, and
what needs numpy, a memory limit or a limit of processes."""

import pytest

from coppice_kernel.tests.ground import Ground
from coppice_kernel.tests.park_hazards import *  # noqa: F403
from coppice_kernel.tests.park_kills import *  # noqa: F403
from coppice_kernel.tests.park_scenes import *  # noqa: F403


def ground_of(place, parks_max=16):
    place.gateway.hang_up()
    hello = place.gateway.accept(reports=True, parks_max=parks_max)
    found = Ground(place.gateway, hello["pid"])
    found.line = place.line
    return found


@pytest.fixture
def ground(shared):
    found = ground_of(shared)
    yield found
    found.end_lines()
    shared.line = found.line
    shared.gateway.hang_up()
    shared.gateway.accept()  # wants no parks: they go
    shared.gateway.seen.clear()


# ---- the 25 probes ----

# name: (before the park, what changes it, what is asked afterwards, what must be answered)
EXACT = {
    "P1 values": ("v = {'a': [1, 2.5, 'ä']}", "v = 0", "v", "{'a': [1, 2.5, 'ä']}"),
    "P2 identity": ("one = [1]; two = one", "two = [1]", "one is two", "True"),
    "P3 view shares its base": (
        "import numpy as np; base = np.zeros(9); view = base[2:5]",
        "view = view.copy()",
        "(view.__setitem__(0, 7), base[2], np.shares_memory(base, view))[1:]",
        "(np.float64(7.0), True)",
    ),
    "P4 function sees live globals": (
        "k = 1\ndef by_def(): return k\nby_lambda = lambda: k",
        "k = 9; by_def = by_lambda = None",
        "(exec('k = 5', globals()), by_def(), by_lambda())[1:]",
        "(5, 5)",
    ),
    "P5 recursion and cycles": (
        "rec = []; rec.append(rec)\nclass Node: pass\nnode = Node(); node.self = node; Node.first = node",
        "rec = Node = node = None",
        "(rec[0] is rec, node.self is node, Node.first is node, isinstance(node, Node))",
        "(True, True, True, True)",
    ),
    "P6 generator": ("gen = (i * i for i in range(9)); next(gen); next(gen)", "list(gen)", "next(gen)", "4"),
    "P7 file offset and content": (
        "open('t.txt', 'w').write('line 1\\nline 2\\nline 3\\n'); tf = open('t.txt'); tf.readline()",
        "tf.read()",
        "(tf.readline(), tf.read())",
        "('line 2\\n', 'line 3\\n')",
    ),
    "P8 random": (
        "import random; random.seed(7); random.random()",
        "random.seed(0)",
        "random.random()",
        "0.15084917392450192",
    ),
    "P9 numpy's generator": (
        "np.random.seed(7); np.random.rand(); rng = np.random.default_rng(7); rng.random()",
        "np.random.seed(0); rng = None",
        "(float(np.random.rand()), float(rng.random()))",
        "(0.7799187922401146, 0.8972138009695755)",
    ),
    "P10 deleted name": ("dead = 1; del dead", "dead = 2", "'dead' in globals()", "False"),
    "P11 hidden name": ("_hidden = 3", "del _hidden", "_hidden", "3"),
    "P12 environment": ("import os; os.environ['C'] = 'x'", "del os.environ['C']", "os.environ['C']", "'x'"),
    "P13 folder and sys.path": (
        "import sys; os.makedirs('deep', exist_ok=True); os.chdir('deep'); sys.path.append('/nowhere')",
        "os.chdir('/'); sys.path.remove('/nowhere')",
        "(os.getcwd(), sys.path[-1])",
        "('/work/deep', '/nowhere')",
    ),
    "P14 Out": ("41 + 1", "Out.clear()", "list(Out.values())[-1]", "42"),
    "P15 In": ("'the cell'", "In.clear()", "In[-2]", "\"'the cell'\""),
    "P16 execution count": ("pass", "pass", "get_ipython().execution_count", "2"),
    "P17 warnings filter": (
        "import warnings; warnings.simplefilter('error', UnicodeWarning)",
        "warnings.resetwarnings()",
        "(warnings.filters[0][0], warnings.filters[0][2].__name__)",
        "('error', 'UnicodeWarning')",
    ),
    "P18 open figures": (
        "import matplotlib.pyplot as plt; plt.ioff(); fig = plt.figure(); plt.plot([1, 2])\n"
        "from matplotlib_inline.config import InlineBackend\nInlineBackend.instance().close_figures = False",
        "plt.close('all')",
        "(len(plt.get_fignums()), len(fig.axes))",
        "(1, 1)",
    ),
    "P24 unflushed writer": (
        "w = open('/tmp/w.txt', 'w'); w.write('unwritten ')",
        "w.close(); open('/tmp/w.txt', 'w').close()",
        "(w.write('on'), w.flush(), open('/tmp/w.txt').read())[-1]",
        "'unwritten on'",
    ),
}
SEPARATE = ("P14 Out", "P15 In", "P16 execution count")  # each in a state of its own
TABLE = {}
GROWTH_KB = 500  # a step of a hundred; 365 were measured


def answers(client, case, ask):
    reply, seen = client.execute(f"print(repr({ask}))")
    assert reply["status"] == "ok", (case, reply)
    return "".join(m["content"]["text"] for m in seen if m["header"]["msg_type"] == "stream").rstrip("\n")


def test_probes_in_one_state(ground):
    """Those that can be parked in one state pass there together."""
    client = ground.start()
    cases = {c: p for c, p in EXACT.items() if c not in SEPARATE}
    for code, *_ in cases.values():
        ground.run(client, code)
    park = ground.park(client, "pass")
    for _, change, _, _ in cases.values():
        ground.run(client, change)
    second = ground.revive(park)
    assert [loss["name"] for loss in second.told["lost"]] == ["/tmp/w.txt"]  # P24: written to since
    for case, (_, _, ask, wanted) in cases.items():
        found = answers(second, case, ask)
        TABLE[case] = "exact" if found == wanted else f"WRONG: {found} instead of {wanted}"
    wrong = {c: v for c, v in TABLE.items() if v.startswith("WRONG")}
    assert not wrong


@pytest.mark.parametrize("case", SEPARATE)
def test_probe_in_its_own_state(ground, case):
    code, change, ask, wanted = EXACT[case]
    client = ground.start()
    park = ground.park(client, code)
    ground.run(client, change)
    found = answers(ground.revive(park), case, ask)
    assert found == wanted
    TABLE[case] = "exact"


def test_probe_working_files(ground):
    client = ground.start()
    park = ground.park(client, "open('f', 'w').write('1'); None")
    ground.run(client, "open('f', 'w').write('2'); None")
    assert ground.revive(park).told["folder"] != park["folder"]
    TABLE["P19 working files"] = "declared: the folder differs"


DECLARED = {
    "P20 sqlite handle": ("import sqlite3; db = sqlite3.connect('x.db')", ("db", "database")),
    "P23 socket": ("import socket; s, t = socket.socketpair()", ("s", "socket")),
}
REFUSED_PROBES = {
    "P21 user thread": (
        "import threading; e = threading.Event(); threading.Thread(target=e.wait, name='mine').start()",
        "thread 'mine'",
    ),
    "P22 subprocess": ("import subprocess; p = subprocess.Popen(['sleep', '99'])", "is a child of it"),
}


@pytest.mark.parametrize("case", DECLARED)
def test_probe_declared(ground, case):
    code, wanted = DECLARED[case]
    park = ground.park(ground.start(), code)
    second = ground.revive(park)
    assert wanted in ground.lost(second)
    if case.startswith("P20"):
        assert second.run("print(db.execute('select 6 * 7').fetchone())") == "(42,)\n"
    reason = next(loss["reason"] for loss in second.told["lost"] if loss["name"] == wanted[0])
    TABLE[case] = f"declared: {reason}"


@pytest.mark.parametrize("case", REFUSED_PROBES)
def test_probe_refused(ground, case):
    code, wanted = REFUSED_PROBES[case]
    reason = ground.refusal(ground.start(), code)
    assert wanted in reason
    TABLE[case] = f"refused: {reason}"


def test_probe_siblings(ground):
    park = ground.park(ground.start(), "import uuid, secrets")
    drawn = {ground.revive(park).run("print(uuid.uuid4(), secrets.token_hex(8))") for _ in range(3)}
    assert len(drawn) == 3
    TABLE["P25 siblings"] = "exact: they differ"


def test_the_table_is_whole(capsys):
    numbers = sorted(int(case.split()[0][1:]) for case in TABLE)
    with capsys.disabled():
        print()
        for case in sorted(TABLE, key=lambda c: int(c.split()[0][1:])):
            print(f"  {case:32} {TABLE[case]}")
    assert numbers == list(range(1, 26))


# ---- what needs the image's libraries and limits ----


def test_a_gpu_is_refused(make_place):
    """A4. There is no card here: what is looked at is the name of a device that is open, and this one has
    it, though another stands behind it."""
    ground = ground_of(make_place(devices={"/dev/nvidia0": "/dev/zero"}))
    client = ground.start()
    assert "/dev/nvidia0" in ground.refusal(client, "f = open('/dev/nvidia0', 'rb', buffering=0)")
    assert ground.park(client, "f.close()")["digest"]


def test_openmp_threads_are_refused(make_place):
    """A2: libgomp's threads live after the first parallel region."""
    ground = ground_of(make_place())
    client = ground.start(env={"OMP_NUM_THREADS": "3"}, fresh=True)
    reason = ground.refusal(
        client,
        "import numpy as np\nfrom sklearn.ensemble import HistGradientBoostingRegressor as H\n"
        "x = np.random.rand(500, 3); H(max_iter=3).fit(x, x[:, 0]); None",
    )
    assert "OpenMP" in reason


def test_single_threaded_libraries_are_parked(ground):
    client = ground.start()
    park = ground.park(
        client,
        "import numpy as np, pandas as pd\nfrom sklearn.linear_model import LinearRegression\n"
        "x = np.random.rand(300, 3); m = LinearRegression().fit(x, x @ [1, 2, 3]); d = pd.DataFrame(x)\n"
        "import numpy.linalg; _ = numpy.linalg.inv(np.random.rand(300, 300))",
    )
    second = ground.revive(park)
    assert second.run("print(m.coef_.round(3).tolist(), d.shape, numpy.linalg.inv(x.T @ x).shape)") == (
        "[1.0, 2.0, 3.0] (300, 3) (3, 3)\n"
    )


def test_a_progress_bar(ground):
    park = ground.park(ground.start(), "import tqdm, sys; bar = tqdm.tqdm(total=9, file=sys.stdout); bar.update(2)")
    out = ground.revive(park).run("bar.update(1); print(); print(bar.n)")
    assert out.split()[-1] == "3"


def test_parks_go_when_their_memory_is_used_up(make_place):
    """A14: what a park costs grows as its line writes on."""
    ground = ground_of(make_place(memory=600 << 20))
    client = ground.start()
    ground.run(client, "import numpy as np; a = np.ones(10 << 20)")  # 80 MB
    parks = [ground.park(client, f"a += {n}; n = {n}") for n in range(3)]
    gone = ground.gateway.expect("unparked")
    assert "memory" in gone["reason"] and gone["park"] in [p["park"] for p in parks]
    assert client.run("print(a[0])") == "4.0\n"


def test_parks_go_when_the_user_needs_the_tasks(make_place):
    ground = ground_of(make_place())
    client = ground.start()
    made = [ground.park(client, f"x = {n}")["park"] for n in range(3)]
    ground.run(client, "import threading, time\ne = threading.Event()\n"
                       "t = [threading.Thread(target=e.wait) for _ in range(110)]\nfor u in t: u.start()")
    gone = {ground.gateway.expect("unparked")["park"] for _ in made}
    assert gone == set(made)
    client.run("e.set()\nfor u in t: u.join()")


def test_out_of_memory_takes_a_park_first(make_place):
    ground = ground_of(make_place(memory=400 << 20))
    client = ground.start()
    park = ground.park(client, "import os; x = 1")
    score = client.run(f"print(open('/proc/{park['pid']}/oom_score_adj').read(), open('/proc/self/oom_score_adj').read())")
    assert score.split() == ["800", "500"]


def test_with_the_supervisor_everything_ends(make_place):
    place = make_place()
    ground = ground_of(place)
    client = ground.start()
    park = ground.park(client, "import os")
    second = ground.revive(park)
    second.send("shell", "execute_request", {"code": f"os.kill({ground.supervisor}, 9)"})
    place.container.wait()
    assert not place.container.state()["Running"]


def test_100_parks_and_revives(ground):
    """In a row, each going on from the one before: descriptors and processes do not grow, no kernel of
    before is kept, and what grows is ZeroMQ's dead context of each step."""
    client = ground.start()
    park = ground.park(
        client,
        COUNT % (ground.supervisor, ground.supervisor) + "depth = 0\n"  # noqa: F405
        "import gc\ndef rss(): return int(open('/proc/self/statm').read().split()[1]) * 4\n"
        "def kernels():\n    gc.collect()\n"
        "    return sum(type(o).__name__ in ('CoppiceApp', 'CoppiceKernel') for o in gc.get_objects())",
    )
    counts, sizes = [], []
    for _ in range(100):
        after = ground.revive(park)
        ground.kill(client)
        ground.gateway.send("release", park=park["park"])
        client, park = after, ground.park(after, "depth += 1")
        counts.append(tuple(map(int, client.run("print(*count())").split())))
        sizes.append(int(client.run("print(rss())")))
    assert client.run("print(depth)") == "100\n"
    assert_level(counts)  # noqa: F405
    print(f"resident KB of the kernel: {sizes[::10]}")
    assert client.run("print(kernels())") == "4\n"  # with the first, whose excepthook threads have
    assert (sizes[-1] - sizes[20]) / 79 < GROWTH_KB, sizes
