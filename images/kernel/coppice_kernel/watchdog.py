"""Over the first cell of a revived kernel: tells the user when it waits for threads that a fork does not
have. The first parallel call of a library whose pool was running is what hangs (branching.md A2)."""

import os
import sys
import threading

NAME = "coppice-watchdog"
STALL_S = 5.0
STEP_S = 0.5
FUTEX = {"x86_64": "202", "aarch64": "98"}
TOLD = (
    "Coppice: this cell has been waiting for {seconds:.0f} s for a thread that is not there. Threads of "
    "libraries do not come back in a kernel that was gone back to. Interrupt it; if that does not help, "
    "restart the kernel and run the cells again.\n"
)


class Watchdog:
    def __init__(self):
        self.thread = None
        self._ended = threading.Event()

    def begin(self, is_quiet):
        """`is_quiet()`: no thread of the user's runs, so there is nobody who would end a wait."""
        main = threading.get_native_id()
        frame_of = threading.get_ident()
        self._ended.clear()
        self.thread = threading.Thread(
            target=self._watch, args=(main, frame_of, is_quiet), name=NAME, daemon=True
        )
        self.thread.start()

    def end(self):
        self._ended.set()

    def join(self):
        if self.thread:
            self.thread.join(1)
            self.thread = None

    def _watch(self, tid, ident, is_quiet):
        since, before = 0.0, None
        while not self._ended.wait(STEP_S):
            frame = sys._current_frames().get(ident)
            place = (id(frame), frame.f_lasti) if frame else None
            del frame
            waits = place == before and _waits(tid) and is_quiet()
            since, before = (since + STEP_S if waits else 0.0), place
            if since >= STALL_S:
                sys.stderr.write(TOLD.format(seconds=since))
                sys.stderr.flush()
                return


def _waits(tid):
    """In a lock of the system's."""
    try:
        with open(f"/proc/self/task/{tid}/syscall", encoding="ascii") as f:
            return f.read().split()[0] == FUTEX.get(os.uname().machine)
    except (OSError, IndexError):
        return False
