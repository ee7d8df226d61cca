"""The client that is timed: one program over two transports, so that what differs is the way only.

Equal on both sides: building the request, parsing header and parent header of each message that
comes, and the end, which is the reply and the idle status both seen. Not equal, and to the direct
side's advantage: it does not check signatures. It signs what it sends, which over a WebSocket the
gateway does. The WebSocket side masks with zeros, as plain Python could only do it slowly. It speaks
v1 or the legacy framing, and is an ordinary client or one that acknowledges at once: a second small
write of a server waits for the acknowledgement of the first, which an ordinary client's machine
sends up to 40 ms late."""

import base64
import hashlib
import hmac
import json
import os
import select
import socket
import struct
import time
import uuid

import zmq

V1 = "v1.kernel.websocket.jupyter.org"
DELIMITER = b"<IDS|MSG>"
TIMEOUT_S = 60


class Direct:
    """ZeroMQ sockets to a kernel: DEALER for shell, SUB for iopub."""

    def __init__(self, context, addresses, key, curve=None):
        self.session = uuid.uuid4().hex
        self.key = hmac.new(key.encode(), digestmod=hashlib.sha256)
        self.shell = self._open(context, zmq.DEALER, addresses["shell"], curve)
        self.iopub = self._open(context, zmq.SUB, addresses["iopub"], curve)
        self.iopub.subscribe(b"")
        self.poller = zmq.Poller()
        self.poller.register(self.iopub, zmq.POLLIN)
        self.poller.register(self.shell, zmq.POLLIN)

    @staticmethod
    def _open(context, kind, address, curve):
        s = context.socket(kind)
        s.linger = 0
        s.rcvhwm = 0
        if curve:
            s.curve_publickey, s.curve_secretkey = curve
            s.curve_serverkey = curve[0]
        s.connect(address)
        return s

    def send(self, header, content):
        parts = [header, b"{}", b"{}", content]
        signature = self.key.copy()
        for part in parts:
            signature.update(part)
        self.shell.send_multipart([DELIMITER, signature.hexdigest().encode(), *parts])

    def receive(self, timeout_s):
        """Messages that are there, at least one: (header, parent header, content). [] in vain."""
        out = []
        for s, _ in self.poller.poll(timeout_s * 1000):
            frames = s.recv_multipart()
            at = frames.index(DELIMITER)
            out.append((frames[at + 2], frames[at + 3], frames[at + 5]))
        return out

    def leave_iopub(self):
        """Somebody else reads it from now on."""
        self.poller.unregister(self.iopub)
        self.iopub.close()

    def close(self):
        self.shell.close()
        self.iopub.close()


class WebSocket:
    """A plain socket; framing "v1" or "legacy", quick: acknowledges at once."""

    def __init__(self, server, kernel, framing="v1", quick=False):
        self.v1, self.quick = framing == "v1", quick
        self.session = uuid.uuid4().hex  # jupygate finds the receiver of a reply by it
        self.socket = socket.create_connection((server.host, server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = bytearray()
        try:
            self._upgrade(server, kernel)
        except BaseException:
            self.socket.close()
            raise

    def _upgrade(self, server, kernel):
        nonce = base64.b64encode(os.urandom(16)).decode()
        offer = f"Sec-WebSocket-Protocol: {V1}\r\n" if self.v1 else ""
        self.socket.sendall(
            (f"GET /api/kernels/{kernel}/channels?session_id={self.session} HTTP/1.1\r\n"
             f"Host: {server.host}:{server.port}\r\nUpgrade: websocket\r\n"
             f"Connection: Upgrade\r\nSec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n"
             f"{offer}Authorization: token {server.token}\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.data:
            self._read()
        head, _, rest = bytes(self.data).partition(b"\r\n\r\n")
        agreed = V1.encode() in head
        if b" 101 " not in head.split(b"\r\n")[0] + b" " or agreed != self.v1:
            raise RuntimeError(f"no WebSocket of that framing: {head[:300]!r}")
        self.data = bytearray(rest)

    def _read(self):
        if self.quick:  # not kept by the kernel: said before each read
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        more = self.socket.recv(262144)
        if not more:
            raise RuntimeError("the gateway closed the connection")
        self.data += more

    def send(self, header, content):
        if not self.v1:
            self._send_frame(1, b'{"channel": "shell", "header": %s, "parent_header": {}, '
                                b'"metadata": {}, "content": %s, "buffers": []}'
                             % (header, content))
            return
        parts = [b"shell", header, b"{}", b"{}", content]
        offsets = [8 * 7]
        for part in parts:
            offsets.append(offsets[-1] + len(part))
        self._send_frame(2, struct.pack("<7Q", 6, *offsets) + b"".join(parts))

    def _send_frame(self, opcode, body):
        n = len(body)
        if n < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | n)
        elif n < 65536:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, n)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, n)
        self.socket.sendall(head + b"\0\0\0\0" + body)

    def _frame(self):
        """(opcode, body) or None if no whole frame is there."""
        data = self.data
        if len(data) < 2:
            return None
        n, at = data[1] & 0x7F, 2
        if n >= 126:
            size = 2 if n == 126 else 8
            if len(data) < 2 + size:
                return None
            n, at = int.from_bytes(data[2:2 + size], "big"), 2 + size
        if len(data) < at + n:
            return None
        opcode, body = data[0] & 0x0F, bytes(data[at:at + n])
        del data[:at + n]
        return opcode, body

    def _frames(self):
        out = []
        while (frame := self._frame()) is not None:
            opcode, body = frame
            if opcode == 9:
                self._send_frame(10, body)
            elif opcode == 8:
                raise RuntimeError(f"closed: {body!r}")
            elif opcode == 1:
                message = json.loads(body)
                out.append((message["header"], message["parent_header"], message["content"]))
            elif opcode == 2:
                n, = struct.unpack_from("<Q", body)
                o = struct.unpack_from(f"<{n}Q", body, 8)
                out.append((body[o[1]:o[2]], body[o[2]:o[3]], body[o[4]:o[5]]))
        return out

    def receive(self, timeout_s):
        out = self._frames()
        while not out:
            if not select.select([self.socket], [], [], timeout_s)[0]:
                return []
            self._read()
            out = self._frames()
        return out

    def close(self):
        self.socket.close()


def value(part):
    """A part of a message: bytes, or what the legacy framing has made of them already."""
    return json.loads(part) if isinstance(part, bytes) else part


class Client:
    def __init__(self, way):
        self.way = way
        self.session = way.session
        self.n, self.named = 0, None

    def next_id(self):
        return self.named or f"{self.session}_{self.n + 1}"

    def name_next(self, msg_id):
        self.named = msg_id

    def ask(self, msg_type, content):
        msg_id, self.named = self.next_id(), None
        self.n += 1
        header = {"msg_id": msg_id, "session": self.session, "username": "bench",
                  "date": "2026-01-01T00:00:00.000000Z", "msg_type": msg_type, "version": "5.3"}
        self.way.send(json.dumps(header).encode(), json.dumps(content).encode())
        return msg_id

    def _wait(self, msg_ids, reply_type, timeout_s):
        """True once one of the requests has its reply and its idle."""
        replied = idle = False
        while not (replied and idle):
            messages = self.way.receive(timeout_s)
            if not messages:
                return False
            for header, parent, content in messages:
                header, parent = value(header), value(parent)
                if parent.get("msg_id") not in msg_ids:
                    continue
                if header["msg_type"] == reply_type:
                    if value(content)["status"] != "ok":
                        raise RuntimeError(f"the kernel answered {content!r}")
                    replied = True
                elif header["msg_type"] == "status":
                    idle = idle or value(content)["execution_state"] == "idle"
        return True

    def wait_ready(self):
        asked, deadline = set(), time.monotonic() + TIMEOUT_S
        while True:
            asked.add(self.ask("kernel_info_request", {}))
            if self._wait(asked, "kernel_info_reply", 0.5):
                break
            if time.monotonic() > deadline:
                raise RuntimeError("the kernel did not become ready")
        while self.way.receive(0.2):
            pass  # answers to the other times it was asked

    def info(self):
        """Waits for the answer and the idle of one kernel_info_request."""
        if not self._wait((self.ask("kernel_info_request", {}),), "kernel_info_reply", TIMEOUT_S):
            raise RuntimeError("no answer to kernel_info_request")

    def ask_execute(self, code):
        return self.ask("execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": True})

    def execute(self, code):
        """Nanoseconds until reply and idle are both there."""
        begun = time.perf_counter_ns()
        if not self._wait((self.ask_execute(code),), "execute_reply", TIMEOUT_S):
            raise RuntimeError("no answer")
        return time.perf_counter_ns() - begun

    def close(self):
        self.way.close()
