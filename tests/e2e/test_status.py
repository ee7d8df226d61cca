"""Queue and status: field cases 16 and 17, and several clients on one kernel."""

import pytest

from gateway import wait, within


@pytest.mark.parametrize("stop_on_error", [True, False])
def test_case_16_queued_behind_an_error(any_client, stop_on_error):
    c = any_client
    burst = [c.execute(code, stop_on_error=stop_on_error) for code in (
        "import time; time.sleep(.4); 1/0", 'print("B")', 'print("C")')]
    info = c.send("shell", "kernel_info_request")
    a, b, d = (c.collect(m, 20) for m in burst)
    reply = c.until(lambda m: m.type == "kernel_info_reply" and m.parent_id == info)
    assert reply.content["status"] == "ok"
    assert a.status == "error" and a.iopub("error")[0].content["ename"] == "ZeroDivisionError"
    if stop_on_error:
        assert (b.status, d.status) == ("aborted", "aborted")
        for run in (b, d):
            assert run.states == ["busy", "idle"]
            assert not run.iopub("stream") and not run.iopub("execute_input")
    else:
        assert (b.status, d.status) == ("ok", "ok")
        assert (b.stdout, d.stdout) == ("B\n", "C\n")
    assert c.run('print("D")').stdout == "D\n"


def test_case_16_the_others_requests_are_aborted_too(docker_gateway, kernel, client):
    """As ipykernel would: the queue is the kernel's, not the socket's."""
    with docker_gateway.open(kernel, "v1") as other:
        other.info()
        a = client.execute("import time; print('on', flush=True); time.sleep(1); 1/0")
        other.until_text("on", a) if a in other.runs else other.until_type("stream", a)
        b = other.execute("print('B')")
        assert client.collect(a).status == "error"
        assert other.collect(b).status == "aborted"
        assert other.run("print('fine')").stdout == "fine\n"


def test_case_17_failure_only_in_the_reply(any_client):
    for code in ("%no_such_magic 1", "%%no_such_cell\npass"):
        run = any_client.run(code)
        assert run.status == "error", run
        assert run.reply.content["ename"] == "UsageError"
        assert "no_such" in run.reply.content["evalue"]
    assert any_client.run('print("ok")').stdout == "ok\n"


def test_one_busy_and_one_idle_for_each(any_client):
    ids = [any_client.execute(f"print({k})") for k in range(50)]
    for k, msg_id in enumerate(ids):
        run = any_client.collect(msg_id)
        assert run.outline() == ["busy", "execute_input", ("stdout", f"{k}\n"), "idle"]
    counts = [any_client.runs[m].reply.content["execution_count"] for m in ids]
    assert counts == list(range(counts[0], counts[0] + 50)), "in the order in which they were sent"


def test_silent_and_history_free(any_client):
    run = any_client.run("y = 5", silent=True)
    assert run.status == "ok" and not run.iopub("execute_input")
    assert any_client.run("y", store_history=False).result == "5"
    assert any_client.run("1/0", silent=True).status == "error"


def test_user_expressions(any_client):
    run = any_client.run("z = 6", user_expressions={"a": "z * 7", "b": "no"})
    found = run.reply.content["user_expressions"]
    assert found["a"]["data"]["text/plain"] == "42" and found["b"]["status"] == "error"


def test_reply_goes_to_the_asker_output_to_all(docker_gateway, kernel, client):
    with docker_gateway.open(kernel, "v1") as other:
        other.info()
        run = client.run("print('to all'); 7")
        other.until(lambda m: m.type == "status" and m.parent_id == run.msg_id
                    and m.content["execution_state"] == "idle")
        seen = other.runs[run.msg_id]
        assert seen.stdout == "to all\n" and seen.result == "7"
        assert seen.reply is None
        other.drain()
        assert other.runs[run.msg_id].reply is None


def test_clients_with_equal_message_ids(docker_gateway, kernel):
    """Two programs that both count from 1 do not get each other's replies."""
    with docker_gateway.open(kernel) as a, docker_gateway.open(kernel) as b:
        a.info(), b.info()
        for c, text in ((a, "a"), (b, "b")):
            head = {**c.header("execute_request"), "msg_id": "1"}
            c.send_frame(c.encode("shell", head, {}, {}, {"code": f"print('{text}')",
                                                          "silent": False}))
            reply = c.until(lambda m: m.type == "execute_reply" and m.parent_id == "1")
            assert reply.content["status"] == "ok"
            assert reply.parent["session"] == c.session


def test_admin_view_of_an_execution(docker_gateway, kernel, client):
    msg_id = client.execute("import time; print('on', flush=True); time.sleep(60)")
    held = client.execute("print('held')")
    client.until_text("on", msg_id)
    rows = wait(lambda: docker_gateway.rows_of("executions", kernel), lambda r: len(r) >= 2,
                within(5))
    states = {r["state"] for r in rows}
    assert "running" in states and "queued" in states, rows
    docker_gateway.post(f"/api/kernels/{kernel}/interrupt")
    client.collect(msg_id), client.collect(held)
    wait(lambda: docker_gateway.rows_of("executions", kernel),
         lambda rows: not any(r["state"] in ("running", "queued") for r in rows), within(5))


def test_control_is_not_held(any_client):
    msg_id = any_client.execute("import time; print('on', flush=True); time.sleep(60)")
    any_client.until_text("on", msg_id)
    info = any_client.send("control", "kernel_info_request")
    any_client.until(lambda m: m.type == "kernel_info_reply" and m.parent_id == info
                     and m.channel == "control", within(3))
    any_client.ask("interrupt_request", channel="control")
    assert any_client.collect(msg_id).status == "error"


def test_one_shell_message_after_another(any_client):
    """What is sent after an execute is answered after it, in order."""
    first = any_client.execute("import time; time.sleep(.3); value = 11")
    complete = any_client.send("shell", "complete_request", {"code": "valu", "cursor_pos": 4})
    any_client.collect(first), any_client.collect(complete)
    assert "value" in any_client.runs[complete].reply.content["matches"]
    order = [m.type for m in any_client.messages if m.channel == "shell" and m.type.startswith(
        ("execute", "complete"))]
    assert order[-2:] == ["execute_reply", "complete_reply"]
