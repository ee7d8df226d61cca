"""Parked forks in the image: the scenes of coppice_kernel's own tests, the probes of branching.md 5, and
what needs numpy, a memory limit or a limit of processes."""

import pytest

from coppice_kernel.tests.ground import Ground
from coppice_kernel.tests.park_hazards import *  # noqa: F403
from coppice_kernel.tests.park_kills import *  # noqa: F403
from coppice_kernel.tests.park_scenes import *  # noqa: F403
from probes import EXACT, OUTSIDE, SEPARATE, SIBLINGS


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

TABLE = {}


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
    code, change, _, _ = OUTSIDE["P19 working files"]
    park = ground.park(client, code)
    ground.run(client, change)
    assert ground.revive(park).told["folder"] != park["folder"]
    TABLE["P19 working files"] = "declared: the folder differs"


DECLARED = {
    "P20 sqlite handle": ("db", "database"),
    "P23 socket": ("s", "socket"),
}
REFUSED_PROBES = {
    "P21 user thread": "thread 'mine'",
    "P22 subprocess": "is a child of it",
}


@pytest.mark.parametrize("case", DECLARED)
def test_probe_declared(ground, case):
    wanted = DECLARED[case]
    park = ground.park(ground.start(), OUTSIDE[case][0])
    second = ground.revive(park)
    assert wanted in ground.lost(second)
    if case.startswith("P20"):
        assert second.run("print(db.execute('select 6 * 7').fetchone())") == "(42,)\n"
    reason = next(loss["reason"] for loss in second.told["lost"] if loss["name"] == wanted[0])
    TABLE[case] = f"declared: {reason}"


@pytest.mark.parametrize("case", REFUSED_PROBES)
def test_probe_refused(ground, case):
    reason = ground.refusal(ground.start(), OUTSIDE[case][0])
    assert REFUSED_PROBES[case] in reason
    TABLE[case] = f"refused: {reason}"


def test_probe_siblings(ground):
    case, code, ask = SIBLINGS
    park = ground.park(ground.start(), code)
    drawn = {answers(ground.revive(park), case, ask) for _ in range(3)}
    assert len(drawn) == 3
    TABLE[case] = "exact: they differ"


def test_the_table_is_whole(capsys):
    numbers = sorted(int(case.split()[0][1:]) for case in TABLE)
    with capsys.disabled():
        print()
        for case in sorted(TABLE, key=lambda c: int(c.split()[0][1:])):
            print(f"  {case:32} {TABLE[case]}")
    assert numbers == list(range(1, 26))


# ---- what needs the image's libraries and limits ----


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
    """In a row, each going on from the one before: descriptors, processes and memory do not grow."""
    client = ground.start()
    park = ground.park(
        client,
        COUNT % (ground.supervisor, ground.supervisor) + "depth = 0\n"  # noqa: F405
        "def rss(): return int(open('/proc/self/statm').read().split()[1]) * 4096 >> 20",
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
    print(f"resident MB of the kernel: {sizes[::10]}")
    assert sizes[-1] - sizes[2] < 60, sizes
