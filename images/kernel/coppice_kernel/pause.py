"""The pause after a cell: what can be told of it only then is told (docs/decisions/0020), and the kernel
is parked (0025).

Between two cells that follow each other nothing is done. Once nothing was asked for a moment the
variables are looked at, in steps, and whatever comes meanwhile ends the look; it is tried again in
the next pause. After a longer moment it is parked. Main thread.
"""

import asyncio
import json
import os
import resource
import select
import threading
from time import perf_counter

from coppice_kernel import variables

PAUSE_S = 0.03
PARK_S = 0.15
TRIES = 20  # in a row: a loop that is never quiet is left alone


class Peak:
    """The most memory that this process had since begin(), by the system's own mark. The file is
    opened each time: a descriptor that is kept may be the user's file by then."""

    def __init__(self):
        self.known = False

    def begin(self):
        try:
            mark = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
            try:
                self.known = os.write(mark, b"5") == 1
            finally:
                os.close(mark)
        except OSError:
            self.known = False

    def bytes(self):
        """None: this system does not tell."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 if self.known else None


class Pause:
    def __init__(self, shell, tell, parker=None, files=None):
        self._shell = shell
        self._tell = tell  # takes (msg_id, text); False: not now
        self._parker = parker
        self._files = files
        self._pid = os.getpid()
        self._peak = Peak()
        self._peak_bytes = None  # of the cell that was executed last
        self._executed = None  # its msg_id
        self._owed = None  # msg_id of the cell that was not told of
        self._tries = 0
        self._timer = None
        self._unparked = None  # msg_id of the cell after which it was not parked yet
        self._park_timer = None
        self._began = self._seconds = 0.0

    def _is_ours(self):
        """Not in a fork of the cell's, nor in a subshell's thread."""
        return os.getpid() == self._pid and threading.current_thread() is threading.main_thread()

    def executes(self):
        if self._is_ours():
            if self._files:
                self._files.settle()
            self._began = perf_counter()
            self._peak.begin()
            if self._parker:
                self._parker.executes()

    def executed(self, request):
        if self._is_ours():
            self._seconds = perf_counter() - self._began
            if self._parker:
                self._parker.executed()
            self._peak_bytes = self._peak.bytes()
            self._executed = self._owed = request.get("header", {}).get("msg_id")
            self._tries = 0
            self._unparked = self._owed if self._parker else None

    def peak_bytes(self, request):
        """The most memory of the cell of that request, for its reply: that costs nothing and is there
        in a burst, too. None: not known, as of a cell of a subshell."""
        if not self._is_ours() or request.get("header", {}).get("msg_id") != self._executed:
            return None
        return self._peak_bytes

    def files_of(self, request):
        """What its reply says of the working folder. None: nothing, as of a cell of a subshell."""
        msg_id = request.get("header", {}).get("msg_id")
        if not self._files or not self._is_ours() or not msg_id or msg_id != self._executed:
            return None
        return self._files.reply(msg_id)

    def over(self):
        """A request came."""
        if not self._is_ours():
            return
        for timer in (self._timer, self._park_timer):
            if timer:
                timer.cancel()
        self._timer = self._park_timer = None
        if self._parker:
            self._parker.settle()

    def begins(self):
        """It was answered."""
        if not self._is_ours():
            return
        if self._files:
            self._files.hand()
        if not (self._owed or self._unparked):
            return
        self.over()
        loop = asyncio.get_running_loop()
        if self._owed:
            self._timer = loop.call_later(PAUSE_S, self._look)
        if self._unparked:
            self._park_timer = loop.call_later(PARK_S, self._park)

    def _park(self):
        self._park_timer = None
        if _disturbance()():
            self._park_timer = asyncio.get_running_loop().call_later(PARK_S, self._park)
            return
        msg_id, self._unparked = self._unparked, None
        try:
            self._parker.park(msg_id, self._seconds)
        except Exception:  # whatever is wrong with it, the cell was fine
            return

    def _look(self):
        self._timer = None
        self._tries += 1
        try:
            if self._files and self._tries == 1:
                self._files.look_at_others()
            told = self._report()
        except Exception:  # whatever is wrong with it, the cell was fine
            told = True
        if told or self._tries >= TRIES:
            self._owed = None
        else:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_S, self._look)

    def _report(self):
        found = variables.look(
            self._shell.user_ns, self._shell.user_ns_hidden, disturbed=_disturbance()
        )
        if found is None:
            return False
        return self._tell(self._owed, json.dumps(found, separators=(",", ":")))


def _disturbance():
    """A function that is true once the loop has something to do. Nothing is read: what has come
    wakes the loop as ever."""
    selector = getattr(asyncio.get_running_loop(), "_selector", None)
    if not hasattr(selector, "fileno"):
        return lambda: False
    poll = select.poll()
    poll.register(selector.fileno(), select.POLLIN)  # an epoll is ready when one of its own is
    return lambda: bool(poll.poll(0))
