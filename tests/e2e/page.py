"""A page as the kill sweep needs it: it comes back by itself, and knows what it asked."""

import threading
import time
import uuid
from dataclasses import dataclass

import websocket

import wire

BETWEEN_S = 0.05  # two attempts to connect


@dataclass
class Asked:
    kind: str
    tag: str
    msg_id: str
    frame: object
    expected: str = ""  # on stdout, if all goes well
    answer: object = None  # the frame that answered its input_request
    again: bool = False  # it was sent a second time: the gateway may say the reply again

    @property
    def wants_reply(self):
        return self.kind != "comm"


class Page(threading.Thread):
    """Its socket is its thread's; what it asks comes from the test's.

    WebSockets do not acknowledge: what a page sent just before the gateway was killed may never
    have been read. So after each return, once two round trips say that all that was kept has
    come, it sends again, under the same msg_id, what has met with no sign at all, and an input
    that its cell still waits for. The gateway and the kernel know a msg_id that they have seen."""

    def __init__(self, server, kernel_id, framing):
        super().__init__(daemon=True)
        self.server, self.kernel_id, self.framing = server, kernel_id, framing
        self.session = uuid.uuid4().hex
        self.asked, self.runs = [], {}
        self.client, self.probes = None, {}
        self.returns, self.closes, self.fault = 0, [], None
        self.lock = threading.Lock()
        self.ends = False
        self.start()

    # ---- asking ----

    def execute(self, kind, tag, code, expected=""):
        return self._ask(kind, tag, expected, "execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": kind == "input", "stop_on_error": True})

    def open_comm(self, tag):
        return self._ask("comm", tag, "", "comm_open", {
            "comm_id": uuid.uuid4().hex, "target_name": "echo", "data": {"tag": tag}})

    def history(self, tag):
        return self._ask("history", tag, "", "history_request", {
            "hist_access_type": "tail", "n": 1, "output": False, "raw": True})

    def _ask(self, kind, tag, expected, msg_type, content):
        plain = wire.Client(None, self.framing, self.session)
        head = plain.header(msg_type)
        asked = Asked(kind, tag, head["msg_id"],
                      plain.encode("shell", head, {}, {}, content), expected)
        with self.lock:
            self.runs[asked.msg_id] = wire.Run(asked.msg_id)
            self.asked.append(asked)
            self._send(asked.frame)
        return asked

    def _send(self, frame):
        """Where there is no socket or it breaks, it is sent after the return."""
        try:
            if self.client and not self.probes:
                self.client.send_frame(frame)
        except (OSError, websocket.WebSocketException):
            pass

    # ---- how far it is ----

    def run_of(self, asked):
        return self.runs[asked.msg_id]

    def is_done(self, asked):
        run = self.run_of(asked)
        return run.idle and (run.reply is not None or not asked.wants_reply)

    def open(self):
        """What has no end yet."""
        return [a for a in self.asked if not self.is_done(a)]

    # ---- its thread ----

    def run(self):
        try:
            while not self.ends:
                self._connect()
                if self.client:
                    self._receive()
        except Exception as e:  # the test's thread reports it
            self.fault = e

    def _connect(self):
        try:
            client = self.server.open(self.kernel_id, self.framing, session=self.session)
        except (OSError, websocket.WebSocketException):
            time.sleep(BETWEEN_S)
            return
        with self.lock:
            client.runs = self.runs
            self.client = client
            self.returns += 1
            self._probe(2)

    def _probe(self, more):
        try:
            self.probes = {self.client.send("shell", "kernel_info_request"): more}
        except (OSError, websocket.WebSocketException):
            pass  # the receiver sees it too

    def _receive(self):
        while not self.ends:
            try:
                m = self.client.receive(0.5)
            except wire.NoMessage:
                continue
            except wire.Closed as closed:
                self.closes.append(closed.code)
                break
            self.client.messages.clear()
            with self.lock:
                self._look_at(m)
        with self.lock:
            client, self.client, self.probes = self.client, None, {}
        client.close()

    def _look_at(self, m):
        if m.type == "kernel_info_reply" and m.parent_id in self.probes:
            more = self.probes[m.parent_id] - 1
            self.probes = {}
            if more:
                self._probe(more)
            else:
                self._send_again()
        if m.type == "input_request":
            self._answer(m)

    def _answer(self, request):
        asked = next((a for a in self.asked if a.msg_id == request.parent_id), None)
        if not asked:
            return
        plain = wire.Client(None, self.framing, self.session)
        asked.answer = plain.encode("stdin", plain.header("input_reply"), request.header, {},
                                    {"value": asked.tag, "status": "ok"})
        try:
            self.client.send_frame(asked.answer)
        except (OSError, websocket.WebSocketException):
            pass

    def _send_again(self):
        for asked in self.open():
            if not self.run_of(asked).messages:
                asked.again = True
                self._send(asked.frame)
            elif asked.answer:
                self._send(asked.answer)

    def close(self):
        self.ends = True
        self.join(10)
