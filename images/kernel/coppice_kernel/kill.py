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


def end_strays(wardens, spared):
    """A child of ours that is no line came to us because its line was killed: ends it, and returns how
    many that were with what was below."""
    table = process.processes()
    me = os.getpid()
    strays = [p for p, (parent, _) in table.items() if parent == me and p not in wardens]
    if not strays:
        return 0
    below = process.descendants(strays, spared)
    alive = [p for p in strays if table[p][1] not in "ZX"]
    for pid in alive:
        send(pid, signal.SIGSTOP)
    count = kill_below(strays, lambda: True, spared) if below else 0
    for pid in strays:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
    return count + len(alive)
