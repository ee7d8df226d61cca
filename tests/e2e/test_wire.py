"""The three framings, and what malformed frames do: wire-contract 1.6 to 1.8, field case 4."""

import base64
import json
import struct

import pytest
import websocket

from gateway import within
from wire import Closed, NoMessage, Run, encode_b, encode_v1

TEXT, BINARY = websocket.ABNF.OPCODE_TEXT, websocket.ABNF.OPCODE_BINARY
BUFFERS = [[], [b""], [b"\x00\xff", b""]]


def script(*steps):
    return json.dumps(steps)


def say(text):
    return {"send": "iopub", "type": "stream",
            "content": json.dumps({"name": "stdout", "text": text})}


def seen(client):
    """What the scripted kernel received since the last question."""
    return json.loads(client.run(script({"seen": True})).stdout)


class TestBuffers:
    """Field case 4."""

    def test_from_kernel(self, fake_client):
        steps = [{"send": "iopub", "type": "comm_msg",
                  "content": json.dumps({"comm_id": f"c{k}", "data": {}}),
                  "buffers64": [base64.b64encode(b).decode() for b in buffers]}
                 for k, buffers in enumerate(BUFFERS)]
        run = fake_client.run(script(*steps))
        got = run.iopub("comm_msg")
        assert [m.buffers for m in got] == BUFFERS
        if fake_client.framing == "legacy":
            assert [m.opcode for m in got] == [TEXT, BINARY, BINARY]
            assert struct.unpack_from(">I", got[2].raw)[0] == 3
        else:
            assert [struct.unpack_from("<Q", m.raw)[0] for m in got] == [6, 7, 8]

    def test_to_kernel(self, fake_client):
        seen(fake_client)
        for k, buffers in enumerate(BUFFERS):
            fake_client.send("shell", "comm_msg", {"comm_id": f"c{k}", "data": {}}, buffers=buffers)
        got = [s for s in seen(fake_client) if s["header"]["msg_type"] == "comm_msg"]
        assert [[base64.b64decode(b) for b in s["buffers"]] for s in got] == BUFFERS

    def test_real_comm_echo(self, any_client):
        run = any_client.run("""
            from comm import create_comm, get_comm_manager
            def opened(comm, msg):
                comm.on_msg(lambda m: comm.send({"back": m["content"]["data"]},
                                                buffers=m["buffers"]))
            get_comm_manager().register_target("echo", opened)
        """.replace("\n            ", "\n"))
        assert run.status == "ok", run
        any_client.send("shell", "comm_open", {"comm_id": "e", "target_name": "echo", "data": {}})
        sent = [b"\x00\x01\xfe\xff" * 1000, b"", b"{}", bytes(range(256))]
        msg_id = any_client.send("shell", "comm_msg", {"comm_id": "e", "data": {"n": 1}},
                                 buffers=sent)
        back = any_client.until_type("comm_msg", msg_id)
        assert back.content["data"] == {"back": {"n": 1}} and back.buffers == sent

    def test_large_buffer(self, any_client):
        run = any_client.run("from comm import create_comm; c = create_comm('big');"
                             "c.send({}, buffers=[bytes(range(256)) * 40000])")
        assert run.iopub("comm_msg")[0].buffers == [bytes(range(256)) * 40000]

    def test_binary_as_text_frame(self, docker_gateway, kernel, client):
        """JupyterLab's proxy passes a page's binary frame on as TEXT with invalid UTF-8."""
        client.run("from comm import get_comm_manager\n"
                   "def opened(comm, msg):\n"
                   "    comm.on_msg(lambda m: print([bytes(b) for b in m['buffers']]))\n"
                   "get_comm_manager().register_target('t', opened)")
        client.send("shell", "comm_open", {"comm_id": "t", "target_name": "t", "data": {}})
        head = client.header("comm_msg")
        frame = encode_b({"channel": "shell", "header": head, "parent_header": {}, "metadata": {},
                          "content": {"comm_id": "t", "data": {}}}, [b"\xff\xfe\x00", b"ok"])
        client.ws.send(frame, opcode=TEXT)
        stream = client.until_type("stream", head["msg_id"])
        assert stream.content["text"] == "[b'\\xff\\xfe\\x00', b'ok']\n"

    def test_a_text_frame_is_no_binary_for_others(self, docker_gateway, kernel, client):
        with docker_gateway.open(kernel, "v1") as b:
            b.info()
            run = client.run("from comm import create_comm\n"
                             "c = create_comm('x'); c.send({}, buffers=[b'1'])")
            got = b.until_type("comm_msg", run.msg_id)
            assert got.buffers == [b"1"] == run.iopub("comm_msg")[0].buffers


class TestToleranceLegacy:
    """What real clients leave out or write their own way."""

    def execute(self, client, *, drop=(), header=(), **change):
        head = {**client.header("execute_request"), **dict(header)}
        document = {"channel": "shell", "header": head, "parent_header": {}, "metadata": {},
                    "content": {"code": "print('here')", "silent": False}, "buffers": [], **change}
        for name in drop:
            del document[name]
        client.runs[head["msg_id"]] = run = Run(head["msg_id"])
        client.ws.send(json.dumps(document))
        client.collect(head["msg_id"])
        assert run.stdout == "here\n", run

    @pytest.mark.parametrize("options", [
        {"drop": ["channel"]}, {"drop": ["buffers"]}, {"buffers": {}}, {"drop": ["metadata"]},
        {"drop": ["parent_header"]}, {"header": {"date": ""}},
        {"header": {"date": 1700000000.5}}, {"header": {"session": ""}},
        {"header": {"version": "5.0"}}, {"msg_id": "x", "msg_type": "execute_request"},
        {"extra": [1, 2]}], ids=str)
    def test_accepted(self, client, options):
        self.execute(client, **options)

    def test_date_absent(self, client):
        head = client.header("execute_request")
        del head["date"]
        self.execute(client, header=head)
        # The helper puts a date back; so once by hand.
        client.ws.send(json.dumps({"header": head, "content": {"code": "1", "silent": False}}))
        client.until(lambda m: m.type == "execute_reply" and m.parent_id == head["msg_id"])

    def test_numbers_keep_their_digits(self, fake_client):
        big = '{"a": 12345678901234567890, "b": 1.10, "c": 1e400, "d": 0.1000000000000000055}'
        run = fake_client.run(script({"send": "iopub", "type": "display_data",
                                      "content": '{"data": {"x/y": %s}, "metadata": {}}' % big}))
        assert big.encode() in run.iopub("display_data")[0].raw


GOOD_HEAD = {"msg_id": "m", "msg_type": "kernel_info_request", "session": "s", "username": "u",
             "version": "5.3"}
PARTS = [json.dumps(GOOD_HEAD).encode(), b"{}", b"{}", b"{}"]
GOOD_V1 = encode_v1("shell", PARTS)


def v1(*numbers, tail=b""):
    return struct.pack(f"<{len(numbers)}Q", *numbers) + tail


MALFORMED_V1 = {
    "empty": b"", "short": b"\x06", "count zero": v1(0), "count five": v1(5, *[48] * 5),
    # 11 bytes that claim 2^64 - 1 offsets took another server 11 GB.
    "count huge, 11 bytes": v1(2**64 - 1, tail=b"abc"), "count large": v1(2**32, *[8] * 8),
    "count wraps": v1(2**61, *[16] * 8), "offsets fall": v1(6, 56, 50, 60, 60, 60, 60),
    "offset past end": v1(6, 56, 61, 61, 61, 61, 2**63), "offset huge": v1(6, *[2**64 - 1] * 6),
    "first offset low": GOOD_V1[:8] + struct.pack("<Q", 0) + GOOD_V1[16:],
    "cut": GOOD_V1[:-1], "unknown channel": encode_v1("shell2", PARTS),
    "channel not text": GOOD_V1.replace(b"shell", b"\xff\xfe\xfd\xfc\xfb", 1),
    "header no object": encode_v1("shell", [b"[]", *PARTS[1:]]),
    "header not JSON": encode_v1("shell", [b"{", *PARTS[1:]]),
    "header empty": encode_v1("shell", [b"", *PARTS[1:]]),
    "header without msg_type": encode_v1("shell", [b'{"msg_id": "m"}', *PARTS[1:]]),
    "header without msg_id": encode_v1("shell", [b'{"msg_type": "m"}', *PARTS[1:]]),
    "content NaN": encode_v1("shell", [*PARTS[:3], b'{"a": NaN}']),
    "content bad UTF-8": encode_v1("shell", [*PARTS[:3], b'{"a": "\xff"}']),
}
MALFORMED_LEGACY = {
    "empty text": (TEXT, b""), "no JSON": (TEXT, b"hello"), "array": (TEXT, b"[]"),
    "cut": (TEXT, b'{"header": {"msg_id"'), "two": (TEXT, b"{}{}"), "no header": (TEXT, b"{}"),
    "header text": (TEXT, b'{"header": "x"}'), "id number": (TEXT, b'{"header": {"msg_id": 1, '
                                                             b'"msg_type": "execute_request"}}'),
    "bad UTF-8": (TEXT, b'{"header": "\xff"}'), "NaN": (TEXT, b'{"header": NaN}'),
    "channel unknown": (TEXT, json.dumps({"channel": "nowhere", "header": GOOD_HEAD}).encode()),
    "channel number": (TEXT, json.dumps({"channel": 1, "header": GOOD_HEAD}).encode()),
    "deep": (TEXT, b'{"header":' + b"[" * 200000 + b"]" * 200000 + b"}"),
    "binary short": (BINARY, b"\x00"), "binary zero parts": (BINARY, struct.pack(">I", 0)),
    "binary count huge": (BINARY, struct.pack(">II", 2**32 - 1, 8)),
    "binary offsets fall": (BINARY, struct.pack(">III", 2, 12, 4) + b"{}"),
    "binary offset past end": (BINARY, struct.pack(">III", 2, 12, 2**31) + b"{}"),
    "binary no JSON": (BINARY, struct.pack(">III", 2, 12, 14) + b"xx"),
    "binary random": (BINARY, bytes(range(256))),
    "text of zeros": (TEXT, b"\0" * 64),
}


class TestMalformed:
    """A bad frame closes its own socket with 1007 or 1008 and a reason, and nobody else's."""

    def check(self, gateway, kernel_id, framing, opcode, frame):
        with gateway.open(kernel_id) as witness, gateway.open(kernel_id, "v1") as second:
            witness.info(), second.info()
            with gateway.open(kernel_id, framing) as bad:
                bad.info()
                bad.ws.send(frame, opcode=opcode)
                closed = bad.until_closed(within(5))
                assert closed.code in (1007, 1008), closed
                assert closed.reason, "says why"
            assert witness.run("1").status == "ok"
            second.until_state("idle")
            assert second.run("1").status == "ok"

    @pytest.mark.parametrize("name", MALFORMED_V1)
    def test_v1(self, process_gateway, fake_kernel, name):
        self.check(process_gateway, fake_kernel, "v1", BINARY, MALFORMED_V1[name])

    @pytest.mark.parametrize("name", MALFORMED_LEGACY)
    def test_legacy(self, process_gateway, fake_kernel, name):
        self.check(process_gateway, fake_kernel, "legacy", *MALFORMED_LEGACY[name])

    def test_v1_as_text(self, process_gateway, fake_kernel):
        self.check(process_gateway, fake_kernel, "v1", TEXT, b'{"header": {}}')

    @pytest.mark.parametrize("frame", [
        b"\x83\x80abcd", b"\x81\x05hello", b"\xf1\x80abcd", b"\x89\xfe\x00\x7eabcd" + b"x" * 126,
        b"\x80\x80abcd"], ids=["reserved opcode", "unmasked", "reserved bits", "long ping",
                               "continuation of nothing"])
    def test_below_the_message(self, process_gateway, fake_kernel, frame):
        with process_gateway.open(fake_kernel) as witness, process_gateway.open(fake_kernel) as bad:
            witness.info(), bad.info()
            bad.ws.sock.sendall(frame)
            try:
                while True:
                    bad.receive(within(5))
            except Closed:
                pass
            assert witness.run("1").status == "ok"

    def test_fragments_are_one_message(self, process_gateway, fake_kernel):
        for framing in ("legacy", "v1"):
            with process_gateway.open(fake_kernel, framing) as c:
                c.info()
                head = c.header("kernel_info_request")
                frame = c.encode("shell", head, {}, {}, {})
                frame = frame.encode() if isinstance(frame, str) else frame
                kind = TEXT if framing == "legacy" else BINARY
                third = len(frame) // 3
                pieces = [frame[:third], frame[third:2 * third], b"", frame[2 * third:]]
                for k, piece in enumerate(pieces):
                    c.ws.send_frame(websocket.ABNF.create_frame(
                        piece, kind if k == 0 else websocket.ABNF.OPCODE_CONT,
                        1 if k == len(pieces) - 1 else 0))
                    c.ws.ping()
                c.until(lambda m: m.type == "kernel_info_reply" and m.parent_id == head["msg_id"])

    @pytest.mark.parametrize("channel, content", [
        ("shell", b'{"a":' + b"[" * 200000 + b"]" * 200000 + b"}"), ("iopub", b"{}"),
        ("hb", b"{}")], ids=["deep", "iopub", "hb"])
    def test_odd_harms_nobody(self, process_gateway, fake_kernel, channel, content):
        with process_gateway.open(fake_kernel) as witness:
            witness.info()
            with process_gateway.open(fake_kernel, "v1") as odd:
                odd.info()
                odd.ws.send(encode_v1(channel, [*PARTS[:3], content]), opcode=BINARY)
                try:
                    odd.info(within(3))
                except (Closed, NoMessage, OSError):
                    pass
            assert witness.run("1").status == "ok"

    def test_many_bad_sockets(self, process_gateway, fake_kernel):
        with process_gateway.open(fake_kernel) as witness:
            witness.info()
            bad = [process_gateway.open(fake_kernel, "v1") for _ in range(30)]
            for c in bad:
                c.ws.send(MALFORMED_V1["count huge, 11 bytes"], opcode=BINARY)
            for c in bad:
                assert c.until_closed(within(5)).code in (1007, 1008)
            assert witness.run("1").status == "ok"


def test_large_request(any_client):
    """12 MiB in one message: over the limit at which other servers close the socket."""
    any_client.run("from comm import get_comm_manager\n"
                   "def opened(comm, msg):\n"
                   "    comm.on_msg(lambda m: print(len(m['content']['data']['x'])))\n"
                   "get_comm_manager().register_target('large', opened)")
    any_client.send("shell", "comm_open", {"comm_id": "l", "target_name": "large", "data": {}})
    msg_id = any_client.send("shell", "comm_msg", {"comm_id": "l", "data": {"x": "y" * (12 << 20)}})
    any_client.until_text(f"{12 << 20}\n", msg_id)
    assert any_client.run("print('on')").stdout == "on\n"


def test_large_output(any_client):
    run = any_client.run("from IPython.display import display\n"
                         "display({'text/plain': 'z' * (12 << 20)}, raw=True)", timeout=60)
    assert len(run.iopub("display_data")[0].content["data"]["text/plain"]) == 12 << 20


@pytest.mark.parametrize("framing", ["legacy", "v1"])
def test_over_the_limit_is_said(process_server, framing):
    """Not by a close: pages take that for a dead kernel and come back with the same message."""
    server = process_server("message", "--message-limit", "1M")
    with server.kernel("fake") as kernel_id, server.open(kernel_id) as witness:
        witness.info()
        with server.open(kernel_id, framing) as c:
            c.info()
            msg_id = c.execute("#" * (3 << 20))
            c.until(lambda m: m.type == "stream" and "message_limit" in m.content["text"],
                    within(5))
            run = c.collect(msg_id, within(5))
            assert run.status in ("error", "aborted")
            assert c.run("1").status == "ok"
        assert witness.run("1").status == "ok"


@pytest.mark.parametrize("header", [
    {"version": None}, {"version": 5}, {"version": "five"}, {"date": "9999-99-99T99:99:99Z"}], ids=repr)
def test_header_that_jupyter_client_raises_over(any_client, header):
    """ipykernel dropped it without a word, and every later cell of every page waited behind it."""
    run = any_client.collect(any_client.execute("6 * 7", header=header))
    assert run.result == "42" and run.states == ["busy", "idle"]
    assert any_client.run("1 + 1").result == "2"
