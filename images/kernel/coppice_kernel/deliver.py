"""The thread of the kernel's process that answers for its outbox (docs/PROTOCOL-ctl.md, Outbox)."""

import base64
import os
import select
import socket
import threading
from collections import deque
from itertools import count

from coppice_kernel import ctl, handing, outbox, process

PIECE_BYTES = ctl.PIECE_BYTES
NAME = "coppice-outbox"


def blob_of(frames):
    return b"".join(part for f in frames for part in (len(f).to_bytes(4, "big"), f))


def marks_of(after):
    """channel -> msg_id of a replay's texts; what is no channel is left out."""
    marks = {}
    for text in after:
        channel, _, msg_id = text.partition(":")
        if channel in outbox.CHANNELS:
            marks[channel] = msg_id
    return marks


def packets(line, turn, messages, dropped):
    """The answer to a replay. `turn` tells the supervisor which one it belongs to."""
    for number, (channel, frames) in zip(count(1), messages):
        blob = blob_of(frames)
        for offset in range(0, len(blob), PIECE_BYTES):
            piece = base64.b64encode(blob[offset : offset + PIECE_BYTES]).decode("ascii")
            yield ctl.encode(
                "kept",
                line=line,
                channel=channel,
                id=number,
                offset=offset,
                size=len(blob),
                data=piece,
                turn=turn,
            )
    yield ctl.encode("kept_end", line=line, dropped=dropped, turn=turn)


class Question:
    """One question and the pieces of its answer."""

    def __init__(self):
        # Not counted from 1: an answer to another process of this kernel may still come.
        self.id = int.from_bytes(os.urandom(6), "big")
        self.answered = threading.Event()
        self.status = ""
        self.text = ""
        self._pieces = []
        self._bytes = 0

    def take(self, message):
        if message["id"] != self.id or message["offset"] != self._bytes or self.answered.is_set():
            return
        self._pieces.append(message["data"])
        self._bytes += len(message["data"].encode())
        if self._bytes >= message["size"]:
            self.status, self.text = message["status"], "".join(self._pieces)
            self.answered.set()


class Delivery:
    def __init__(self, link, box, settle=None):
        self.link = link
        self.box = box
        self.settle = settle  # takes the first hand_over, once
        self.handed = None  # its answer, until it is sent
        self.question = None  # the last that was asked
        self.answer = None  # packets of the replay under way
        self.packet = None  # the next one
        self.thread = None
        self.parks_max = 0  # parks that the gateway wants; what the supervisor said last
        self.no_parks = ""  # why there are none though it wants some
        self.files = False  # the gateway wants to be told of working files
        self._handed, self._taken = deque(), 0  # (number, size) of files handed over; what was taken last
        self._hands = 0

    def obey(self, packet):
        try:
            message = ctl.decode(packet, ctl.DOWN)
        except ctl.Malformed:
            return
        if message["type"] == "ack" and message["channel"] == handing.CHANNEL:
            self._taken = int(message["msg_id"])
        elif message["type"] == "ack":
            self.box.ack(message["channel"], message["msg_id"])
        elif message["type"] == "replay":
            messages, dropped = self.box.after(marks_of(message["after"]))
            self.answer = packets(message["line"], message.get("turn"), messages, dropped)
            self.packet = next(self.answer)
        elif message["type"] == "answer":
            if self.question:
                self.question.take(message)
        elif message["type"] == "hand_over":
            self.hand_over(message)
        elif message["type"] == "welcome":
            self.no_parks = str(message.get("no_parks") or "")
            self.parks_max = message.get("parks_max") or 0
            self.files = message.get("files") is True

    def hand_over(self, message):
        """A gateway that does not know whether an earlier one's was heard says it again: by then the
        environment and the folder are the user's."""
        settle, self.settle = self.settle, None
        if settle:
            settle(message)
        self.handed = ctl.encode("handed_over", line=message["line"])
        self.send()

    def report(self, msg_id, data):
        """From another thread: what was learnt of a cell. False: the supervisor does not read now."""
        try:
            self.link.send(ctl.encode("report", line=0, msg_id=msg_id, data=data))
        except BlockingIOError:
            return False
        return True

    def tell(self, name, fds=(), **fields):
        """From another thread. False: it could not be said."""
        try:
            socket.send_fds(self.link, [ctl.encode(name, line=0, **fields)], list(fds))
        except (OSError, ctl.Malformed):
            return False
        return True

    def hand_files(self, fds, **fields):
        """From another thread. False: the supervisor does not read now."""
        told = self.tell("files", fds, **fields)
        if told:
            self._hands += 1
            self._handed.append((self._hands, fields["size"]))
        return told

    def files_under_way(self):
        """Bytes that were handed over and not taken yet."""
        while self._handed and self._handed[0][0] <= self._taken:
            self._handed.popleft()
        return sum(size for _, size in self._handed)

    def ask(self, what, about, timeout_s):
        """From another thread, one at a time: what the gateway answers, as (status, text)."""
        self.question = Question()
        try:
            packet = ctl.encode("ask", line=0, id=self.question.id, what=what, about=about)
            self.link.send(packet)
        except (OSError, ctl.Malformed):
            return "unavailable", "the question could not be sent"
        if not self.question.answered.wait(timeout_s):
            return "timeout", f"the gateway did not answer within {timeout_s} s"
        return self.question.status, self.question.text

    def receive(self):
        try:
            packet = self.link.recv(ctl.PACKET_MAX)
        except BlockingIOError:
            return True
        if packet:
            self.obey(packet)
        return bool(packet)

    def send(self):
        try:
            self.link.send(self.handed or self.packet)
        except BlockingIOError:
            return
        if self.handed:
            self.handed = None
            return
        self.packet = next(self.answer, None)
        if self.packet is None:
            self.answer = None

    def turn(self):
        """Waits for something to do and does it. False: the supervisor let go."""
        poll = select.poll()
        waits = self.handed or self.packet
        poll.register(self.link, select.POLLIN | (select.POLLOUT if waits else 0))
        for _, events in poll.poll():
            if events & select.POLLOUT and waits:
                self.send()
            if events & ~select.POLLOUT:
                return self.receive()
        return True

    def serve(self):
        try:
            process.set_name(NAME)
            while self.turn():
                pass
        except (OSError, ValueError):
            pass  # the guest closed our descriptor: nobody asks any more


def start(fd, settle=None):
    """Starts the thread on the kernel's end of the link; returns it with its outbox. `settle` is called
    in it with the message that hands the kernel over."""
    link = socket.socket(fileno=fd)
    link.setblocking(False)
    box = outbox.Outbox()
    os.register_at_fork(after_in_child=link.close)
    delivery = Delivery(link, box, settle)
    thread = threading.Thread(target=delivery.serve, name=NAME, daemon=True)
    # The debugger leaves it alone, and its stops do not stop it.
    thread.pydev_do_not_trace = True
    thread.is_pydev_daemon_thread = True
    delivery.thread = thread
    thread.start()
    return delivery
