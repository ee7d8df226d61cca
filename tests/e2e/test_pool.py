"""Kernels that are ready before anybody asks: what the one who gets one sees, and what is left."""

import json
import signal
import threading

import pytest

import engine
from chat import events, new_conversation
from gateway import wait, within
from test_survival import again, cut

pytestmark = pytest.mark.timeout(300)
WHO = ("import os, random, uuid, numpy, json\n"
       "print(json.dumps([os.environ.get('KERNEL_ID'), os.environ.get('MINE'),"
       " os.environ.get('KERNEL_USERNAME'), os.getcwd(),"
       " [random.random(), numpy.random.rand(), str(uuid.uuid4())]]))")


def filled(server, ready=1):
    return server.wait_show("pool", lambda p: p["ready"] >= ready and not p["starting"], within(60))


def pooled(server):
    return {k["slot"]["container"] for k in server.show("pool")["kernels"]}


def who(server, kernel_id):
    with server.open(kernel_id) as c:
        c.info()
        return json.loads(c.run(WHO).stdout)


@pytest.fixture
def server(docker_server):
    server = docker_server("pool", "--pool-floor", "2")
    filled(server, 2)
    return server


def test_a_start_is_served_from_it(server):
    spare = pooled(server)
    kernel_id = server.start_kernel("python3", env={"MINE": "m", "KERNEL_USERNAME": "ann"})
    assert server.container_of(kernel_id) in spare
    found = who(server, kernel_id)
    assert found[:4] == [kernel_id, "m", "ann", "/work"]
    assert server.container_of(kernel_id) not in pooled(server)
    row = json.loads((server.data_dir / "kernels" / f"{kernel_id}.json").read_text())
    assert row["owner"] == "alice"


def test_the_row_is_written_before_the_answer(server):
    kernel_id = server.start_kernel("python3")
    assert (server.data_dir / "kernels" / f"{kernel_id}.json").exists()


def test_no_list_shows_them(server):
    assert server.json("/api/kernels") == []
    assert server.json("/api/status")["kernels"] == 0
    assert server.show("slots") == [] and server.show("kernels") == []
    assert len(engine.containers(server.run_dir)) == 2


def test_two_draw_different_numbers(server):
    spare = pooled(server)
    ids = [server.start_kernel("python3") for _ in range(2)]
    assert {server.container_of(i) for i in ids} == spare
    a, b = (who(server, i)[4] for i in ids)
    assert all(x != y for x, y in zip(a, b)), (a, b)


def test_what_is_read_at_the_start_gets_a_fresh_one(server):
    spare = pooled(server)
    kernel_id = server.start_kernel("python3", env={"PYTHONHASHSEED": "7"})
    assert server.container_of(kernel_id) not in spare
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("import sys; print(sys.flags.hash_randomization)").stdout == "1\n"
    assert pooled(server) == spare


def test_limits_are_those_of_any_kernel(server):
    kernel_id = server.start_kernel("python3")
    who(server, kernel_id)
    host = engine.inspect(server.container_of(kernel_id))["HostConfig"]
    assert host["NanoCpus"] == 500_000_000 and host["NetworkMode"] == "none"


def test_restart_in_place(server):
    kernel_id = server.start_kernel("python3", env={"MINE": "m"})
    before = server.container_of(kernel_id)
    with server.open(kernel_id) as c:
        c.info()
        c.run("x = 1")
        assert server.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
    assert who(server, kernel_id)[:2] == [kernel_id, "m"]
    assert server.container_of(kernel_id) == before


def test_restart_without_its_container(server):
    kernel_id = server.start_kernel("python3", env={"MINE": "m"})
    who(server, kernel_id)
    filled(server, 2)
    spare, lost = pooled(server), server.container_of(kernel_id)
    engine.call("DELETE", f"/containers/{lost}", {"force": "1"})
    server.wait_show("slots", lambda rows: any(
        r["slot"] and r["slot"]["container"] in spare for r in rows), within(30))
    assert who(server, kernel_id)[:4] == [kernel_id, "m", None, "/work"]


def test_a_killed_gateway_leaves_none(server):
    kernel_id = server.start_kernel("python3", env={"MINE": "m"})
    assert who(server, kernel_id)[1] == "m"
    filled(server, 2)
    mine, before = server.container_of(kernel_id), pooled(server)
    cut(server, signal.SIGKILL)
    again(server)
    filled(server, 2)
    assert who(server, kernel_id)[:2] == [kernel_id, "m"]
    now = pooled(server)
    assert not now & before and mine not in now
    left = {r["Names"][0].lstrip("/") for r in engine.containers(server.run_dir)}
    assert left == now | {mine}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_cut_right_after_the_answer(server, how):
    """The hand-over may not have been heard: the kernel is whole in any case."""
    ids = [server.start_kernel("python3", env={"MINE": "m"}) for _ in range(2)]
    cut(server, how)
    again(server)
    assert {k["id"] for k in server.json("/api/kernels")} == set(ids)
    for kernel_id in ids:
        assert who(server, kernel_id)[:2] == [kernel_id, "m"]


def test_a_folder_that_the_user_changed_stays(server):
    """A hand-over that is said again by the next gateway changes nothing."""
    kernel_id = server.start_kernel("python3", env={"MINE": "m"})
    with server.open(kernel_id) as c:
        c.info()
        c.run("import os; os.chdir('/tmp'); os.environ['MINE'] = 'other'")
    cut(server, signal.SIGKILL)
    again(server)
    assert who(server, kernel_id)[:4] == [kernel_id, "other", None, "/tmp"]


def test_a_kernel_that_died_in_it_is_replaced(server):
    (victim, _) = pooled(server)
    engine.kill(victim)
    server.wait_show("pool", lambda p: p["failed"] == 1 and p["ready"] == 2, within(60))
    assert victim not in pooled(server)


def test_a_burst(docker_server):
    """Eight at once on a pool of one: each works, none gets what another has."""
    server = docker_server("pool-burst", "--pool-floor", "1", "--pool-max", "2")
    filled(server)
    found = {}

    def one(n):
        kernel_id = server.start_kernel("python3", env={"MINE": str(n)})
        found[n] = (kernel_id, who(server, kernel_id))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 8
    for n, (kernel_id, (seen_id, mine, *_)) in found.items():
        assert (seen_id, mine) == (kernel_id, str(n))
    assert len({server.container_of(kernel_id) for kernel_id, _ in found.values()}) == 8


def test_who_waits_for_a_place_is_served_in_order(docker_server):
    server = docker_server("pool-full", "--pool-floor", "1", "--pool-ceiling", "2",
                           "--pool-wait", "60s")
    ids = [server.start_kernel("python3") for _ in range(2)]
    answers = []

    def one(n):
        answers.append((n, server.start_kernel("python3")))

    threads = []
    for n in range(2):
        threads.append(threading.Thread(target=one, args=(n,)))
        threads[-1].start()
        server.wait_show("pool", lambda p: p["waiting"] == n + 1, within(10))
    for kernel_id in ids:
        asked = len(answers) + 1
        server.delete(f"/api/kernels/{kernel_id}")
        server.wait_show("pool", lambda p: p["waited"] == asked, within(30))
        threads[asked - 1].join()
    assert [n for n, _ in answers] == [0, 1]
    for _, kernel_id in answers:
        server.wait_state(kernel_id, "idle", within(60))
    assert len(engine.containers(server.run_dir)) == 2


def test_who_waits_in_vain_is_told(docker_server):
    server = docker_server("pool-vain", "--pool-floor", "1", "--pool-ceiling", "1",
                           "--pool-wait", "1s")
    server.start_kernel("python3")
    for path, body in (("/api/kernels", {"name": "python3"}),
                       ("/api/sessions", {"path": "a", "type": "notebook",
                                          "kernel": {"name": "python3"}})):
        r = server.post(path, json=body)
        assert r.status_code == 503 and r.headers["Retry-After"] == "1"
        assert "number 1 of those that waited" in r.json()["message"]
        assert r.json()["reason"] == "queue_timeout"


def say(server, conversation, code, answers):
    answers.append(server.post(f"/chat/conversations/{conversation}/executions",
                               json={"code": code}, timeout=within(120)))


def test_a_conversation_waits_in_the_same_line(docker_server):
    """Its first code needs a kernel: it waits for a place in order with all others, and its record
    says how long."""
    server = docker_server("pool-chat", "--pool-floor", "1", "--pool-ceiling", "1",
                           "--pool-wait", "100s")
    first = server.start_kernel("python3")
    c = new_conversation(server)
    answers, later = [], []
    threads = [threading.Thread(target=say, args=(server, c, "print('at last')", answers)),
               threading.Thread(target=lambda: later.append(server.start_kernel("python3")))]
    for n, thread in enumerate(threads):
        thread.start()
        server.wait_show("pool", lambda p: p["waiting"] == n + 1, within(10))
    assert server.delete(f"/api/kernels/{first}").status_code == 204
    threads[0].join()
    (answer,) = answers
    assert answer.status_code == 200 and not later, answer.text
    record = answer.json()
    assert record["status"] == "ok" and record["stdout"] == "at last\n"
    assert record["timings"]["place_ms"] > 0
    assert server.delete(f"/chat/conversations/{c}").status_code == 204
    threads[1].join()
    server.wait_state(later[0], "idle", within(60))


def test_a_conversation_that_waits_in_vain_is_told(docker_server):
    server = docker_server("pool-chat-vain", "--pool-floor", "1", "--pool-ceiling", "1",
                           "--pool-wait", "1s")
    kernel_id = server.start_kernel("python3")
    c = new_conversation(server)
    answers = []
    say(server, c, "1", answers)
    (answer,) = answers
    assert answer.status_code == 503 and answer.json()["reason"] == "queue_timeout"
    assert "number 1 of those that waited" in answer.json()["message"]
    assert answer.headers["X-Should-Retry"] == "false"
    found = events(server, c, "1", "executions", "code")
    assert [n for n, _ in found] == ["message.start", "notice", "error", "message.end"]
    assert found[-1][1]["status"] == "failed" and found[-1][1]["records"] == []
    # With a place it goes on.
    assert server.delete(f"/api/kernels/{kernel_id}").status_code == 204
    server.wait_show("pool", lambda p: not p["waiting"], within(10))
    wait(lambda: run_or_none(server, c), bool, within(30))


def run_or_none(server, conversation):
    answers = []
    say(server, conversation, "print('on')", answers)
    return answers[0].status_code == 200 and answers[0].json()["stdout"] == "on\n"


@pytest.mark.parametrize("how", ["interrupt", "delete"])
def test_a_conversation_that_does_not_want_to_wait(docker_server, how):
    server = docker_server(f"pool-chat-{how}", "--pool-floor", "1", "--pool-ceiling", "1",
                           "--pool-wait", "100s")
    kernel_id = server.start_kernel("python3")
    c = new_conversation(server)
    answers = []
    thread = threading.Thread(target=say, args=(server, c, "1", answers))
    thread.start()
    server.wait_show("pool", lambda p: p["waiting"] == 1, within(10))
    if how == "interrupt":
        assert server.post(f"/chat/conversations/{c}/interrupt").status_code == 204
    else:
        assert server.delete(f"/chat/conversations/{c}").status_code == 204
    thread.join(within(20))
    assert answers and answers[0].status_code == 410, "it left no record"
    # Its turn in the line is the next one's.
    later = []
    other = threading.Thread(target=lambda: later.append(server.start_kernel("python3")))
    other.start()
    server.wait_show("pool", lambda p: p["waiting"] == 2, within(10))
    assert server.delete(f"/api/kernels/{kernel_id}").status_code == 204
    other.join()
    server.wait_state(later[0], "idle", within(60))
