"""Sends a signal to a kernel."""

import os
import signal


def send(pid, signum):
    """Returns None, or the reason why it could not be sent.

    SIGINT goes to the kernel's process group, as a terminal and jupyter_client send it: a program
    that a cell waits for is interrupted too. The caller has not reaped pid yet.
    """
    if not 0 < signum < signal.NSIG:
        return "no such signal"
    try:
        if signum == signal.SIGINT:
            os.killpg(pid, signum)
        else:
            os.kill(pid, signum)
    except OSError as e:
        return e.strerror
    return None
