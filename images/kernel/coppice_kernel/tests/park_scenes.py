"""Parking and reviving real kernels. Each scene takes `ground` (ground.Ground): outside a container
(test_park.py), and in the image (images/kernel/smoke/test_park.py). More of them: park_hazards.py,
park_kills.py."""

import time

NAMES = """
import time
from coppice_kernel import process
time.sleep(0.02)
def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as f: return f.read().strip()
    except OSError: return ""
print(*sorted(n for n in map(name_of, process.descendants([%d])) if n))
"""


STATE = """
import os, random, contextvars, decimal, warnings
x = 1
f = lambda: x + 1
def g(): return f() * 10
items = [1, 2, 3]; alias = items
ring = {}; ring["me"] = ring
def count():
    n = 0
    while True:
        yield n
        n += 1
walk = count(); next(walk); next(walk)
with open("numbers.txt", "w") as out: out.write("0123456789" * 10)
numbers = open("numbers.txt", "rb", buffering=0); numbers.read(7)
random.seed(42); random.random()
_hidden = "h"
os.environ["COLOUR"] = "green"
os.makedirs("sub", exist_ok=True); os.chdir("sub")
decimal.getcontext().prec = 7
warnings.simplefilter("error", ImportWarning)
"""

# What the park must still have after all of it was changed.
TELL = """
print(x, f(), g(), alias is items, ring["me"] is ring, next(walk), numbers.read(3), numbers.tell(),
      random.random(), _hidden, os.environ["COLOUR"], os.path.basename(os.getcwd()),
      decimal.getcontext().prec, [w[0] for w in warnings.filters][0], sep="|")
"""

CHANGE = """
x = 100; f = None; alias = []; ring = None; walk = None
numbers.seek(50)
random.seed(1); _hidden = 0; os.environ["COLOUR"] = "red"; os.chdir("/"); decimal.getcontext().prec = 28
warnings.resetwarnings()
"""

WANTED = "1|2|20|True|True|2|b'789'|10|0.025010755222666936|h|green|sub|7|error\n"


def test_all_is_as_it_was(ground):
    first = ground.start()
    park = ground.park(first, STATE)
    ground.run(first, CHANGE)
    second = ground.revive(park)
    assert second.run(TELL) == WANTED
    assert first.run("print(x, random.randrange(100))") == "100 17\n"
    # Its own line is killed while the park and the second live.
    assert ground.kill(first)["signal"] == 9
    third = ground.revive(park)
    assert third.run(TELL) == WANTED
    assert second.run("print(next(walk), numbers.tell())") == "3 10\n"


def test_counts_and_outputs_go_on(ground):
    first = ground.start()
    first.run("a = 5")
    park = ground.park(first, "a + 1")
    ground.run(first, "a = 6")
    second = ground.revive(park)
    reply, seen = second.execute("print(Out[2], In[1], len(In)); a")
    assert reply["execution_count"] == 3 == park["execution_count"]
    assert [m["content"].get("text") or m["content"]["data"]["text/plain"] for m in seen[1:]] == [
        "6 a = 5 4\n",
        "5",
    ]


def test_a_revived_kernel_is_parked_again(ground):
    client = ground.start()
    park = ground.park(client, "depth = 0; import os; pids = {os.getpid()}")
    for n in range(1, 4):
        client = ground.revive(park)
        park = ground.park(client, "depth += 1; pids.add(os.getpid()); depth")
        assert client.run("print(depth, len(pids))") == f"{n} {n + 1}\n"


def test_streams_are_the_same_objects(ground):
    first = ground.start()
    park = ground.park(
        first,
        "import sys, logging\nout, err = sys.stdout, sys.stderr\n"
        "log = logging.getLogger('mine'); log.addHandler(logging.StreamHandler(sys.stdout))",
    )
    second = ground.revive(park)
    assert second.run("print(out is sys.stdout, err is sys.stderr); log.warning('w')") == "True True\nw\n"
    # And what is written to the descriptors is captured.
    assert second.run("import os; os.system('echo from below'); import time; time.sleep(0.3)") == (
        "from below\n"
    )
    assert first.run("print('still')") == "still\n"


def test_an_interrupt_and_input_reach_it(ground):
    park = ground.park(ground.start(), "x = 1")
    second = ground.revive(park)
    msg_id = second.send("shell", "execute_request", {"code": "print('in'); import time; time.sleep(99)"})
    while second.receive("iopub")["header"]["msg_type"] != "stream":
        pass
    ground.gateway.send("signal", line=second.line, signal=2)
    assert ground.gateway.expect("signalled", line=second.line)["ok"]
    assert second.finish(msg_id)[0]["ename"] == "KeyboardInterrupt"
    msg_id = second.send("shell", "execute_request", {"code": "y = input()", "allow_stdin": True})
    asked = second.receive("stdin")
    second.send("stdin", "input_reply", {"value": "typed"}, asked["header"])
    assert second.finish(msg_id)[0]["status"] == "ok"
    assert second.run("print(y)") == "typed\n"


def test_replay_hands_out_what_the_revived_kernel_sent(ground):
    first = ground.start()
    first.run("print('of the first')")
    second = ground.revive(ground.park(first, "x = 1"))
    second.run("print('of the second')")
    messages, dropped = ground.gateway.replay(second.line, iopub="")
    texts = [m["content"]["text"] for m in messages if m["header"]["msg_type"] == "stream"]
    assert texts == ["of the second\n"] and dropped == 0


def test_parks_outlive_the_kernel_and_are_released(ground):
    client = ground.start()
    park = ground.park(client, "x = 7")
    client.send("shell", "execute_request", {"code": "import os; os._exit(3)"})
    assert ground.gateway.expect("exited", line=client.line)["code"] == 3
    second = ground.revive(park)
    assert second.run("print(x)") == "7\n"
    ground.gateway.send("release", park=park["park"])
    assert ground.gateway.expect("unparked", park=park["park"])["reason"] == "released"
    assert second.run("print(x + 1)") == "8\n"
    ground.gateway.send("release", park=park["park"])
    assert "no such park" in ground.gateway.expect("unparked", park=park["park"])["reason"]
    ground.gateway.revive(ground.line + 1, park["park"], wait=False)
    assert "no park" in ground.gateway.expect("start_failed", line=ground.line + 1)["reason"]
    ground.line += 1


def test_a_gateway_that_comes_back_is_told_of_parks(ground):
    client = ground.start()
    park = ground.park(client, "x = 1")
    ground.gateway.hang_up()
    hello = ground.gateway.accept(reports=True, parks_max=16)
    assert hello["parks"] is True
    told = ground.gateway.expect("parked", park=park["park"])
    assert told["data"] == park["data"] and told["msg_id"] == park["msg_id"]
    ground.gateway.hang_up()
    ground.gateway.accept(reports=True)  # an older one: it has no use for them
    ground.gateway.hang_up()
    ground.gateway.accept(reports=True, parks_max=16)
    ground.gateway.send("release", park=park["park"])
    assert "no such park" in ground.gateway.expect("unparked")["reason"]


def test_nothing_is_parked_for_a_gateway_that_does_not_ask(ground):
    ground.gateway.hang_up()
    ground.gateway.accept(reports=True)
    client = ground.start()
    client.run("x = 1")
    ground.gateway.expect("report")
    time.sleep(0.4)  # nothing is to happen: a machine that is slow does not make this fail
    assert "parked" not in client.run(NAMES % ground.supervisor)
    ground.gateway.hang_up()
    ground.gateway.accept(reports=True, parks_max=16)
    assert ground.park(client, "y = 2")["digest"]


COUNT = NAMES + """
import os
def count():
    # Pauses are parked too; how many of them there are is a matter of time.
    names = [name_of(p) for p in process.descendants([%d])]
    return len(os.listdir("/proc/self/fd")), len([n for n in names if n != "parked"])
"""


def assert_level(counts):
    """What leaks one each round is found; a connection that is being made counts one now and then."""
    half = len(counts) // 2
    for earlier, later in zip(zip(*counts[:half]), zip(*counts[half:])):
        assert max(later) <= max(earlier) + 2, counts


def test_nothing_grows(ground, rounds=20):
    """The same park again and again."""
    client = ground.start()
    park = ground.park(client, COUNT % (ground.supervisor, ground.supervisor))
    counts = []
    for _ in range(rounds):
        second = ground.revive(park)
        counts.append(tuple(map(int, second.run("print(*count())").split())))
        ground.kill(second)
    assert_level(counts)


def test_a_chain_does_not_grow(ground, rounds=20):
    """Going back and on, one step each time, the line left behind and its park are given up."""
    client = ground.start()
    park = ground.park(client, COUNT % (ground.supervisor, ground.supervisor) + "depth = 0")
    counts = []
    for n in range(rounds):
        after = ground.revive(park)
        ground.kill(client)
        ground.gateway.send("release", park=park["park"])
        ground.gateway.expect("unparked", park=park["park"])
        client, park = after, ground.park(after, f"depth += 1; assert depth == {n} + 1")
        counts.append(tuple(map(int, client.run("print(*count())").split())))
    assert_level(counts)
