"""The parked kernels of this container, kept by the supervisor (docs/decisions/0025).

What a kernel says of a park is its guest's. Taken as a park is only who writes on its seat, by the
system's word (SCM_CREDENTIALS), and only if it is below the line that the offer came from; pid and
start time name it from then on. It is stopped, whatever it is.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import time
from collections import deque

from coppice_kernel import ctl, memory, process

BUDGET = 0.15  # of the container's memory limit, by what nobody else has
FULL = 0.85  # of it in use, by whomever: parks go
TASKS_MAX = 96  # of the user
OF_A_KERNEL = 14  # tasks: its threads and its line's process
LOOKED_AT = 4  # parks a look: smaps_rollup walks all of their pages
NEWEST = 2  # parks that stay while others can go: undo wants them
ANSWER_S = 20
STOP_S = 0.5
SCM_CREDENTIALS = 2
CREDENTIALS = struct.Struct("3i")
MSG_ID_MAX = 200
OOM_PARKED = 800


def receive(link, size):
    """A packet and the pid of who wrote it, without waiting: the guest may have taken O_NONBLOCK off.
    pid 0: the system does not say. b"": it is closed. None: nothing is there."""
    try:
        packet, ancillary, _, _ = link.recvmsg(
            size, socket.CMSG_SPACE(CREDENTIALS.size), socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
        )
    except (BlockingIOError, InterruptedError):
        return None, 0
    except OSError:
        return b"", 0
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SCM_CREDENTIALS and len(data) >= CREDENTIALS.size:
            return packet, CREDENTIALS.unpack(data[: CREDENTIALS.size])[0]
    return packet, 0


def seconds_of(data):
    """What the cell took, by its guest's word: it weighs its own parks with it."""
    try:
        seconds = json.loads(data).get("seconds")
    except (ValueError, AttributeError, RecursionError):
        return 0.0
    return float(seconds) if isinstance(seconds, (int, float)) and 0 <= seconds < 1e9 else 0.0


def _can_be_told(message):
    """In one packet, with whatever numbers."""
    fields = {k: message[k] for k in ("msg_id", "data")}
    try:
        ctl.encode("parked", line=1 << 31, park=1 << 31, pid=1 << 31, kernel="k" * 64, **fields)
    except ctl.Malformed:
        return False
    return len(message["msg_id"]) <= MSG_ID_MAX


class Park:
    def __init__(self, seat, child, message):
        self.seat = seat
        self.line = child.number
        self.kernel = child.kernel  # whose line it was: the gateway has several here
        self.folder = child.folder  # that the kernel works in
        self.msg_id, self.data = message["msg_id"], message["data"]
        self.seconds = seconds_of(self.data)
        self.number = 0  # until it is taken
        self.pid = 0
        self.start = None
        self.private = 0  # bytes
        self.asked = deque()  # numbers of lines that it begins
        self.asked_at = 0.0

    def lives(self):
        return process.started(self.pid) == self.start

    def send(self, signum):
        if self.lives():
            with contextlib.suppress(OSError):
                os.kill(self.pid, signum)

    def stop(self):
        """False: it does not stop. Waited for, since from now on one that runs was continued."""
        self.send(signal.SIGSTOP)
        end = time.monotonic() + STOP_S
        while not process.is_stopped(self.pid):
            if time.monotonic() > end or not self.lives():
                return False
            os.sched_yield()
        return True

    def worth(self):
        return self.seconds / max(self.private, 1 << 16)


class Parks:
    def __init__(self, poll, tell, failed):
        """`tell` a message to the gateway; `failed(line, reason)`: a park does not begin that line."""
        self.poll = poll
        self.tell = tell
        self.failed = failed
        self.max = 0
        self.offered = {}  # line -> park that has not said that it is there
        self.living = {}
        self.last = 0
        self.turn = 0

    # ---- taking ----

    def offer(self, child, message, fd):
        line = child.number
        try:
            seat = socket.socket(fileno=fd)
        except OSError:
            os.close(fd)
            return
        kind = (seat.family, seat.type)
        if kind != (socket.AF_UNIX, socket.SOCK_SEQPACKET) or not _can_be_told(message):
            seat.close()
            return
        seat.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.withdraw(line)
        self.offered[line] = Park(seat, child, message)
        self.poll.register(seat, 1)

    def withdraw(self, line, reason=None):
        """Without a reason: its kernel has ended, or offers another."""
        park = self.offered.pop(line, None)
        if park:
            self._close(park)
        if park and reason:
            self.tell("not_parked", line=line, msg_id=park.msg_id, reason=reason)

    def _close(self, park):
        self.poll.unregister(park.seat)
        park.seat.close()

    def at(self, fd):
        for park in (*self.offered.values(), *self.living.values()):
            if park.seat.fileno() == fd:
                return park
        return None

    def on_seat(self, park, child, taken):
        """`child`: the line that it came from, if that lives. `taken`: processes that are no parks."""
        packet, pid = receive(park.seat, 300)
        if packet is None:
            return
        if not packet and park.number:
            self.drop(park, "its process ended")
        elif not packet:
            self.withdraw(park.line, "its process ended")
        elif not park.number:
            self._take(park, pid, child, taken)
        elif not park.asked:
            self.drop(park, "somebody else writes on its seat")
        else:
            line = park.asked.popleft()
            if packet != b"done":
                self.failed(line, packet.decode("utf-8", "replace"))
            if not park.asked and not park.stop():
                self.drop(park, "it does not stop")

    def _take(self, park, pid, child, taken):
        start = process.started(pid) if pid > 1 else None
        if (
            child is None
            or start is None
            or pid in taken
            or pid in {p.pid for p in self.living.values()}
            # Again, since the process between ends while we look.
            or not any(process.is_below(pid, child.pid) for _ in range(3))
        ):
            self.withdraw(park.line, "what was offered is no process below its line")
            return
        del self.offered[park.line]
        self.last += 1
        park.number, park.pid, park.start = self.last, pid, start
        stops = park.stop()
        with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as f:
            f.write(str(OOM_PARKED))
        self.living[park.number] = park
        self.tell_of(park)
        if not stops:
            self.drop(park, "it does not stop")
        self.thin()

    def tell_of(self, park):
        self.tell("parked", line=park.line, msg_id=park.msg_id, park=park.number, pid=park.pid,
                  data=park.data, kernel=park.kernel)

    def tell_all(self):
        for park in self.living.values():
            self.tell_of(park)

    # ---- beginning lines ----

    def revive(self, park, message, fds, ends):
        """Asks it for a line. Raises OSError."""
        order = {k: message[k] for k in ("line", "kernel", "key", "cwd", "env", "endpoints", "laid")}
        packet = json.dumps(order).encode()
        if len(packet) > ctl.PACKET_MAX:
            raise OSError(0, "the packet is too long")
        socket.send_fds(park.seat, [packet], [*fds, *ends], socket.MSG_DONTWAIT)
        park.asked.append(message["line"])
        park.asked_at = time.monotonic()
        park.send(signal.SIGCONT)

    # ---- ends ----

    def drop(self, park, reason):
        """Kills it. Lines that it began live on: they are other processes."""
        park.send(signal.SIGKILL)
        del self.living[park.number]
        self._close(park)
        for line in park.asked:
            self.failed(line, f"the park ended: {reason}")
        self.tell("unparked", park=park.number, reason=reason)

    def release(self, number):
        """0: all of them, and those that are on their way."""
        if number == 0:
            self.end_all("released")
            for line in list(self.offered):
                self.withdraw(line, "released")
            return
        park = self.living.get(number)
        if park:
            self.drop(park, "released")
        else:
            self.tell("unparked", park=number, reason="there is no such park")

    def end_all(self, reason):
        for park in list(self.living.values()):
            self.drop(park, reason)

    def spared(self):
        return {p.pid: p.start for p in self.living.values() if p.lives()}

    # ---- thinning ----

    def look(self, lines):
        """Now and then, while there are parks. `lines`: how many live."""
        parks = list(self.living.values())
        for _ in range(min(LOOKED_AT, len(parks))):
            self.turn = (self.turn + 1) % len(parks)
            self._look_at(parks[self.turn])
        tasks = memory.tasks()
        if tasks is not None and tasks - len(self.living) - lines * OF_A_KERNEL - 2 > TASKS_MAX:
            self.end_all("the processes and threads of this container are needed by the user's own")
        self.thin()

    def _look_at(self, park):
        if park.lives() and not park.asked and not process.is_stopped(park.pid):
            self.drop(park, "it was continued by somebody in the container")
        elif park.asked and time.monotonic() - park.asked_at > ANSWER_S:
            self.drop(park, f"it did not begin a line within {ANSWER_S} s")
        else:
            park.private = memory.private(park.pid)

    def thin(self):
        while len(self.living) > self.max:
            self._drop_least("more parks than are wanted")
        if not self.living:
            return
        limit = memory.limit()
        while self.living and sum(p.private for p in self.living.values()) > BUDGET * limit:
            self._drop_least("the memory that parks may have is used up")
        if self.living and memory.fullness() > FULL:
            self._drop_least("the memory of the container is nearly used up")

    def _drop_least(self, reason):
        """What costs least time to make again for the memory that it takes."""
        parks = sorted(self.living.values(), key=lambda p: p.number)
        older = parks[:-NEWEST] or parks
        self.drop(min(older, key=lambda p: (p.worth(), p.number)), reason)
