"""The first request after a start, and completion's cursor: field cases 10 and 11."""

import pytest

from gateway import within


def check_first(run, text):
    assert run.outline() == ["busy", "execute_input", ("stdout", text), "idle"], run
    assert run.status == "ok"
    assert len([m for m in run.messages if m.channel == "shell"]) == 1


@pytest.mark.parametrize("framing", ["legacy", "v1"])
@pytest.mark.timeout(300)
def test_case_10_first_line_is_there(docker_gateway, framing):
    """30 starts in all, 15 a framing; each request is sent as soon as the 201 is back."""
    for _ in range(15):
        with docker_gateway.kernel("python3") as kernel_id:
            with docker_gateway.open(kernel_id, framing) as c:
                check_first(c.run('print("first")', timeout=within(12)), "first\n")


def test_case_10_newest_kernel(process_gateway):
    for _ in range(3):
        with process_gateway.kernel("python3") as kernel_id:
            with process_gateway.open(kernel_id) as c:
                check_first(c.run('print("first")', timeout=within(20)), "first\n")


def test_case_10_after_a_restart(docker_gateway, kernel, client):
    for _ in range(3):
        assert docker_gateway.post(f"/api/kernels/{kernel}/restart").status_code == 200
        check_first(client.run('print("again")'), "again\n")


class TestCompletion:
    """Field case 11: the cursor counts code points."""

    CODE = 'w="\U0001f9ea\U0001f9ea"; prin'

    def ask(self, client, position):
        msg_id = client.send("shell", "complete_request",
                             {"code": self.CODE, "cursor_pos": position})
        return client.until(lambda m: m.channel == "shell" and m.parent_id == msg_id, within(4))

    def test_code_points(self, any_client):
        end = len(self.CODE)
        assert end == 12
        reply = self.ask(any_client, end)
        assert "print" in reply.content["matches"]
        assert (reply.content["cursor_start"], reply.content["cursor_end"]) == (8, 12)

    @pytest.mark.parametrize("position", [14, 18, 2**40, -1])
    def test_other_units_get_some_reply(self, any_client, position):
        reply = self.ask(any_client, position)
        assert reply.type == "complete_reply" and reply.content["status"] in ("ok", "error")
        assert any_client.run("print('fine')").stdout == "fine\n"

    def test_inspect_past_the_end(self, any_client):
        msg_id = any_client.send("shell", "inspect_request", {
            "code": self.CODE, "cursor_pos": 18, "detail_level": 0})
        any_client.until(lambda m: m.channel == "shell" and m.parent_id == msg_id, within(4))
        assert any_client.run("print('fine')").stdout == "fine\n"


def test_kernel_info_while_busy_is_answered(docker_gateway, kernel, client):
    """A page that opens while a cell runs never shows Unknown."""
    msg_id = client.execute("import time; print('on', flush=True); time.sleep(60)")
    client.until_text("on", msg_id)
    with docker_gateway.open(kernel) as late:
        late.info(within(3))
        late.until_state("busy", within(3))
        docker_gateway.post(f"/api/kernels/{kernel}/interrupt")
        late.until_state("idle", within(10))
    client.collect(msg_id)
