"""A Jupyter client for tests: both legacy framings and v1 over one WebSocket, strict about each
message it receives."""

import datetime
import json
import socket
import struct
import time
import uuid
from dataclasses import dataclass, field

import websocket

V1 = "v1.kernel.websocket.jupyter.org"
CHANNELS = ("shell", "control", "stdin", "iopub")
STATES = ("starting", "idle", "busy", "restarting", "dead")

# What JupyterLab checks in each iopub message before it takes it (wire-contract 1.9).
CONTENT = {
    "stream": {"name": str, "text": str},
    "display_data": {"data": dict, "metadata": dict},
    "execute_input": {"code": str, "execution_count": int},
    "execute_result": {"execution_count": int, "data": dict, "metadata": dict},
    "error": {"ename": str, "evalue": str, "traceback": list},
    "clear_output": {"wait": bool},
    "comm_open": {"comm_id": str, "target_name": str, "data": dict},
    "comm_msg": {"comm_id": str, "data": dict},
    "comm_close": {"comm_id": str},
    "status": {"execution_state": str},
}


class Closed(Exception):
    """The peer closed the socket; code is 1006 where it did so without a close frame."""

    def __init__(self, code, reason=""):
        super().__init__(f"closed {code} {reason}")
        self.code, self.reason = code, reason


class NoMessage(Exception):
    """The deadline passed without what was waited for."""


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def strict_json(data):
    """Parses as strictly as a browser: UTF-8, no NaN, no Infinity."""
    text = data.decode("utf-8") if isinstance(data, (bytes, bytearray, memoryview)) else data
    return json.loads(text, parse_constant=_no_constant)


@dataclass
class Message:
    channel: str
    header: dict
    parent: dict
    metadata: dict
    content: dict
    buffers: list = field(default_factory=list)
    opcode: int = 0
    raw: bytes = b""

    @property
    def type(self):
        return self.header["msg_type"]

    @property
    def parent_id(self):
        # What a hostile kernel puts there may be anything.
        found = self.parent.get("msg_id", "")
        return found if isinstance(found, str) else ""

    def __repr__(self):
        return f"<{self.channel} {self.type} {json.dumps(self.content)[:200]}>"


class Run:
    """All that came back for one request."""

    def __init__(self, msg_id=""):
        self.msg_id, self.messages = msg_id, []
        self.reply = None
        self.idle = False

    def add(self, m):
        self.messages.append(m)
        if m.channel in ("shell", "control") and m.type.endswith("_reply"):
            self.reply = m
        if m.type == "status" and m.content["execution_state"] == "idle":
            self.idle = True

    def iopub(self, kind=None):
        return [m for m in self.messages
                if m.channel == "iopub" and (kind is None or m.type == kind)]

    def text(self, name="stdout"):
        return "".join(m.content["text"] for m in self.iopub("stream")
                       if m.content["name"] == name)

    def outline(self):
        """Types in order, a stream's text in place of its type. A kernel may send one print in two
        pieces, which count as one here."""
        found = []
        for m in self.iopub():
            if m.type == "stream" and found and found[-1][0] == m.content["name"]:
                found[-1] = (m.content["name"], found[-1][1] + m.content["text"])
            elif m.type == "stream":
                found.append((m.content["name"], m.content["text"]))
            elif m.type == "status":
                found.append(m.content["execution_state"])
            else:
                found.append(m.type)
        return found

    @property
    def stdout(self):
        return self.text("stdout")

    @property
    def stderr(self):
        return self.text("stderr")

    @property
    def states(self):
        return [m.content["execution_state"] for m in self.iopub("status")]

    @property
    def types(self):
        return [m.type for m in self.iopub()]

    @property
    def status(self):
        return self.reply.content["status"] if self.reply else None

    @property
    def result(self):
        found = self.iopub("execute_result")
        return found[0].content["data"]["text/plain"] if found else None

    def __repr__(self):
        return f"<run {self.msg_id[:8]} {self.status} {self.messages!r}>"


def encode_v1(channel, parts, buffers=()):
    chunks = [channel.encode(), *parts, *buffers]
    offsets = [8 * (len(chunks) + 2)]
    for chunk in chunks:
        offsets.append(offsets[-1] + len(chunk))
    return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(chunks)


def decode_v1(data):
    (count,) = struct.unpack_from("<Q", data)
    assert count >= 6, f"{count} offsets"
    assert 8 * (count + 1) <= len(data)
    offsets = struct.unpack_from(f"<{count}Q", data, 8)
    assert offsets[0] == 8 * (count + 1), "first offset is not the end of the offsets"
    assert offsets[-1] == len(data), "last offset is not the frame's length"
    assert list(offsets) == sorted(offsets), "offsets fall"
    chunks = [bytes(data[a:b]) for a, b in zip(offsets, offsets[1:])]
    channel = chunks[0].decode("utf-8")
    return channel, [strict_json(c) for c in chunks[1:5]], chunks[5:]


def encode_b(document, buffers):
    chunks = [json.dumps(document).encode(), *buffers]
    offsets = [4 * (len(chunks) + 1)]
    for chunk in chunks[:-1]:
        offsets.append(offsets[-1] + len(chunk))
    return struct.pack(f">{len(chunks) + 1}I", len(chunks), *offsets) + b"".join(chunks)


def decode_b(data):
    (count,) = struct.unpack_from(">I", data)
    assert count >= 2, "a binary legacy frame has at least one buffer"
    offsets = list(struct.unpack_from(f">{count}I", data, 4))
    assert offsets[0] == 4 * (count + 1)
    assert offsets == sorted(offsets) and offsets[-1] <= len(data)
    chunks = [bytes(data[a:b]) for a, b in zip(offsets, [*offsets[1:], len(data)])]
    return strict_json(chunks[0]), chunks[1:]


def check_message(m):
    """What a client may count on in each message (wire-contract 1.9)."""
    for name in ("username", "version", "session", "msg_id", "msg_type"):
        assert isinstance(m.header.get(name), str), f"header.{name} in {m!r}"
    for part in (m.parent, m.metadata, m.content):
        assert isinstance(part, dict), f"a part is no object in {m!r}"
    assert m.channel in CHANNELS, m.channel
    if m.channel == "iopub":
        for name, kind in CONTENT.get(m.type, {}).items():
            assert isinstance(m.content.get(name), kind), f"content.{name} in {m!r}"
        if m.type == "status":
            assert m.content["execution_state"] in STATES, repr(m)


class Client:
    def __init__(self, ws, framing="legacy", session=None):
        self.ws, self.framing = ws, framing
        self.session = session or uuid.uuid4().hex
        self.runs, self.messages = {}, []

    # ---- sending ----
    def header(self, msg_type, **more):
        return {
            "msg_id": uuid.uuid4().hex, "msg_type": msg_type, "session": self.session,
            "username": "e2e", "version": "5.3",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(), **more,
        }

    def send(self, channel, msg_type, content=None, *, buffers=(), parent=None, metadata=None,
             **header):
        head = self.header(msg_type, **header)
        self.runs.setdefault(head["msg_id"], Run(head["msg_id"]))
        self.send_frame(self.encode(channel, head, parent or {}, metadata or {}, content or {},
                                    buffers))
        return head["msg_id"]

    def encode(self, channel, header, parent, metadata, content, buffers=()):
        if self.framing == "v1":
            parts = [json.dumps(p).encode() for p in (header, parent, metadata, content)]
            return encode_v1(channel, parts, buffers)
        document = {"channel": channel, "header": header, "parent_header": parent,
                    "metadata": metadata, "content": content}
        if buffers:
            return encode_b(document, buffers)
        return json.dumps({**document, "buffers": []})

    def send_frame(self, frame):
        if isinstance(frame, str):
            self.ws.send(frame, opcode=websocket.ABNF.OPCODE_TEXT)
        else:
            self.ws.send(bytes(frame), opcode=websocket.ABNF.OPCODE_BINARY)

    def execute(self, code, *, header=None, **content):
        return self.send("shell", "execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": True, **content}, **(header or {}))

    def answer(self, request, value):
        """Answers an input_request."""
        return self.send("stdin", "input_reply", {"value": value, "status": "ok"},
                         parent=request.header)

    # ---- receiving ----
    def receive(self, timeout=30):
        """The next message; raises NoMessage after timeout, Closed when the socket is."""
        opcode, data = self.receive_frame(time.monotonic() + timeout)
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
            raise Closed(code, data[2:].decode("utf-8", "replace"))
        m = self.decode(opcode, data)
        check_message(m)
        self.messages.append(m)
        self.runs.setdefault(m.parent_id, Run(m.parent_id)).add(m)
        return m

    def receive_frame(self, deadline):
        # In short turns, since a ping that comes in begins the library's wait anew.
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoMessage(f"nothing in time; got {self.messages[-20:]!r}")
            self.ws.settimeout(min(left, 1))
            try:
                return self.ws.recv_data()
            except websocket.WebSocketTimeoutException:
                continue
            except (websocket.WebSocketConnectionClosedException, OSError) as e:
                raise Closed(1006, str(e)) from None

    def decode(self, opcode, data):
        binary = opcode == websocket.ABNF.OPCODE_BINARY
        if self.framing == "v1":
            assert binary, "a text frame on a v1 socket"
            channel, parts, buffers = decode_v1(data)
            return Message(channel, *parts, buffers, opcode, data)
        document, buffers = decode_b(data) if binary else (strict_json(data), [])
        assert document["msg_id"] == document["header"]["msg_id"]
        assert document["msg_type"] == document["header"]["msg_type"]
        if not binary:
            assert document["buffers"] == [], "a text frame with buffers"
        return Message(document["channel"], document["header"], document["parent_header"],
                       document["metadata"], document["content"], buffers, opcode, data)

    def until(self, wanted, timeout=30, *, skip=0):
        """The first message (of those after the first `skip`) that `wanted` is true for."""
        deadline = time.monotonic() + timeout
        at = skip
        while True:
            while at < len(self.messages):
                if wanted(self.messages[at]):
                    return self.messages[at]
                at += 1
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoMessage(f"not what was waited for; got {self.messages[-20:]!r}")
            self.receive(left)

    def until_type(self, msg_type, parent=None, timeout=30, *, skip=0):
        return self.until(lambda m: m.type == msg_type and parent in (None, m.parent_id),
                          timeout, skip=skip)

    def until_state(self, state, timeout=30, *, skip=0):
        return self.until(lambda m: m.type == "status" and m.content["execution_state"] == state,
                          timeout, skip=skip)

    def until_text(self, text, parent, timeout=30):
        self.until(lambda m: text in self.runs[parent].stdout, timeout)

    def collect(self, msg_id, timeout=30):
        """Waits for reply and idle of that request; all that came for it."""
        run = self.runs[msg_id]
        deadline = time.monotonic() + timeout
        while not (run.reply and run.idle):
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoMessage(f"{run!r} did not end in {timeout} s; last: "
                                f"{self.messages[-10:]!r}")
            self.receive(left)
        return run

    def run(self, code, timeout=30, **content):
        return self.collect(self.execute(code, **content), timeout)

    def ask(self, msg_type, content=None, channel="shell", timeout=30):
        return self.collect(self.send(channel, msg_type, content), timeout)

    def info(self, timeout=60):
        """A kernel_info round trip; also says that the kernel is up."""
        msg_id = self.send("shell", "kernel_info_request")
        return self.until(lambda m: m.type == "kernel_info_reply" and m.parent_id == msg_id,
                          timeout)

    def drain(self):
        """Takes in whatever lies ready: a round trip marks the end of it."""
        self.info()

    def until_closed(self, timeout=30):
        """Reads to the close frame; the Closed that it met."""
        deadline = time.monotonic() + timeout
        try:
            while True:
                self.receive(deadline - time.monotonic())
        except Closed as closed:
            return closed

    def close(self):
        try:
            self.ws.close(timeout=2)
        except (OSError, websocket.WebSocketException):
            pass

    def cut(self):
        """Ends TCP without a close frame."""
        if self.ws.sock:
            self.ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.ws.sock.close()
            self.ws.sock = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def open_socket(url, *, subprotocols=None, headers=None, timeout=30, sslopt=None, **options):
    # skip_utf8_validation: the strict check is ours, on the bytes.
    ws = websocket.WebSocket(skip_utf8_validation=True, sslopt=sslopt,
                             sockopt=((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),))
    options.setdefault("suppress_origin", True)
    ws.connect(url, subprotocols=subprotocols, header=headers or {}, timeout=timeout, **options)
    return ws
