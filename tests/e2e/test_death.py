"""Kernels that die: field cases 19 and 20, and each cause told by its name."""

import json
import os

import pytest

import engine
from gateway import wait, within
from wire import Closed

# What was printed is on its way once flush is back; a kernel that ends in the same instant takes it
# along. So the cells below wait a little between the two, in the kernel.
BEGIN = 'import os, time; print("begin", flush=True); time.sleep(.3); '
LONG = 'import time; print("begin", flush=True); time.sleep(60)'


def said(client):
    """All that was told to the user in words, by whatever message."""
    return "\n".join(json.dumps(m.content) for m in client.messages).lower()


def until_ended(client, *ids, timeout=20):
    runs = []
    for msg_id in ids:
        run = client.runs[msg_id]
        client.until(lambda m: run.reply and run.idle, within(timeout))
        runs.append(run)
    return runs


def begin(client, code=LONG, after='print("after")'):
    first = client.execute(code)
    second = client.execute(after)
    client.until_text("begin", first)
    return first, second


@pytest.mark.parametrize("framing", ["legacy", "v1"])
def test_case_19_killed_with_auto_restart(docker_gateway, kernel, framing):
    with docker_gateway.open(kernel, framing) as c, docker_gateway.open(kernel) as other:
        c.info(), other.info()
        killed = c.execute(BEGIN + "os.kill(os.getpid(), 9)")
        after = c.execute('print("after")')
        first, second = until_ended(c, killed, after)
        assert first.stdout == "begin\n"
        assert first.status in ("aborted", "error") and second.status in ("aborted", "error")
        assert second.stdout == ""
        c.until_state("restarting", within(5))
        other.until_state("restarting", within(5))
        docker_gateway.wait_state(kernel, "idle", within(15))
        fresh = c.run("print('first' in dir())")
        assert fresh.status == "ok" and fresh.stdout == "False\n"
        assert fresh.reply.content["execution_count"] == 1
        assert "signal 9" in said(c) or "sigkill" in said(c), said(c)[-2000:]


def test_case_19_killed_without_auto_restart(docker_server):
    server = docker_server("no-restart", "--auto-restart=false")
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        killed = c.execute(BEGIN + "os.kill(os.getpid(), 9)")
        after = c.execute('print("after")')
        first, second = until_ended(c, killed, after)
        assert first.stdout == "begin\n" and second.stdout == ""
        c.until_state("dead", within(5))
        model = server.wait_state(kernel_id, "dead", within(5))
        assert "9" in model["reason"] or "kill" in model["reason"].lower(), model
        assert server.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
        server.wait_state(kernel_id, "idle", within(15))
        with server.open(kernel_id) as d:
            assert d.run("1+1").result == "2"


def test_case_20_three_ways_to_leave(any_client):
    c = any_client
    run = c.run("x = 1; raise SystemExit(0)")
    assert run.status == "error" and run.reply.content["ename"] == "SystemExit"
    assert c.run("x").result == "1"
    run = c.run('raise SystemExit("halt")')
    assert run.status == "error" and run.reply.content["evalue"] == "halt"
    assert c.run("x").result == "1"
    run = c.run("exit()")
    assert run.status == "ok", run
    # The process goes a little after its reply.
    c.until_state("restarting", within(10))
    run = c.run("x", timeout=within(20))
    assert run.status == "error" and run.reply.content["ename"] == "NameError", run
    assert run.reply.content["execution_count"] == 1


def test_os_exit_names_the_code(docker_gateway, kernel, any_client):
    ids = begin(any_client, BEGIN + "os._exit(3)")
    first, second = until_ended(any_client, *ids)
    assert first.stdout == "begin\n" and second.status in ("aborted", "error")
    any_client.until_state("restarting", within(5))
    docker_gateway.wait_state(kernel, "idle", within(15))
    assert "exit code 3" in said(any_client), said(any_client)[-2000:]
    assert any_client.run("print('back')").stdout == "back\n"


def test_os_exit_at_once_hangs_nobody(any_client):
    """What was printed may be lost with the process; that the cell ended is not."""
    for _ in range(5):
        ids = any_client.execute('import os; print("x"); os._exit(0)'), any_client.execute("2")
        until_ended(any_client, *ids)
        any_client.info(within(15))
    assert any_client.run("print('back')").stdout == "back\n"


def test_segfault_names_the_signal(any_client):
    ids = begin(any_client, BEGIN + "import ctypes; ctypes.string_at(0)")
    until_ended(any_client, *ids)
    any_client.until_state("restarting", within(5))
    assert any_client.run("print('back')").stdout == "back\n"
    assert "signal 11" in said(any_client) or "sigsegv" in said(any_client)


def test_memory_bomb_is_named(docker_server):
    server = docker_server("memory", "--memory", "192M")
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        ids = begin(c, 'print("begin", flush=True)\nkeep = []\n'
                       "while True: keep.append(bytearray(b'x' * (1 << 24)))")
        until_ended(c, *ids, timeout=40)
        c.until_state("restarting", within(5))
        assert c.run("print('back')").stdout == "back\n"
        assert "out of memory" in said(c), said(c)[-2000:]


def test_killed_by_hand_is_not_called_out_of_memory(any_client):
    ids = begin(any_client, BEGIN + "os.kill(os.getpid(), 9)")
    until_ended(any_client, *ids)
    any_client.run("1")
    assert "out of memory" not in said(any_client)


def test_container_killed_from_outside(docker_gateway, kernel, any_client):
    ids = begin(any_client)
    engine.kill(docker_gateway.container_of(kernel))
    first, second = until_ended(any_client, *ids)
    assert first.stdout == "begin\n" and second.stdout == ""
    any_client.until(lambda m: m.type == "status"
                     and m.content["execution_state"] in ("restarting", "dead"), within(5))
    if docker_gateway.model(kernel)["execution_state"] == "dead":
        docker_gateway.post(f"/api/kernels/{kernel}/restart")
    docker_gateway.wait_state(kernel, "idle", within(20))
    with docker_gateway.open(kernel) as c:
        assert c.run("print('back')").stdout == "back\n"


def test_process_killed_from_outside(process_gateway):
    with process_gateway.kernel("plain") as kernel_id, process_gateway.open(kernel_id) as c:
        c.info()
        ids = begin(c)
        os.kill(process_gateway.slot_of(kernel_id)["pid"], 9)
        until_ended(c, *ids)
        c.until_state("restarting", within(5))
        assert c.run("print('back')", timeout=within(20)).stdout == "back\n"


def test_scripted_exit_code(process_gateway, fake_kernel, fake_client):
    msg_id = fake_client.execute(json.dumps([{"exit": 5}]))
    until_ended(fake_client, msg_id)
    fake_client.until_state("restarting", within(5))
    fake_client.info()
    assert "exit code 5" in said(fake_client)


def test_kernel_that_dies_again_and_again_stays_dead(process_server):
    server = process_server("often", "--restart-limit", "2")
    with server.kernel("fake") as kernel_id, server.open(kernel_id) as c:
        c.info()
        for _ in range(6):
            try:
                msg_id = c.execute(json.dumps([{"exit": 1}]))
                until_ended(c, msg_id)
                state = wait(lambda: server.model(kernel_id)["execution_state"],
                             lambda s: s in ("idle", "dead"), within(15))
            except (Closed, OSError):
                break
            if state == "dead":
                break
        assert server.wait_state(kernel_id, "dead", within(10))["reason"]
        c.until_state("dead", within(5))


def test_death_of_one_is_nobody_elses(docker_gateway, kernel, client):
    with docker_gateway.kernel("python3") as doomed, docker_gateway.open(doomed) as d:
        d.info()
        d.execute("import os; os._exit(1)")
        d.until_state("restarting", within(10))
        assert client.run("print('fine')").stdout == "fine\n"
        assert "restarting" not in {m.content.get("execution_state") for m in client.messages}


def test_notice_keeps_the_page_right(docker_gateway, kernel, any_client):
    """What the gateway says by itself passes Lab's checks and has an empty or a known parent."""
    ids = begin(any_client, BEGIN + "os._exit(3)")
    until_ended(any_client, *ids)
    any_client.run("1")
    for m in any_client.messages:
        assert m.parent == {} or m.parent.get("msg_id"), m
