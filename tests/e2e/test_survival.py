"""The gateway is killed or replaced while kernels run: they live on, and the next gateway takes
them up with everything that they said meanwhile."""

import random
import re
import signal
import subprocess
import time

import pytest

import engine
from gateway import wait, within
from wire import Closed, NoMessage, Run

pytestmark = pytest.mark.timeout(300)
TICKS = 60


def ticker(n=TICKS, pause=0.05):
    return (f"import time\nfor i in range({n}):\n    print(f'tick {{i}}.', flush=True)\n"
            f"    time.sleep({pause})\nseen = {n}\n")


def follow(client, msg_id, until, timeout=60):
    """Receives until `until` is true for that run; False: the socket went before."""
    run = client.runs.setdefault(msg_id, Run(msg_id))
    deadline = time.monotonic() + within(timeout)
    while not until(run):
        assert time.monotonic() < deadline, f"not complete: {run.text()[-200:]!r} {run.states}"
        try:
            client.receive(1)
        except NoMessage:
            continue
        except Closed:
            return False
    return True


def complete(run):
    return run.reply is not None and run.idle


def ticks(run):
    return [int(n) for n in re.findall(r"tick (\d+)\.", run.stdout)]


def seen_ticks(run, n):
    return len(ticks(run)) >= n or complete(run)


def assert_whole(run, n=TICKS):
    assert ticks(run) == list(range(n)), f"{ticks(run)}"
    assert run.status == "ok"
    assert [m.type for m in run.messages].count("execute_reply") == 1
    assert run.states[-1] == "idle" and run.states.count("idle") == 1


def reconnected(server, kernel_id, client):
    """The same page with a new socket: what it had it still has."""
    again = server.open(kernel_id, client.framing, session=client.session)
    again.runs = client.runs
    return again


def cut(server, how):
    server.process.send_signal(how)
    code = server.process.wait(within(20))
    assert code == (0 if how == signal.SIGTERM else -how), server.log()[-3000:]
    server.reader.join(5)
    server.log_file.close()


def again(server):
    """The same folders, another process."""
    server.url_seen = None
    server.start()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
@pytest.mark.parametrize("framing", ["legacy", "v1"])
def test_a_cell_runs_on(docker_server, how, framing):
    server = docker_server(f"survival-{framing}-{how.name}")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id, framing) as c:
        c.info()
        assert c.run("kept = 'intact'").status == "ok"
        run = c.execute(ticker())
        assert follow(c, run, lambda r: seen_ticks(r, 8))
        before = server.container_of(kernel_id)
        cut(server, how)
        follow(c, run, complete)
    again(server)
    assert [k["id"] for k in server.json("/api/kernels")] == [kernel_id]
    with reconnected(server, kernel_id, c) as d:
        assert follow(d, run, complete)
        assert_whole(d.runs[run])
        assert d.run("print(kept, seen)").stdout == f"intact {TICKS}\n"
    assert server.container_of(kernel_id) == before
    assert len(engine.containers(server.run_dir)) == 1


def test_a_start_that_fails_ends_no_kernel(docker_server):
    server = docker_server("survival-no-start")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("kept = 'intact'").status == "ok"
    cut(server, signal.SIGKILL)
    argv = ["203.0.113.1:0" if a == "127.0.0.1:0" else a for a in server.argv]
    failed = subprocess.run(argv, env=server.env, cwd=server.home, capture_output=True, text=True,
                            timeout=within(30))
    assert failed.returncode == 1 and "cannot listen" in failed.stderr, failed.stderr[-3000:]
    again(server)
    with reconnected(server, kernel_id, c) as d:
        assert d.run("print(kept)").stdout == "intact\n"


def test_at_random_moments(docker_server):
    server = docker_server("survival-random")
    kernel_id = server.start_kernel("python3")
    rng = random.Random(7)
    with server.open(kernel_id) as c:
        c.info()
        c.run("n = 0")
    for _ in range(5):
        c = reconnected(server, kernel_id, c)
        run = c.execute("n += 1\n" + ticker(30, 0.02))
        after = rng.randrange(0, 28)
        follow(c, run, lambda r: seen_ticks(r, after) if after else r.messages)
        time.sleep(rng.random() * 0.05)  # a moment, not a wait
        cut(server, signal.SIGKILL)
        follow(c, run, complete)
        again(server)
        c = reconnected(server, kernel_id, c)
        assert follow(c, run, complete)
        assert_whole(c.runs[run], 30)
        c.ws.close()
    with reconnected(server, kernel_id, c) as c:
        assert c.run("print(n)").stdout == "5\n"
    assert len(engine.containers(server.run_dir)) == 1


def test_two_clients_and_a_held_cell(docker_server):
    server = docker_server("survival-two")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as a, server.open(kernel_id, "v1") as b:
        a.info()
        b.info()
        run = a.execute(ticker())
        held = b.execute("print('held', seen)")
        assert follow(a, run, lambda r: seen_ticks(r, 5))
        follow(b, run, lambda r: seen_ticks(r, 5))
        cut(server, signal.SIGKILL)
        follow(a, run, complete)
        follow(b, run, lambda r: r.idle)
    again(server)
    with reconnected(server, kernel_id, a) as a, reconnected(server, kernel_id, b) as b:
        assert follow(a, run, complete)
        assert_whole(a.runs[run])
        assert follow(b, run, lambda r: r.idle)
        assert ticks(b.runs[run]) == list(range(TICKS))
        assert follow(b, held, complete)
        assert b.runs[held].stdout == f"held {TICKS}\n" and b.runs[held].status == "ok"


MARK_THE_END = ("get_ipython().events.register('post_run_cell', "
                "lambda *_: open('/work/over', 'w').close())\n")


def test_it_ends_while_nobody_watches(docker_server):
    """The cell's end, its error and what follows it come after the gateway is back."""
    server = docker_server("survival-ended")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        container = server.container_of(kernel_id)
        run = c.execute(MARK_THE_END + ticker(10) + "1/0")
        assert follow(c, run, lambda r: seen_ticks(r, 3))
        cut(server, signal.SIGKILL)
        follow(c, run, complete)
    wait(lambda: engine.has_file(container, "/work/over"), bool, within(30))
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert follow(c, run, complete)
        ran = c.runs[run]
        assert ticks(ran) == list(range(10))
        assert ran.status == "error"
        assert ran.iopub("error")[0].content["ename"] == "ZeroDivisionError"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_input_is_pending(docker_server, how):
    server = docker_server(f"survival-input-{how.name}")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        run = c.execute("print(input('name? '))", allow_stdin=True)
        request = c.until_type("input_request", run)
        cut(server, how)
        follow(c, run, complete)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        c.answer(request, "before")
        assert follow(c, run, complete)
        assert c.runs[run].stdout == "before\n"


ASK_MEANWHILE = """
import os, time
print('tick 0.', flush=True)
while not os.path.exists('/work/go'):
    time.sleep(0.02)
open('/work/asking', 'w').close()
print(input('name? '))
"""


def test_input_is_asked_for_while_nobody_watches(docker_server):
    server = docker_server("survival-asks")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        container = server.container_of(kernel_id)
        run = c.execute(ASK_MEANWHILE, allow_stdin=True)
        assert follow(c, run, lambda r: seen_ticks(r, 1))
        cut(server, signal.SIGKILL)
        follow(c, run, complete)
    assert engine.run(container, "touch", "/work/go") == 0
    wait(lambda: engine.has_file(container, "/work/asking"), bool, within(30))
    again(server)
    with reconnected(server, kernel_id, c) as c:
        c.answer(c.until_type("input_request", run), "meanwhile")
        assert follow(c, run, complete)
        assert c.runs[run].stdout == "tick 0.\nmeanwhile\n"


def test_a_kernel_that_died_meanwhile_is_told(docker_server):
    server = docker_server("survival-died")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        run = c.execute(ticker())
        assert follow(c, run, lambda r: seen_ticks(r, 3))
        container = server.container_of(kernel_id)
        cut(server, signal.SIGKILL)
        follow(c, run, complete)
    engine.kill(container)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert follow(c, run, complete)
        assert c.runs[run].status in ("aborted", "error")
        assert c.run("print('new')", timeout=60).stdout == "new\n"
    assert len(engine.containers(server.run_dir)) == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_a_dead_kernel_is_dead_for_the_next_gateway(docker_server, how):
    """With the same reason; its place is not kept. One that is deleted is gone for all."""
    server = docker_server(f"survival-dead-{how.name}", "--auto-restart=false")
    kernel_id, other = (server.start_kernel("python3") for _ in range(2))
    for k in kernel_id, other:
        server.wait_state(k, "idle", within(30))
        engine.call("DELETE", f"/containers/{server.container_of(k)}", {"force": "1"})
        server.wait_state(k, "dead", within(30))
    reason = server.model(kernel_id)["reason"]
    cut(server, how)
    again(server)
    assert {k["id"] for k in server.json("/api/kernels")} == {kernel_id, other}
    model = server.model(kernel_id)
    assert (model["execution_state"], model["reason"]) == ("dead", reason)
    assert not engine.containers(server.run_dir)
    assert server.delete(f"/api/kernels/{other}").status_code == 204
    cut(server, how)
    again(server)
    assert [k["id"] for k in server.json("/api/kernels")] == [kernel_id]
    assert server.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
    with server.open(kernel_id) as c:
        assert c.run("print('new')", within(30)).stdout == "new\n"
    assert "reason" not in server.model(kernel_id)


def test_sessions_are_there_again(docker_server):
    server = docker_server("survival-sessions")
    r = server.post("/api/sessions", json={"path": "a.ipynb", "type": "notebook", "name": "a",
                                           "kernel": {"name": "python3"}})
    assert r.status_code == 201
    made = r.json()
    server.wait_state(made["kernel"]["id"], "idle", within(30))
    cut(server, signal.SIGKILL)
    again(server)
    (found,) = server.json("/api/sessions")
    assert (found["id"], found["path"], found["kernel"]["id"]) == (
        made["id"], "a.ipynb", made["kernel"]["id"])


def test_the_end_of_all_leaves_nothing(docker_server):
    server = docker_server("survival-end")
    kernel_id = server.start_kernel("python3")
    server.wait_state(kernel_id, "idle", within(30))
    cut(server, signal.SIGTERM)
    assert len(engine.containers(server.run_dir)) == 1
    again(server)
    server.wait_state(kernel_id, "idle", within(30))
    server.stop()
    assert not engine.containers(server.run_dir)


def execute_frame(client, code):
    head = client.header("execute_request")
    client.runs[head["msg_id"]] = Run(head["msg_id"])
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False,
               "stop_on_error": True}
    return head["msg_id"], client.encode("shell", head, {}, {}, content)


@pytest.mark.parametrize("framing", ["legacy", "v1"])
def test_what_was_answered_is_not_run_again(docker_server, framing):
    """The kernel drops a second copy without a word: it must not be asked."""
    server = docker_server(f"survival-twice-{framing}")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id, framing) as c:
        c.info()
        c.run("n = 0")
        msg_id, frame = execute_frame(c, "n += 1")
        c.send_frame(frame)
        count = c.collect(msg_id).reply.content["execution_count"]
        cut(server, signal.SIGKILL)
    again(server)
    with reconnected(server, kernel_id, c) as d:
        d.send_frame(frame)
        reply = d.until_type("execute_reply", parent=msg_id, timeout=within(10))
        assert reply.content["status"] == "ok"
        assert reply.content["execution_count"] == count
        assert d.run("print(n)").stdout == "1\n"


def test_a_long_notebook_runs_on(docker_server):
    server = docker_server("survival-long")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        first = c.execute(ticker())
        cells = [c.execute(f"print('cell', {i})") for i in range(150)]
        assert follow(c, first, lambda r: seen_ticks(r, 5))
        cut(server, signal.SIGKILL)
        follow(c, cells[-1], complete)
    again(server)
    with reconnected(server, kernel_id, c) as d:
        assert follow(d, cells[-1], complete)
        assert_whole(d.runs[first])
        for i, cell in enumerate(cells):
            assert complete(d.runs[cell]) and d.runs[cell].stdout == f"cell {i}\n"
