"""The kernel's side of working files (docs/decisions/0028): looks at the folder after each cell, says in
the reply whether something changed, and hands what did to the supervisor after the idle. Main thread.

Not in a subshell's thread and not in a fork of a cell's. Whatever goes wrong here, the cell was fine.
"""

import os
import threading
import time
from time import perf_counter

from coppice_kernel import handing, look, maps, memory, names

IN_REPLY_S = 0.001  # a look that took longer is made after the idle from then on
UNDER_WAY = 32 << 20  # bytes that the supervisor has not taken; what is more is handed over without content
FULL = 0.9  # of the container's memory: nothing is copied
SETTLE_S, STEP_S = 5.0, 0.001


class Files:
    def __init__(self, folder, delivery):
        self._folder = folder
        self._delivery = delivery
        self._place = os.path.join(folder, names.LAY)
        self._foreign = None
        self._pid = os.getpid()
        self._own = maps.Own(folder)
        self._others = frozenset()  # inodes that other processes have mapped so
        self._last = None  # the look that was handed over last, or found the same
        self._seen = None  # the one that is to be handed over
        self._mapped = frozenset()
        self._seconds = 0.0  # what the last look took
        self._owed = None  # msg_id of the cell that it is of

    def _is_ours(self):
        return os.getpid() == self._pid and threading.current_thread() is threading.main_thread()

    def settle(self):
        """Before a cell: until no move is on its way in the folder. The gateway lets none run meanwhile, but
        its word that the move counts, or not, may be read later than the cell's request."""
        if not self._is_ours() or not self._delivery.files:
            return
        end = perf_counter() + SETTLE_S
        while (found := self._lay()) and found != self._foreign:
            if perf_counter() > end:
                self._foreign = found  # nobody's move
                return
            time.sleep(STEP_S)

    def _lay(self):
        """The inode of the place where files are laid beside; None: there is none."""
        try:
            return os.lstat(self._place).st_ino
        except OSError:
            return None

    def reply(self, msg_id):
        """What the reply says; None: nothing is told of files."""
        if not self._is_ours() or self._folder == "/":
            return None
        if not self._delivery.files:
            self._last = None
            return None
        try:
            return self._reply(msg_id)
        except (Exception, KeyboardInterrupt):  # an interrupt is for the cell, which has ended
            self._last = None  # the next is a whole one
            return None

    def _reply(self, msg_id):
        if self._others or self._seconds > IN_REPLY_S:
            self._owed, self._seen = msg_id, None
            return "later"
        seen = self._look()
        if self._last is not None and seen.is_as(self._last) and not self._mapped:
            self._last = seen
            return "same"
        self._owed, self._seen = msg_id, seen
        return "changed"

    def _look(self):
        begin = perf_counter()
        seen = look.now(self._folder)
        self._mapped = self._others | self._own.look() if seen.has_content else frozenset()
        self._seconds = perf_counter() - begin
        return seen

    def hand(self):
        """After the idle, before the next request."""
        if not self._owed or not self._is_ours():
            return
        msg_id, self._owed = self._owed, None
        try:
            self._hand(msg_id)
        except Exception:
            self._last = None

    def _hand(self, msg_id):
        seen = self._seen or self._look()
        self._seen = None
        changed = None if self._last is None else seen.changed_since(self._last, self._mapped)
        carrier = handing.pack(self._folder, seen, changed, self._room())
        try:
            size = os.fstat(carrier).st_size
            told = self._delivery.hand_files([carrier], msg_id=msg_id, offset=0, size=size, data="")
        finally:
            os.close(carrier)
        self._last = seen if told else None

    def _room(self):
        left = UNDER_WAY - self._delivery.files_under_way()
        if left <= 0 or memory.fullness() > FULL:
            return 0
        return min(left, handing.COPIED_MAX)

    def look_at_others(self):
        """In a pause: processes beside the kernel that write to files without a trace. From then on each
        look is made after the idle."""
        if self._is_ours() and self._delivery.files and self._last is not None and self._last.rows:
            steps = maps.of_all(self._folder, (os.getpid(),))
            try:
                while True:
                    next(steps)
            except StopIteration as end:
                self._others = end.value
