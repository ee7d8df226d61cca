"""The gateway's side of a kernel container, in Python, for tests: makes the sockets, speaks `ctl`,
passes descriptors. Needs nothing but the standard library; `Client` needs pyzmq."""

import array
import base64
import hashlib
import hmac
import json
import os
import socket
import time
import uuid

from coppice_kernel import ctl

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
KEY = "smoke-key"


def listen(path, kind, mode):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    os.chmod(path, mode)
    s.listen(16)
    s.setblocking(False)
    return s


class FakeGateway:
    """One container's folder: a 0755 folder in which the guest can only connect to `ctl`."""

    def __init__(self, folder, guest_folder="/run/coppice", timeout_s=30):
        self.folder = str(folder)
        self.guest_folder = guest_folder
        self.timeout_s = timeout_s
        os.chmod(self.folder, 0o755)
        self.listener = listen(f"{self.folder}/ctl", socket.SOCK_SEQPACKET, 0o666)
        self.connection = None
        self.seen = []
        self.kernels = {}
        self.keys = {}

    def accept(self, **more):
        self.listener.settimeout(self.timeout_s)
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(self.timeout_s)
        hello = self.expect("hello")
        self.send("welcome", version=ctl.VERSION, **more)
        return hello

    def hang_up(self):
        self.connection.close()
        self.seen.clear()

    def close(self):
        for s in (self.connection, self.listener):
            if s:
                s.close()

    def send_raw(self, packet, fds=()):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.connection.sendmsg([packet], ancillary)

    def send(self, name, fds=(), /, **fields):
        self.send_raw(ctl.encode(name, **fields), fds)

    def receive(self):
        packet = self.connection.recv(ctl.PACKET_MAX)
        if not packet:
            raise EOFError("the supervisor hung up")
        return ctl.decode(packet, ctl.UP)

    def expect(self, name, /, **wanted):
        """The next message that fits; others are kept for later calls."""
        for i, m in enumerate(self.seen):
            if m["type"] == name and all(m.get(k) == v for k, v in wanted.items()):
                return self.seen.pop(i)
        end = time.monotonic() + self.timeout_s
        while time.monotonic() < end:
            m = self.receive()
            if m["type"] == name and all(m.get(k) == v for k, v in wanted.items()):
                return m
            self.seen.append(m)
        raise TimeoutError(f"no {name} {wanted}; seen: {self.seen}")

    def start(self, line, env=None, fresh=False, cwd="/work", wait=True):
        """Makes the five listeners, passes them on and closes them here."""
        self._begin("start", line, cwd, env, fresh=fresh)
        return self.expect("started", line=line)["pid"] if wait else None

    def revive(self, line, park, env=None, cwd="", wait=True):
        """The same out of a park, with a key of its own. Returns what `revived` said."""
        self.keys[line] = f"key-of-{line}"
        self._begin("revive", line, cwd, env, park=park)
        if not wait:
            return None
        self.expect("started", line=line)
        return json.loads(self.expect("revived", line=line)["data"])

    def _begin(self, name, line, cwd, env, **more):
        names = [f"{channel}-{line}" for channel in CHANNELS]
        made = [listen(f"{self.folder}/{n}", socket.SOCK_STREAM, 0o700) for n in names]
        self.send(
            name,
            [s.fileno() for s in made],
            line=line,
            kernel=self.kernels.setdefault(line, str(uuid.uuid4())),
            key=self.keys.setdefault(line, KEY),
            cwd=cwd,
            env=env or {},
            endpoints=[f"ipc://{self.guest_folder}/{n}" for n in names],
            **more,
        )
        for s in made:
            s.close()

    def kill(self, line):
        self.send("kill", line=line)
        return self.expect("exited", line=line)

    def replay(self, line, **after):
        """What is kept of the channels named, as messages with their channel and id, and how many were
        dropped. (Those of the last replay: an earlier one that it ended has no kept_end.)"""
        self.send("replay", line=line, after=[f"{c}:{msg_id}" for c, msg_id in after.items()])
        messages, blob = [], b""
        while True:
            m = self.receive()
            if m["type"] == "kept_end" and m["line"] == line:
                return messages, m["dropped"]
            if m["type"] != "kept" or m["line"] != line:
                self.seen.append(m)
                continue
            if m["id"] == 1 and m["offset"] == 0:
                messages, blob = [], b""
            assert (m["id"], m["offset"]) == (len(messages) + 1, len(blob))
            blob += base64.b64decode(m["data"], validate=True)
            if len(blob) == m["size"]:
                message = unpack(unframe(blob))
                messages.append({"channel": m["channel"], "id": message["header"]["msg_id"], **message})
                blob = b""

    def client(self, line, session=None):
        endpoints = [f"ipc://{self.folder}/{c}-{line}" for c in CHANNELS]
        return Client(endpoints, session=session, key=self.keys.get(line, KEY))


def unframe(blob):
    """The frames of a `kept`: each behind its length."""
    frames, at = [], 0
    while at < len(blob):
        size = int.from_bytes(blob[at : at + 4], "big")
        frames.append(blob[at + 4 : at + 4 + size])
        at += 4 + size
    assert at == len(blob)
    return frames


def unpack(frames):
    at = frames.index(b"<IDS|MSG>")
    header, parent, metadata, content = (json.loads(f) for f in frames[at + 2 : at + 6])
    return {"header": header, "parent": parent, "metadata": metadata, "content": content}


class Client:
    """A Jupyter client of raw ZeroMQ sockets."""

    def __init__(self, endpoints, timeout_s=60, session=None, key=KEY):
        import zmq

        self.key = key

        self.zmq = zmq
        self.timeout_s = timeout_s
        self.context = zmq.Context()
        kinds = (zmq.DEALER, zmq.SUB, zmq.DEALER, zmq.DEALER, zmq.REQ)
        self.session = session or uuid.uuid4().hex
        for channel, endpoint, kind in zip(CHANNELS, endpoints, kinds):
            s = self.context.socket(kind)
            s.linger = 0
            if kind == zmq.SUB:
                s.subscribe(b"")
            if kind == zmq.DEALER:
                s.identity = self.session.encode()
            s.connect(endpoint)
            setattr(self, channel, s)

    def close(self):
        self.context.destroy(linger=0)

    def send(self, channel, kind, content, parent=None, **more):
        header = {
            "msg_id": uuid.uuid4().hex,
            "session": self.session,
            "username": "t",
            "date": "2024-01-01T00:00:00Z",
            "msg_type": kind,
            "version": "5.3",
            **more,
        }
        parts = [json.dumps(p).encode() for p in (header, parent or {}, {}, content)]
        mac = hmac.new(self.key.encode(), digestmod=hashlib.sha256)
        for p in parts:
            mac.update(p)
        getattr(self, channel).send_multipart([b"<IDS|MSG>", mac.hexdigest().encode(), *parts])
        return header["msg_id"]

    def receive(self, channel, timeout_s=None):
        s = getattr(self, channel)
        if not s.poll(1000 * (timeout_s or self.timeout_s)):
            raise TimeoutError(f"nothing on {channel}")
        return unpack(s.recv_multipart())

    def reply(self, channel, msg_id, timeout_s=None):
        while True:
            m = self.receive(channel, timeout_s)
            if m["parent"].get("msg_id") == msg_id:
                return m

    def ready(self):
        """Until shell answers and its status is seen on iopub; returns the kernel_info_reply."""
        while True:
            msg_id = self.send("shell", "kernel_info_request", {})
            reply = self.reply("shell", msg_id)
            try:
                while True:
                    m = self.receive("iopub", 1)
                    if m["parent"].get("msg_id") == msg_id and m["content"].get(
                        "execution_state"
                    ) == "idle":
                        return reply["content"]
            except TimeoutError:
                continue

    def execute(self, code, **content):
        """Returns (reply content, iopub messages of the request without the statuses)."""
        self.asked = self.send("shell", "execute_request", {"code": code, **content})
        return self.finish(self.asked)

    def finish(self, msg_id):
        seen = []
        while True:
            m = self.receive("iopub")
            if m["parent"].get("msg_id") != msg_id:
                continue
            if m["header"]["msg_type"] != "status":
                seen.append(m)
            elif m["content"]["execution_state"] == "idle":
                break
        reply = self.reply("shell", msg_id)
        self.metadata = reply["metadata"]  # of the last one
        return reply["content"], seen

    def run(self, code):
        """What the cell printed on stdout; an error or anything on stderr is an AssertionError."""
        reply, seen = self.execute(code)
        assert reply["status"] == "ok", reply
        assert not text(seen, "stderr"), text(seen, "stderr")
        return text(seen, "stdout")


def text(messages, name):
    return "".join(
        m["content"]["text"]
        for m in messages
        if m["header"]["msg_type"] == "stream" and m["content"]["name"] == name
    )
