"""The WebSocket handshake: wire-contract 1.5, field case 1, and what a session id is for (1.11)."""

import base64
import os
import re
import socket

import pytest
import websocket

from gateway import ALICE, wait, within
from test_auth import ws_status
from test_rest import NOBODY
from wire import V1


def upgrade(gateway, kernel_id, *headers, query=""):
    """The raw answer to an upgrade, as (status, list of header lines)."""
    request = "\r\n".join([
        f"GET /api/kernels/{kernel_id}/channels{query} HTTP/1.1", "Host: 127.0.0.1",
        "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode(),
        f"Authorization: token {ALICE}", *headers, "", ""])
    with socket.create_connection(("127.0.0.1", gateway.port), 20) as s:
        s.sendall(request.encode())
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = s.recv(4096)
            if not chunk:
                break
            data += chunk
    lines = data.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    return int(lines[0].split(" ")[1]), lines[1:]


def agreed(lines):
    return [v.split(":", 1)[1].strip() for v in lines
            if v.lower().startswith("sec-websocket-protocol:")]


class TestSubprotocol:
    """Field case 1: the framing that was agreed on is the framing that is spoken."""

    @pytest.mark.parametrize("offer, chosen", [
        ([f"Sec-WebSocket-Protocol: {V1}"], [V1]), ([], []),
        ([f"Sec-WebSocket-Protocol: foo, {V1}"], [V1]),
        ([f"Sec-WebSocket-Protocol: {V1}, foo"], [V1]),
        ([f"Sec-WebSocket-Protocol: foo,{V1},bar"], [V1])], ids=str)
    def test_answer(self, process_gateway, fake_kernel, offer, chosen):
        status, lines = upgrade(process_gateway, fake_kernel, *offer)
        assert status == 101
        assert agreed(lines) == chosen

    def test_unknown_only(self, process_gateway, fake_kernel):
        # A browser would fail on an answer without one of its protocols; so it is said as HTTP.
        status, lines = upgrade(process_gateway, fake_kernel, "Sec-WebSocket-Protocol: foo")
        assert status in (101, 400) and agreed(lines) == []

    def test_server_internal_name_is_no_protocol(self, process_gateway, fake_kernel):
        for name in ("http", "ws", "jupyter", "default", "channels", "coppice", "legacy"):
            _, lines = upgrade(process_gateway, fake_kernel, f"Sec-WebSocket-Protocol: {name}")
            assert agreed(lines) == [], name

    @pytest.mark.parametrize("framing, subprotocols", [
        ("v1", [V1]), ("legacy", None), ("v1", ["foo", V1])], ids=["v1", "none", "both"])
    def test_frames_follow(self, docker_gateway, kernel, framing, subprotocols):
        with docker_gateway.open(kernel, framing, subprotocols=subprotocols) as c:
            c.info()
            assert c.run("print('x')").stdout == "x\n"
            kinds = {m.opcode for m in c.messages}
            assert kinds == {websocket.ABNF.OPCODE_BINARY if framing == "v1"
                             else websocket.ABNF.OPCODE_TEXT}

    def test_both_framings_on_one_kernel(self, docker_gateway, kernel):
        with docker_gateway.open(kernel) as a, docker_gateway.open(kernel, "v1") as b:
            a.info(), b.info()
            run = a.run("print('seen by both')")
            other = b.until_type("stream", run.msg_id)
            assert other.content == run.iopub("stream")[0].content
            b.until_state("idle")

    def test_compression_may_be_offered(self, process_gateway, fake_kernel):
        status, lines = upgrade(
            process_gateway, fake_kernel,
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
        assert status == 101
        with process_gateway.open(fake_kernel) as c:
            assert c.run("1").status == "ok"


class TestRefusal:
    """Before the upgrade, so that the client can tell."""

    def test_unknown_kernel(self, process_gateway):
        assert upgrade(process_gateway, NOBODY)[0] == 404

    def test_deleted_kernel(self, process_gateway):
        kernel_id = process_gateway.start_kernel("fake")
        process_gateway.delete(f"/api/kernels/{kernel_id}")
        assert upgrade(process_gateway, kernel_id)[0] == 404

    def test_dead_kernel(self, process_gateway):
        """A page that is refused asks for the kernel and shows it as dead; one whose socket closes
        connects again and again."""
        kernel_id = process_gateway.start_kernel("broken")
        process_gateway.wait_state(kernel_id, "dead")
        assert upgrade(process_gateway, kernel_id)[0] == 503
        process_gateway.delete(f"/api/kernels/{kernel_id}")

    def test_long_session_id(self, process_gateway, fake_kernel):
        assert upgrade(process_gateway, fake_kernel, query="?session_id=" + "x" * 255)[0] == 101
        assert upgrade(process_gateway, fake_kernel, query="?session_id=" + "x" * 256)[0] == 400

    def test_no_token(self, process_gateway, fake_kernel):
        assert ws_status(process_gateway.channels_url(fake_kernel)) == 401

    def test_other_path(self, process_gateway):
        url = process_gateway.url.replace("http", "ws", 1) + f"/api/kernels?token={ALICE}"
        assert ws_status(url) in (200, 400, 404, 426)

    def test_plain_get(self, process_gateway, fake_kernel):
        r = process_gateway.get(f"/api/kernels/{fake_kernel}/channels")
        assert 400 <= r.status_code < 500

    @pytest.mark.parametrize("version", ["8", "0", "x"])
    def test_other_version(self, process_gateway, fake_kernel, version):
        with socket.create_connection(("127.0.0.1", process_gateway.port), 20) as s:
            s.sendall((f"GET /api/kernels/{fake_kernel}/channels HTTP/1.1\r\nHost: x\r\n"
                       f"Authorization: token {ALICE}\r\n"
                       "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                       f"Sec-WebSocket-Version: {version}\r\n"
                       "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").encode())
            s.settimeout(within(5))
            try:
                assert not s.recv(4096).startswith(b"HTTP/1.1 101")
            except OSError:
                pass
        assert process_gateway.get("/api").status_code == 200


class TestSessionId:
    def test_none_is_needed(self, docker_gateway, kernel):
        with docker_gateway.open(kernel, session="") as c:
            c.info()
            assert c.run("print(1)").stdout == "1\n"

    @pytest.mark.parametrize("framing", ["legacy", "v1"])
    def test_newer_socket_takes_over(self, docker_gateway, kernel, framing):
        """JupyterLab behind its proxy opens a second socket some 50 ms after the first: what the
        older has not had goes to the newer, nothing is lost and nothing comes twice."""
        with docker_gateway.open(kernel, framing, session="same") as old:
            old.info()
            msg_id = old.execute("import time; print('a', flush=True); time.sleep(.5); print('b')")
            old.until_text("a", msg_id)
            # What TCP has not acknowledged counts as not had: this acknowledges at once.
            old.ws.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            with docker_gateway.open(kernel, framing, session="same") as new:
                new.runs[msg_id] = run = old.runs[msg_id]
                new.collect(msg_id)
                assert run.outline() == ["busy", "execute_input", ("stdout", "a\nb\n"), "idle"]
                assert len([m for m in run.messages if m.channel == "shell"]) == 1
                assert new.run("print('c')").stdout == "c\n"
                # The older hears nothing more.
                seen = len(old.messages)
                old.ws.send_close()
                old.until_closed(within(5))
                assert len(old.messages) == seen
            wait(lambda: docker_gateway.model(kernel), lambda m: m["connections"] == 0)

    def test_rapid_pairs(self, docker_gateway, kernel):
        """25 openings, each twice: never Unknown, the next cell always ends."""
        for k in range(25):
            with docker_gateway.open(kernel, session="pair") as old:
                old.send("shell", "kernel_info_request")
                with docker_gateway.open(kernel, session="pair") as new:
                    new.info()
                    assert new.run(f"print({k})").stdout == f"{k}\n"
                    states = [m.content["execution_state"] for m in new.messages
                              if m.type == "status"]
                    assert states[-1] == "idle"

    def test_no_leak_over_reconnects(self, process_gateway, fake_kernel):
        fds = f"/proc/{process_gateway.process.pid}/fd"

        def round_trips(n):
            for _ in range(n):
                with process_gateway.open(fake_kernel, "v1") as c:
                    c.info()
            wait(lambda: process_gateway.model(fake_kernel), lambda m: m["connections"] == 0)
            return len(os.listdir(fds))

        before = round_trips(20)
        wait(lambda: round_trips(20), lambda n: n <= before + 2, within(20))


def test_socket_while_starting_is_accepted_at_once(docker_gateway):
    with docker_gateway.kernel("python3") as kernel_id:
        with docker_gateway.open(kernel_id) as c:
            assert c.run("print('early')").stdout == "early\n"


def test_ping_is_answered(process_gateway, fake_kernel):
    with process_gateway.open(fake_kernel) as c:
        c.ws.ping(b"are you there")
        while True:
            opcode, frame = c.ws.recv_data_frame(control_frame=True)
            if opcode == websocket.ABNF.OPCODE_PONG:
                assert frame.data == b"are you there"
                break


def test_gateway_pings_and_closes_the_silent(process_server):
    server = process_server("ping", "--ws-ping-interval", "200ms", "--ws-ping-timeout", "1s")
    with server.kernel("fake") as kernel_id:
        with server.open(kernel_id) as c:
            opcode = None
            while opcode != websocket.ABNF.OPCODE_PING:
                opcode, frame = c.ws.recv_data_frame(control_frame=True)
            # From here on nothing is read, so no pong goes out.
            server.wait_show("clients", lambda rows: not any(
                r.get("kernel") == kernel_id and r.get("attached", True) for r in rows), within(15))
            wait(lambda: server.model(kernel_id), lambda m: m["connections"] == 0, within(10))


def test_case_1_wrong_ids_make_no_state(process_gateway):
    before = len(process_gateway.show("kernels"))
    for k in range(20):
        upgrade(process_gateway, re.sub("0", str(k % 10), NOBODY))
    assert len(process_gateway.show("kernels")) == before
