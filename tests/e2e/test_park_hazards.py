"""Hazards of parked forks as a user meets them (branching.md 3.A), and races for a checkout: real
containers, the whole gateway. What needs no gateway is in images/kernel/smoke/test_park.py."""

import os
import subprocess
import threading

import pytest

from gateway import ROOT, wait, within
from test_going_back import checkout, parked
from test_history import executions, recorded

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(container_engine):
    from conftest import CONFIG
    from gateway import Server

    server = Server("hazards", "--engine", "docker", "--pool-floor", "0", config=CONFIG).start()
    yield server
    server.stop()


@pytest.fixture
def talk(request, server):
    """(kernel, client); of the newest ipykernel where the test says so."""
    with server.kernel(getattr(request, "param", "python3")) as kernel_id:
        with server.open(kernel_id) as c:
            c.info()
            yield kernel_id, c


newest = pytest.mark.parametrize("talk", ["newest"], indirect=True)


def ran(c, *cells):
    for code in cells:
        run = c.run(code)
        assert run.status == "ok", run


def why_not(server, kernel_id, node):
    """The reason why that node cannot be gone back to, once one is known."""
    return wait(lambda: checkout(server, kernel_id, 409, node=node)["report"]["lost"][0]["reason"],
                lambda reason: "no process that stood there" not in reason, within(20))


# ---- refused ----

def test_a_debugger_is_attached(server, talk):
    """A17: a real one, over control."""
    kernel_id, c = talk

    def ask(seq, command, **arguments):
        asked = c.ask("debug_request", {"seq": seq, "type": "request", "command": command,
                                        "arguments": arguments}, channel="control")
        assert asked.reply.content["success"], asked.reply

    ran(c, "x = 1")
    parked(server, kernel_id, 1)
    ask(1, "initialize", clientID="e2e", clientName="e2e", adapterID="", pathFormat="path",
        linesStartAt1=True, columnsStartAt1=True)
    ask(2, "attach")
    ran(c, "x = 2")
    assert "debugger" in why_not(server, kernel_id, "In[2]")
    # The node of before is there all the same, and no debugger in it.
    checkout(server, kernel_id, node="In[1]")
    assert c.run("print(x)").stdout == "1\n"
    parked(server, kernel_id, 3)


def test_input_that_waits(server, talk):
    """A17: no state in the middle of a cell; a checkout is refused, or ends the cell."""
    kernel_id, c = talk
    ran(c, "x = 1")
    node = parked(server, kernel_id, 1)
    asked = c.execute("x = input('name? ')", allow_stdin=True)
    request = c.until_type("input_request", asked)
    told = checkout(server, kernel_id, 409, node="In[1]")
    assert told["reason"] == "busy"
    checkout(server, kernel_id, node="In[1]", interrupt=True)
    ended = c.collect(asked)
    assert ended.status == "error" and ended.reply.content["ename"] == "KeyboardInterrupt"
    c.answer(request, "too late")  # nobody asks any more
    again = c.execute("y = input()", allow_stdin=True)
    c.answer(c.until_type("input_request", again), "in time")
    assert c.collect(again).status == "ok"
    assert c.run("print(x, y)").stdout == "1 in time\n"
    first, cut, last = executions(recorded(server, kernel_id, 4))[:3]
    assert first["id"] == node["id"] and cut["status"] == "error" and last["parent"] == node["id"]


@newest
def test_a_subshell(server, talk):
    """A17: it is a thread. Its cell holds a checkout up; the kernel that is gone back to has none, and
    who asks for it is told so and does not wait for ever."""
    kernel_id, c = talk
    ran(c, "x = 1")
    parked(server, kernel_id, 1)
    subshell = c.ask("create_subshell_request", channel="control").reply.content["subshell_id"]
    ran(c, "x = 2\nimport threading; go = threading.Event()")
    assert "subshell" in why_not(server, kernel_id, "In[2]")
    beside = c.execute("print('waits', flush=True); go.wait()", header={"subshell_id": subshell})
    c.until_text("waits", beside)
    assert checkout(server, kernel_id, 409, node="In[1]")["reason"] == "busy"
    ran(c, "go.set()")
    assert c.collect(beside).status == "ok"
    checkout(server, kernel_id, node="In[1]")
    assert c.run("print(x)").stdout == "1\n"
    gone = c.collect(c.execute("print('nobody runs this')", header={"subshell_id": subshell}), within(20))
    assert gone.status == "error"
    ran(c, "x = 3")
    parked(server, kernel_id, 7)  # without a subshell it can be again


# ---- handled ----

def test_another_state_is_never_served(server, talk):
    """A16: user code changes the namespace in each fork, so what stands up is not that node."""
    kernel_id, c = talk
    ran(c, "import os; space = globals()\n"
           "os.register_at_fork(after_in_child=lambda: space.update({f'from_{os.getpid()}': 1}))")
    parked(server, kernel_id, 1)
    ran(c, "x = 2")
    told = checkout(server, kernel_id, 409, node="In[1]", accept="partial")
    assert told["reason"] == "partial" and told["report"]["fidelity"] == "code-only"
    assert c.run("print(x, [n for n in space if n.startswith('from_')])").stdout == "2 []\n"



def test_parks_are_given_up(server, talk):
    """A18: by a magic, REST and the command line; no process of theirs is left, and it is said why."""
    kernel_id, c = talk
    ran(c, "import os, coppice_kernel.process as p\n"
           "def parks():\n"
           "    names = [open(f'/proc/{i}/comm').read().strip() for i in p.processes()]\n"
           "    return names.count('parked')\n"
           "key = 'sk-secret'")
    parked(server, kernel_id, 1)
    ran(c, "key = None")
    parked(server, kernel_id, 2)
    run = c.run("print(parks())\n%coppice release")
    assert run.stdout.startswith("2\n") and "2 parked states" in run.stdout, run
    assert c.run("import time\nwhile parks() > 1: time.sleep(0.01)\nprint('gone')").stdout == "gone\n"
    assert why_not(server, kernel_id, "In[1]") == "it was released"
    parked(server, kernel_id, 4)
    answer = server.delete(f"/api/kernels/{kernel_id}/parked")
    assert answer.status_code == 200 and answer.json()["released"] >= 1
    ran(c, "last = 1")
    parked(server, kernel_id, 5)
    done = subprocess.run(
        [os.environ.get("COPPICE_BIN", str(ROOT / "build" / "coppice")), "release",
         "--kernel", kernel_id, "--url", server.url, "--token", server.token],
        capture_output=True, text=True, timeout=within(60), check=False)
    assert done.returncode == 0 and "parked states released: 1" in done.stdout, done
    assert server.delete("/api/kernels/none/parked").status_code == 404
    assert [n["restorable_by"] for n in server.json(f"/history/{kernel_id}")["nodes"]] == [[]] * 6
    assert c.run("print(last)").stdout == "1\n"


# ---- races ----

def test_two_race_for_a_checkout(server, talk):
    """One goes; the other is told that it was too late, and nothing of both is mixed."""
    kernel_id, c = talk
    for n in (1, 2, 3):
        ran(c, f"a = b = {n}")
        parked(server, kernel_id, n)
    *nodes, last = executions(server.json(f"/history/{kernel_id}"))
    for _ in range(5):
        version = checkout(server, kernel_id, node=last["id"])["state_version"]
        answers, ready = {}, threading.Barrier(2)

        def ask(node):
            ready.wait()
            answers[node] = server.post(f"/api/kernels/{kernel_id}/checkout",
                                        json={"node": node, "state_version": version})

        threads = [threading.Thread(target=ask, args=(node["id"],)) for node in nodes]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(a.status_code for a in answers.values()) == [200, 409], \
            [a.text for a in answers.values()]
        (won,) = [node for node, answer in answers.items() if answer.status_code == 200]
        (lost,) = [answer for answer in answers.values() if answer.status_code != 200]
        assert lost.status_code == 409 and lost.json()["reason"] in ("busy", "stale")
        late = checkout(server, kernel_id, 409, node=last["id"], state_version=version)
        assert late["reason"] == "stale" and late["state_version"] == version + 1
        assert server.model(kernel_id)["node"] == won
        value = 1 + [n["id"] for n in nodes].index(won)
        assert c.run("print(a, b)", silent=True).stdout == f"{value} {value}\n"


def test_while_a_cell_runs(server, talk):
    kernel_id, c = talk
    ran(c, "x = 1")
    parked(server, kernel_id, 1)
    runs = c.execute("x = 2\nimport time\nprint('runs', flush=True)\ntime.sleep(999)")
    behind = c.execute("print('behind', x)")
    c.until_text("runs", runs)
    assert checkout(server, kernel_id, 409, node="In[1]")["reason"] == "busy"
    checkout(server, kernel_id, node="In[1]", interrupt=True)
    assert c.collect(runs).reply.content["ename"] == "KeyboardInterrupt"
    # What waited behind it is of the line left behind.
    assert c.collect(behind).status == "aborted"
    assert c.run("print(x)").stdout == "1\n"
