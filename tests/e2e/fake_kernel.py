"""A scripted kernel: an execute_request's code is a JSON list of steps, carried out in order.

Steps: {"send": CHANNEL, "type": T, "content": TEXT or base64 in "content64", "buffers64": [...],
"parent": "none"?, "times": N?, "fill": N?} publishes raw bytes as they are, the word @fill in a
content being N times z; {"repeat": N, "steps": [...]} has
them N times, the word @n in a content being the number of the message; {"raw64": [frames], "on":
CHANNEL} sends frames without any rule; {"bad_key": true, ...} signs with another key; {"reply": {...}} is
the execute_reply (default ok); {"no_reply": true}; {"no_idle": true}; {"seen": true} answers with
everything received since; {"exit": CODE}. A code that is no JSON list is answered ok.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
import uuid

import zmq

DELIMITER = b"<IDS|MSG>"
CHANNELS = ("shell", "iopub", "stdin", "control", "hb")


class Kernel:
    def __init__(self, connection):
        self.key = connection["key"].encode()
        self.session = uuid.uuid4().hex
        self.count, self.seen, self.ident = 0, [], []
        context = zmq.Context()
        kinds = {"shell": zmq.ROUTER, "iopub": zmq.XPUB, "stdin": zmq.ROUTER,
                 "control": zmq.ROUTER, "hb": zmq.REP}
        self.sockets = {}
        for name in CHANNELS:
            sock = self.sockets[name] = context.socket(kinds[name])
            sock.linger = 1000
            sock.sndhwm = 0
            sock.bind(address(connection, name))

    def serve(self):
        poller = zmq.Poller()
        for sock in self.sockets.values():
            poller.register(sock, zmq.POLLIN)
        while True:
            for sock, _ in poller.poll():
                name = next(n for n, s in self.sockets.items() if s is sock)
                frames = sock.recv_multipart()
                if name == "hb":
                    sock.send_multipart(frames)
                elif name == "iopub":
                    self.welcome(frames)
                else:
                    self.take(name, frames)

    def welcome(self, frames):
        # JEP 65: an XPUB kernel greets each subscriber.
        if frames[0][:1] == b"\x01":
            self.sockets["iopub"].send_multipart(
                [frames[0][1:], *self.sign([self.head("iopub_welcome"), b"{}", b"{}",
                                            json.dumps({"subscription": ""}).encode()])])

    def take(self, channel, frames):
        at = frames.index(DELIMITER)
        self.ident = frames[:at]
        header, parent, metadata, content = frames[at + 2:at + 6]
        head = json.loads(header)
        self.seen.append({"channel": channel, "header": head, "parent": json.loads(parent),
                          "metadata": json.loads(metadata), "content": json.loads(content),
                          "buffers": [base64.b64encode(b).decode() for b in frames[at + 6:]]})
        handler = getattr(self, "on_" + head["msg_type"], None)
        if handler:
            self.publish_status("busy", header)
            handler(channel, header, json.loads(content))

    # ---- requests ----
    def on_kernel_info_request(self, channel, header, _):
        info = {"status": "ok", "protocol_version": "5.4", "implementation": "fake",
                "implementation_version": "1", "banner": "",
                "language_info": {"name": "python", "version": "3", "mimetype": "text/x-python",
                                  "file_extension": ".py"}, "help_links": []}
        self.reply(channel, "kernel_info_reply", header, info)
        self.publish_status("idle", header)

    def on_shutdown_request(self, channel, header, content):
        self.reply(channel, "shutdown_reply", header, {"status": "ok", **content})
        time.sleep(0.05)
        os._exit(0)

    def on_interrupt_request(self, channel, header, _):
        self.reply(channel, "interrupt_reply", header, {"status": "ok"})
        self.publish_status("idle", header)

    def on_execute_request(self, channel, header, content):
        self.count += 1
        self.publish("execute_input", header,
                     {"code": content["code"], "execution_count": self.count})
        try:
            steps = json.loads(content["code"])
        except ValueError:
            steps = []
        if not isinstance(steps, list):
            steps = []
        reply = {"status": "ok", "execution_count": self.count, "user_expressions": {},
                 "payload": []}
        for step in steps:
            reply = self.step(step, header, reply)
        if not any("no_reply" in s for s in steps):
            self.reply(channel, "execute_reply", header, reply)
        if not any("no_idle" in s for s in steps):
            self.publish_status("idle", header)

    def step(self, step, header, reply):
        if "send" in step:
            for _ in range(step.get("times", 1)):
                self.send_step(step, header)
        elif "repeat" in step:
            for n in range(step["repeat"] * len(step["steps"])):
                each = step["steps"][n % len(step["steps"])]
                self.send_step({**each, "content": each["content"].replace("@n", str(n))}, header)
        elif "raw64" in step:
            self.sockets[step.get("on", "iopub")].send_multipart(
                [base64.b64decode(f) for f in step["raw64"]])
        elif "seen" in step:
            self.publish("stream", header, {"name": "stdout", "text": json.dumps(self.seen)})
            self.seen = []
        elif "exit" in step:
            time.sleep(0.05)
            os._exit(step["exit"])
        return step.get("reply", reply)

    def send_step(self, step, header):
        content = (base64.b64decode(step["content64"]) if "content64" in step
                   else step.get("content", "{}").encode())
        content = content.replace(b"@fill", b"z" * step.get("fill", 0))
        parent = step.get("parent", "").encode() or header
        if parent == b"none":
            parent = b"{}"
        head = step.get("header", "").encode() or self.head(step["type"])
        frames = self.sign([head, parent, step.get("metadata", "{}").encode(), content],
                           b"not the key" if step.get("bad_key") else self.key)
        frames += [base64.b64decode(b) for b in step.get("buffers64", [])]
        if step["send"] == "iopub":
            frames.insert(0, step["type"].encode())
        else:
            frames = [*self.ident, *frames]
        self.sockets[step["send"]].send_multipart(frames)

    # ---- messages ----
    def head(self, msg_type):
        return json.dumps({"msg_id": uuid.uuid4().hex, "msg_type": msg_type, "username": "fake",
                           "session": self.session, "version": "5.4",
                           "date": "2024-01-01T00:00:00.000000Z"}).encode()

    def sign(self, parts, key=None):
        mac = hmac.new(self.key if key is None else key, digestmod=hashlib.sha256)
        for part in parts:
            mac.update(part)
        return [DELIMITER, mac.hexdigest().encode() if self.key else b"", *parts]

    def publish(self, msg_type, header, content):
        self.sockets["iopub"].send_multipart(
            [msg_type.encode(), *self.sign([self.head(msg_type), header, b"{}",
                                            json.dumps(content).encode()])])

    def publish_status(self, state, header):
        self.publish("status", header, {"execution_state": state})

    def reply(self, channel, msg_type, header, content):
        self.sockets[channel].send_multipart(
            [*self.ident, *self.sign([self.head(msg_type), header, b"{}",
                                      json.dumps(content).encode()])])


def address(connection, name):
    if connection.get("transport", "tcp") == "ipc":
        return f"ipc://{connection['ip']}-{connection[name + '_port']}"
    return f"tcp://{connection['ip']}:{connection[name + '_port']}"


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        Kernel(json.load(f)).serve()
