"""Does this container's Python survive a fork at all? Some builds of OpenBLAS do not: their next
factorisation waits for ever, in the parent too (branching.md A3). Tried once, in processes of its own.
"""

import os
import signal
import sys
import traceback

LIMIT_S = 2
SIZE = 200


class Probe:
    def __init__(self):
        self.pid = 0  # while it runs
        self.ended = False
        self.reason = ""  # why nothing is to be parked

    def begin(self):
        if self.ended or self.pid:
            return
        if "numpy" not in sys.modules:
            self.ended = True  # nothing that could be tried is here
            return
        try:
            self.pid = os.fork()
        except OSError as e:
            self.ended, self.reason = True, f"no process to try a fork with: {e.strerror}"
            return
        if self.pid == 0:
            _try()

    def ends(self, pid, status):
        """True if that was it."""
        if not self.pid or pid != self.pid:
            return False
        self.pid, self.ended = 0, True
        code = os.waitstatus_to_exitcode(status)
        if code:
            what = f"does not come to an end within {LIMIT_S} s" if code < 0 else "failed"
            self.reason = f"the start-up probe (linear algebra before and after a fork) {what}"
        return True


def factorise():
    numpy = sys.modules["numpy"]
    matrix = numpy.arange(SIZE * SIZE, dtype=float).reshape(SIZE, SIZE) % 97 + numpy.eye(SIZE)
    return float(numpy.linalg.slogdet(matrix)[1])


def _try(work=factorise):
    """Before, and then in both."""
    try:
        for signum in (signal.SIGALRM, signal.SIGCHLD, signal.SIGTERM):
            signal.signal(signum, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.alarm(LIMIT_S)
        before = work()
        pid = os.fork()
        signal.alarm(LIMIT_S)  # a fork has none
        after = work()
        if pid == 0:
            os._exit(0 if after == before else 1)
        _, status = os.waitpid(pid, 0)
        os._exit(0 if after == before and status == 0 else 1)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
