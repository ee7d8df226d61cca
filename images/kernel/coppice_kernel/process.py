"""Small doors to the kernel of the operating system: prctl, descriptors, wake-ups, /proc."""

import ctypes
import os
import signal
import socket

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
OOM_KERNEL = 500  # out of memory takes a kernel, not the supervisor

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option, value):
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))


def become_subreaper():
    """Orphans below this process become its children, so a double fork does not get away."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def set_name(name):
    """As `ps` and `top` show it, 15 bytes at most."""
    _prctl(PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]))


def set_private(private):
    """While private, other processes of this user cannot read its memory or open its descriptors."""
    _prctl(PR_SET_DUMPABLE, 0 if private else 1)


def die_with_parent():
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def prefer_for_oom(score):
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
            f.write(str(score))
    except OSError:
        pass  # a sandbox without /proc: the largest process is taken, most often a kernel


def close_all_but(keep):
    """Closes every descriptor that is not named."""
    low = 0
    for fd in sorted(set(keep)):
        if fd > low:  # os.closerange(0, 0) would close everything
            os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, max(low, os.sysconf("SC_OPEN_MAX")))


def wake_on_signals(*signals):
    """A socket that becomes readable when one of the signals arrives. Its bytes are the signals."""
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    for signum in signals:
        signal.signal(signum, lambda *_: None)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    return reader, writer


def reset_signals():
    """Undoes wake_on_signals in a forked child."""
    signal.set_wakeup_fd(-1)
    for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def read_waiting(sock):
    """What there is to read from a non-blocking wake-up socket; b"" if there is nothing."""
    try:
        return sock.recv(4096)
    except (BlockingIOError, InterruptedError):
        return b""


def _stat(pid):
    """(parent's pid, state letter, start time) of a process; None: there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            stat = f.read()
    except OSError:
        return None
    # The command's name may hold anything, brackets too: what follows the last one is ours.
    fields = stat[stat.rfind(b")") + 2 :].split()
    return int(fields[1]), chr(fields[0][0]), int(fields[19])


def started(pid):
    """When it was started, in ticks: with the pid it names one process for ever. None: it is gone."""
    found = _stat(pid)
    return found[2] if found and found[1] not in "ZX" else None


def is_stopped(pid):
    found = _stat(pid)
    return found is not None and found[1] == "T"


def is_below(pid, root):
    while pid > 1:
        found = _stat(pid)
        if found is None:
            return False
        pid = found[0]
        if pid == root:
            return True
    return False


def processes():
    """pid -> (parent's pid, state letter) of every process that can be seen."""
    found = {}
    for name in os.listdir("/proc"):
        stat = _stat(name) if name.isdigit() else None
        if stat:
            found[int(name)] = stat[:2]
    return found


def descendants(roots, spared=()):
    """Live processes below (not among) the roots; zombies are not alive. What is spared is left out,
    and what is below it."""
    table = processes()
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], list(roots)
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid in spared:
                continue
            waiting.append(pid)
            if table[pid][1] not in "ZX":
                found.append(pid)
    return found
