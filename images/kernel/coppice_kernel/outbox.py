"""What the kernel sent and the gateway has not acknowledged: kept for a gateway that comes back.

Lives in the kernel's process. Sockets that were attached tell it what they send, each in its own
thread; a thread of its own (deliver.py) takes acknowledgements and hands out what is kept.
"""

import json
import os
import threading
import weakref
from collections import deque
from itertools import islice
from operator import itemgetter

import zmq

CHANNELS = ("iopub", "shell", "control", "stdin")
LIMIT_BYTES = 64 << 20
OVERHEAD_BYTES = 400  # of a small message: its objects
LOST_NAMED = 50000  # ids of dropped messages that are remembered per channel
DELIMITER = b"<IDS|MSG>"
HEADER = 2  # place of the header after the delimiter
PARENT = 3
UNNAMED = b"\0"  # begins the identity that a ROUTER makes up
_ID = b'"msg_id"'


def id_of(header):
    """The msg_id of a packed header; "" if there is none."""
    # What every packer writes, without parsing it: {"msg_id": "ID", ...
    if header[1:9] == _ID and header[:1] == b"{":
        begin = header.find(b'"', 9) + 1
        end = header.find(b'"', begin)
        found = header[begin:end]
        if 0 < begin < 13 and end > 0 and b"\\" not in found:
            return found.decode("utf-8", "replace")
    try:
        found = json.loads(header).get("msg_id")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _bytes(frame):
    """A copy of a frame that may change after it was sent."""
    if type(frame) is bytes:
        return frame
    return frame.bytes if isinstance(frame, zmq.Frame) else memoryview(frame).tobytes()


def _session_of(header):
    try:
        return json.loads(header).get("session")
    except (ValueError, AttributeError, RecursionError):
        return None


class _Channel:
    def __init__(self):
        self.kept = deque()  # (number, bytes, frames)
        self.bytes = 0
        self.lost = deque()  # ids of what was dropped and could still be asked for
        self.lost_unnamed = 0  # what was dropped before these

    def take_first(self):
        _, size, frames = self.kept.popleft()
        self.bytes -= size
        return size, frames

    def drop_first(self):
        size, frames = self.take_first()
        self.note_lost(id_of(frames[HEADER]))
        return size

    def note_lost(self, msg_id):
        self.lost.append(msg_id)
        if len(self.lost) > LOST_NAMED:
            self.lost.popleft()
            self.lost_unnamed += 1

    def kept_until(self, msg_id):
        """How many of `kept` came up to and including msg_id; 0 if it is not among them."""
        # No index is kept: whatever is acknowledged is near the front, and leaves. Ids that packers
        # spell in several ways are not found; a later one is.
        packed = json.dumps(msg_id).encode()
        for i, (_, _, frames) in enumerate(self.kept, 1):
            if packed in frames[HEADER] and id_of(frames[HEADER]) == msg_id:
                return i
        return 0

    def lost_until(self, msg_id):
        """How many of `lost` came up to and including msg_id; 0 if it is not among them."""
        try:
            return self.lost.index(msg_id) + 1
        except ValueError:
            return 0

    def forget_lost(self, count):
        if count:
            self.lost_unnamed = 0
        for _ in range(count):
            self.lost.popleft()


def _close(box):
    """In a fork of the kernel's process nobody acknowledges, and the lock may be held for ever."""
    if box:
        box._closed = True


class Outbox:
    def __init__(self, limit_bytes=LIMIT_BYTES):
        self._limit = limit_bytes
        self._lock = threading.RLock()  # a signal's handler may send too
        self._channels = {name: _Channel() for name in CHANNELS}
        self._bytes = 0
        self._number = 0  # over all channels
        self._closed = False
        self._gateway = None  # its identity
        # Weakly: a kernel that is parked and revived makes one after the other.
        me = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _close(me()))

    def clear(self):
        """Of a closed one: its memory is let go."""
        self._channels = {name: _Channel() for name in CHANNELS}

    def addressed(self, channel, frames):
        """The frames with the identity under which the gateway is there now.

        When a gateway was replaced, the new connection took the old one's name over, and a request
        that lay unread in the old one comes out of it under an identity that ZeroMQ made up: its
        reply and its input requests would go to nobody. The debugger, a peer in our own process,
        has such an identity too; what it asks is of the kernel's own session."""
        if channel == "iopub" or len(frames) <= 1 + PARENT:
            return frames
        identity = _bytes(frames[0])
        if identity[:1] != UNNAMED:
            self._gateway = identity
            return frames
        if not self._gateway or _bytes(frames[1]) != DELIMITER:
            return frames
        header, parent = (_session_of(_bytes(frames[1 + i])) for i in (HEADER, PARENT))
        return frames if parent == header else [self._gateway, *frames[1:]]

    def keep(self, channel, frames):
        """Called before the frames are sent, so that nothing is sent that is not here."""
        if self._closed:
            return
        frames = [f if type(f) is bytes else _bytes(f) for f in frames]
        try:
            at = frames.index(DELIMITER)
        except ValueError:
            return
        if at + HEADER >= len(frames):
            return  # not a message
        if at and frames[0][:1] == UNNAMED:
            return  # to the debugger
        frames = tuple(frames[at:])  # of bytes alone: the garbage collector leaves it alone
        size = sum(map(len, frames)) + OVERHEAD_BYTES
        kept = self._channels[channel]
        with self._lock:
            self._number += 1
            if size > self._limit:
                self._drop_all(kept, frames)
                return
            kept.kept.append((self._number, size, frames))
            kept.bytes += size
            self._bytes += size
            while self._bytes > self._limit:
                fullest = max(self._channels.values(), key=lambda c: c.bytes)
                self._bytes -= fullest.drop_first()

    def _drop_all(self, kept, frames):
        """A message that is too large by itself: those before it go too, so that what is kept of a
        channel has no gap but before its first."""
        while kept.kept:
            self._bytes -= kept.drop_first()
        kept.note_lost(id_of(frames[HEADER]))

    def ack(self, channel, msg_id):
        kept = self._channels.get(channel)
        if kept is None or not msg_id:
            return
        with self._lock:
            lost = kept.lost_until(msg_id)
            if lost:
                kept.forget_lost(lost)
                return
            count = kept.kept_until(msg_id)
            if count:
                kept.forget_lost(len(kept.lost))
            for _ in range(count):
                self._bytes -= kept.take_first()[0]

    def after(self, marks):
        """marks: channel -> msg_id. Returns what was sent after them, as (channel, frames) in order of
        sending over all of them, and how many of these were dropped."""
        found, dropped = [], 0
        with self._lock:
            for channel, msg_id in marks.items():
                kept = self._channels[channel]
                count = kept.kept_until(msg_id) if msg_id else 0
                found += [(k[0], channel, k[2]) for k in islice(kept.kept, count, None)]
                if not count:
                    until = kept.lost_until(msg_id) if msg_id else 0
                    dropped += len(kept.lost) - until + (0 if until else kept.lost_unnamed)
        found.sort(key=itemgetter(0))
        return [(channel, frames) for _, channel, frames in found], dropped

    def attach(self, socket, channel):
        """From now on what the socket sends is kept."""
        socket.__class__ = KeptSocket
        socket._outbox = self
        socket._channel = channel


_send = zmq.Socket.send_multipart


class KeptSocket(zmq.Socket):
    """The lowest place that every message of a channel passes, whichever thread or stream sends it."""

    _outbox = None
    _channel = None

    def send_multipart(self, msg_parts, flags=0, copy=True, track=False, **kwargs):
        msg_parts = self._outbox.addressed(self._channel, msg_parts)
        self._outbox.keep(self._channel, msg_parts)
        return _send(self, msg_parts, flags, copy, track, **kwargs)
