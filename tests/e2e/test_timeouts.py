"""Interrupts in place of timeouts: the wire half of field cases 22 and 23."""

import json

import pytest

from gateway import within


def test_case_22_awaited_cell(docker_gateway, kernel, any_client):
    c = any_client
    msg_id = c.execute("import asyncio\nprint('on', flush=True)\nawait asyncio.sleep(60)")
    c.until_text("on", msg_id)
    docker_gateway.post(f"/api/kernels/{kernel}/interrupt")
    # A request that is held while the interrupt is on its way, as a client that times out does.
    run = c.collect(msg_id, within(8))
    assert run.status in ("error", "aborted")
    assert c.run('print("next")', timeout=within(8)).stdout == "next\n"


@pytest.mark.timeout(240)
def test_case_23_interrupt_never_hits_the_next(docker_gateway, kernel, client):
    """20 rounds: the cell ends right when it is interrupted, the next one is innocent."""
    for k in range(20):
        first = client.execute(f"import time; print('on', flush=True); time.sleep({0.1 + k / 200})")
        client.until_text("on", first)
        done = client.runs[first]
        client.until(lambda m: True, skip=len(client.messages) - 1)
        docker_gateway.post(f"/api/kernels/{kernel}/interrupt")
        client.collect(first, within(10))
        run = client.run("print(sum(range(2_000_000)))", timeout=within(10))
        assert run.stdout == "1999999000000\n", (k, run)
        assert done.reply.content["status"] in ("ok", "error")
    docker_gateway.wait_state(kernel, "idle")


def test_case_23_late_reply_is_filed_under_its_request(fake_client):
    """FK: the first request's reply comes only while the second runs."""
    c = fake_client
    late = {"send": "shell", "type": "execute_reply", "content": json.dumps(
        {"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": []})}
    first = c.execute(json.dumps([{"no_reply": True}]))
    c.until(lambda m: m.type == "status" and m.parent_id == first
            and m.content["execution_state"] == "idle")
    head = json.dumps({"msg_id": first, "msg_type": "execute_request", "session": c.session,
                       "username": "e2e", "version": "5.3", "date": "2024-01-01T00:00:00Z"})
    # No execute goes out before the first has its reply; control is free, the script is not.
    second = c.execute(json.dumps([{**late, "parent": head}]))
    # A missing reply is made good by the gateway within its bound.
    assert c.collect(second, within(15)).status == "ok"
    assert c.runs[first].reply is not None
    assert c.runs[first].reply.parent_id == first


def test_missing_idle_is_made_good(fake_client):
    """A kernel that lost its idle status: the cell ends all the same (wire-contract 3.8)."""
    msg_id = fake_client.execute(json.dumps([{"no_idle": True}]))
    run = fake_client.collect(msg_id, within(10))
    assert run.status == "ok"
    assert fake_client.run("1").status == "ok"


def test_interrupt_of_an_idle_kernel_hits_nobody(docker_gateway, kernel, client):
    for _ in range(5):
        assert docker_gateway.post(f"/api/kernels/{kernel}/interrupt").status_code == 204
        assert client.run("print(sum(range(100000)))").stdout == "4999950000\n"
