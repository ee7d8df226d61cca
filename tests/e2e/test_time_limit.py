"""The time limit of a token's tier, in real containers: what obeys the interrupt keeps its state, what
does not is killed whole, and the state before it comes back."""

import signal
import subprocess
import time

import pytest

from gateway import BOB, TOKENS, Server, within
from test_branches import Beside
from test_going_back import parked
from test_history import executions, recorded
from test_survival import again, cut, reconnected

pytestmark = pytest.mark.timeout(600)

LIMIT_S = 3
STATE = """
import random, time
random.seed(7)
def count():
    n = 0
    while True:
        yield n
        n += 1
numbers = count()
first = [next(numbers) for _ in range(3)]
"""
LOOK = "print(next(numbers), round(random.random(), 6), first, 'changed' in globals())"
AS_BEFORE = "3 0.323833 [0, 1, 2] False\n"
# What a cell does before it runs for ever: none of it may be there afterwards.
CHANGES = "changed = 1; first.append(next(numbers)); random.random(); print('on', flush=True)\n"

STUBBORN = {
    "catches": "while True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n"
               "        print('no', flush=True)",
    "c_code": "import ctypes, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
              "libc = ctypes.CDLL(None)\nwhile True: libc.sleep(600)",
    "stops_itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    # Two of them in sessions of their own, no children of ours any more, and deaf.
    "double_forks": "import os, signal\nfor _ in range(2):\n    if os.fork() == 0:\n"
                    "        os.setsid()\n        if os.fork() == 0:\n            os.setsid()\n"
                    "            for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):\n"
                    "                signal.signal(s, signal.SIG_IGN)\n"
                    "            open('/tmp/alive', 'a').write('x')\n"
                    "            while True: pass\n"
                    "        os._exit(0)\n"
                    "while True:\n    try:\n        time.sleep(60)\n"
                    "    except KeyboardInterrupt: pass",
}


@pytest.fixture(scope="module")
def server(container_engine):
    from conftest import CONFIG

    tokens = TOKENS.replace("tier = none", "tier = standard", 1)
    server = Server("limit", "--engine", "docker", "--pool-floor", "0", "--time-limit-standard",
                    f"{LIMIT_S}s", config=CONFIG, tokens=tokens).start()
    yield server
    server.stop()


@pytest.fixture
def walk(server):
    """(kernel, client) after STATE, which is parked."""
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        assert c.run(STATE).status == "ok"
        parked(server, kernel_id, 1, "In[1]")
        yield kernel_id, c


def processes(container):
    """(pid, state, command) of all in it, as the engine sees them."""
    told = subprocess.run(["docker", "top", container, "-eo", "pid,stat,args"], check=True,
                          capture_output=True, text=True).stdout.splitlines()[1:]
    return [tuple(line.split(None, 2)) for line in told]


def said(c, msg_id, text):
    return c.until(lambda m: m.type == "stream" and m.parent_id == msg_id
                   and m.content["name"] == "stderr" and text in m.content["text"],
                   timeout=within(20)).content["text"]


def limited(c, code, seconds):
    """Executes with less time than the tier has. An error stops nothing: ipykernel itself aborts what
    comes in the moment after one that does."""
    return c.send("shell", "execute_request", {
        "code": code, "silent": False, "store_history": True, "user_expressions": {},
        "allow_stdin": False, "stop_on_error": False}, metadata={"coppice": {"timeout": seconds}})


def test_a_cell_that_obeys_keeps_what_it_did(server, walk):
    kernel_id, c = walk
    run = c.run(CHANGES + "while True: pass", timeout=within(10))
    assert run.status == "error" and run.reply.content["ename"] == "KeyboardInterrupt"
    assert run.stdout == "on\n"
    assert f"Time limit of {LIMIT_S} s (tier standard): the cell was interrupted" in run.stderr
    assert "`%coppice undo`" in run.stderr
    node = executions(recorded(server, kernel_id, 2))[1]
    assert node["status"] == "timed_out" and "exit" not in node
    assert node["error"]["ename"] == "KeyboardInterrupt"
    # And undo leads to before the failing cell, as it was offered.
    assert server.post(f"/api/kernels/{kernel_id}/undo", json={"accept": "exact"}).status_code == 200
    assert c.run(LOOK).stdout == AS_BEFORE


@pytest.mark.parametrize("code", STUBBORN.values(), ids=STUBBORN.keys())
def test_what_does_not_obey_is_killed_and_the_state_before_comes_back(server, walk, code):
    kernel_id, c = walk
    container = server.container_of(kernel_id)
    msg_id = c.execute(CHANGES + code)
    held = c.execute("print('never')")
    run = c.collect(msg_id, timeout=within(15))
    assert run.status == "error" and run.reply.content["ename"] == "TimeLimitExceeded"
    assert f"{LIMIT_S} s (tier standard)" in run.reply.content["evalue"]
    assert run.stdout.startswith("on\n")  # what came so far is kept
    assert "was killed, with everything that it had started" in run.stderr
    assert c.collect(held).status == "aborted"
    told = said(c, msg_id, "Gone back to In[1]")
    assert "All variables are as they were." in told
    server.wait_state(kernel_id, "idle")
    assert c.run(LOOK).stdout == AS_BEFORE
    assert server.container_of(kernel_id) == container
    running = [p for p in processes(container) if not p[1].startswith(("T", "Z"))]
    # init, supervisor, the new line's process, its kernel
    assert len(running) == 4, running
    first, ended, behind, after = executions(recorded(server, kernel_id, 4))
    assert behind["status"] == "aborted" and behind["parent"] == ended["id"]
    assert ended["status"] == "timed_out" and ended["exit"]["signal"] == 9
    assert ended["error"]["ename"] == "TimeLimitExceeded"
    assert ended["parent"] == after["parent"] == first["id"]


def test_the_neighbour_is_not_disturbed(server, walk):
    """Another owner's kernel, of a tier without limit, computes through it all."""
    kernel_id, c = walk
    with server.kernel("python3", token=BOB) as other_id, \
            server.open(other_id, token=BOB) as other:
        other.info()
        slow = other.execute(f"import time\nfor i in range({2 * LIMIT_S + 4}):\n"
                             "    time.sleep(1)\nprint('all of it', i)")
        run = c.run(CHANGES + STUBBORN["double_forks"], timeout=within(15))
        assert run.reply.content["ename"] == "TimeLimitExceeded"
        done = other.collect(slow, timeout=within(30))
        assert done.status == "ok" and done.stdout == f"all of it {2 * LIMIT_S + 3}\n"
        assert not done.stderr
    server.wait_state(kernel_id, "idle")
    assert c.run(LOOK).stdout == AS_BEFORE


def test_without_a_parked_node_a_fresh_kernel_says_what_to_run_again(server):
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        # In one burst: the first is not parked.
        c.execute("x = 1")
        msg_id = c.execute("import time\n" + STUBBORN["catches"])
        run = c.collect(msg_id, timeout=within(15))
        assert run.reply.content["ename"] == "TimeLimitExceeded"
        assert "to be run again, in this order: In[1]" in said(c, msg_id, "Not gone back")
        said(c, msg_id, "A fresh kernel takes its place, without any variables")
        server.wait_state(kernel_id, "idle")
        assert c.run("x").reply.content["ename"] == "NameError"


@pytest.mark.parametrize("how", ["rest", "magic"])
def test_undo_of_a_failing_cell(server, walk, how):
    """To before it, also where cells were held behind it."""
    kernel_id, c = walk
    failing = c.execute(CHANGES + "import time\ntime.sleep(1)\n1/0")
    held = [c.execute(f"held = {i}") for i in range(2)]
    assert c.collect(failing).reply.content["ename"] == "ZeroDivisionError"
    assert [c.collect(h).status for h in held] == ["aborted"] * 2
    recorded(server, kernel_id, 4)
    if how == "rest":
        answer = server.post(f"/api/kernels/{kernel_id}/undo", json={"accept": "exact"})
        assert answer.status_code == 200, answer.text
    else:
        asked = c.execute("%coppice undo")
        c.collect(asked)
        c.until(lambda m: m.type == "stream" and m.parent_id == asked
                and "Gone back to In[1]" in m.content["text"], timeout=within(20))
    assert c.run(LOOK).stdout == AS_BEFORE


def test_input_counts_too(server, walk):
    _kernel_id, c = walk
    asked = c.execute("input('who? ')", allow_stdin=True)
    c.until_type("input_request", asked)
    run = c.collect(asked, timeout=within(15))
    assert run.status == "error" and "Time limit" in run.stderr


def test_case_22_awaited_cell(server, walk):
    kernel_id, c = walk
    began = time.monotonic()
    run = c.run("import asyncio\nawait asyncio.sleep(60)", timeout=within(LIMIT_S + 5))
    assert time.monotonic() - began < within(LIMIT_S + 5)
    assert run.status == "error"
    assert c.run('print("next")', timeout=within(6)).stdout == "next\n"
    assert executions(recorded(server, kernel_id, 3))[1]["status"] == "timed_out"


def test_case_23_a_cell_that_ends_at_its_limit(server):
    """20 rounds: it ends as its time is up, and the next one is innocent."""
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        for k in range(20):
            first = limited(c, f"import time; time.sleep({0.3 + k / 1000})", 0.31)
            run = c.collect(first, within(10))
            after = c.run("print(sum(range(2_000_000)))", timeout=within(10))
            assert after.stdout == "1999999000000\n", (k, after)
            assert run.reply.content["status"] in ("ok", "error")
        server.wait_state(kernel_id, "idle")


def test_a_killed_gateway_forgets_no_deadline(server, walk):
    kernel_id, c = walk
    msg_id = c.execute(CHANGES + STUBBORN["catches"])
    c.until_text("on", msg_id)
    cut(server, signal.SIGKILL)
    again(server)
    with reconnected(server, kernel_id, c) as back:
        run = back.collect(msg_id, timeout=within(15))
        assert run.reply.content["ename"] == "TimeLimitExceeded"
        assert "All variables are as they were." in said(back, msg_id, "Gone back to In[1]")
        server.wait_state(kernel_id, "idle")
        assert back.run(LOOK).stdout == AS_BEFORE
        nodes = executions(recorded(server, kernel_id, 3))
        assert [n["status"] for n in nodes] == ["ok", "timed_out", "ok"]


# A process in a session of its own, no child of ours any more.
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
_ = os.wait()
"""


def test_the_other_kernel_of_its_container_goes_on(server, walk):
    kernel_id, c = walk
    assert c.run(DAEMON + "kept = 1").status == "ok"
    with Beside(server, kernel_id, at="In[1]", name="limited") as other:
        d = other.client
        container = server.container_of(kernel_id)
        msg_id = d.execute(CHANGES + STUBBORN["double_forks"])
        assert c.run("print(kept)").stdout == "1\n"  # meanwhile
        run = d.collect(msg_id, timeout=within(30))
        assert run.reply.content["ename"] == "TimeLimitExceeded"
        said(d, msg_id, "Gone back to In[1]")
        assert d.run(LOOK).stdout == AS_BEFORE
        assert c.run("print(kept)").stdout == "1\n"
        assert server.container_of(other.id) == server.container_of(kernel_id) == container
