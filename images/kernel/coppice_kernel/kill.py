"""Ends everything of a line, whatever it forked and whichever session it fled to."""

import os
import signal

from coppice_kernel import process


def send(pid, signum):
    try:
        os.kill(pid, signum)
    except (ProcessLookupError, PermissionError):
        pass  # it ended meanwhile


def _freeze(roots, spared):
    """Stops all of it first: what is stopped forks no more, so this comes to an end."""
    stopped = set()
    while True:
        fresh = [p for p in process.descendants(roots, spared) if p not in stopped]
        if not fresh:
            return stopped
        for pid in fresh:
            send(pid, signal.SIGSTOP)
        stopped.update(fresh)


def kill_below(roots, reap, spared=()):
    """SIGKILL for all below the roots until nothing is left but what is spared, with what is below it;
    returns how many that were.

    The caller is a subreaper above the roots (or one of them): what dies there becomes its child,
    and `reap()` collects it, waiting for one at least; it returns False when there is none.
    """
    killed = set()
    while True:
        frozen = _freeze(roots, spared)
        if not frozen:
            return len(killed)
        for pid in frozen:
            send(pid, signal.SIGKILL)
        killed |= frozen
        if not reap():
            return len(killed)
