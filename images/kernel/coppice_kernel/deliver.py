"""The thread of the kernel's process that answers for its outbox (docs/PROTOCOL-ctl.md, Outbox)."""

import base64
import os
import select
import socket
import threading
from itertools import count

from coppice_kernel import ctl, outbox, process

PIECE_BYTES = 46080  # in base64 and with its fields it fits into one packet
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


class Delivery:
    def __init__(self, link, box):
        self.link = link
        self.box = box
        self.answer = None  # packets of the replay under way
        self.packet = None  # the next one

    def obey(self, packet):
        try:
            message = ctl.decode(packet, ctl.DOWN)
        except ctl.Malformed:
            return
        if message["type"] == "ack":
            self.box.ack(message["channel"], message["msg_id"])
        elif message["type"] == "replay":
            messages, dropped = self.box.after(marks_of(message["after"]))
            self.answer = packets(message["line"], message.get("turn"), messages, dropped)
            self.packet = next(self.answer)

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
            self.link.send(self.packet)
        except BlockingIOError:
            return
        self.packet = next(self.answer, None)
        if self.packet is None:
            self.answer = None

    def turn(self):
        """Waits for something to do and does it. False: the supervisor let go."""
        poll = select.poll()
        poll.register(self.link, select.POLLIN | (select.POLLOUT if self.packet else 0))
        for _, events in poll.poll():
            if events & select.POLLOUT and self.packet:
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


def start(fd):
    """Starts the thread on the kernel's end of the link; returns the outbox."""
    link = socket.socket(fileno=fd)
    link.setblocking(False)
    box = outbox.Outbox()
    os.register_at_fork(after_in_child=link.close)
    thread = threading.Thread(target=Delivery(link, box).serve, name=NAME, daemon=True)
    # The debugger leaves it alone, and its stops do not stop it.
    thread.pydev_do_not_trace = True
    thread.is_pydev_daemon_thread = True
    thread.start()
    return box
