"""Small doors to the kernel of the operating system: prctl, descriptors, wake-ups, /proc."""

import ctypes
import os
import signal
import socket

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

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


def processes():
    """pid -> (parent's pid, state letter) of every process that can be seen."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as f:
                stat = f.read()
        except OSError:
            continue  # it ended meanwhile
        # The command's name may hold anything, brackets too: what follows the last one is ours.
        fields = stat[stat.rfind(b")") + 2 :].split()
        found[int(name)] = (int(fields[1]), chr(fields[0][0]))
    return found


def descendants(roots):
    """Live processes below (not among) the roots; zombies are not alive."""
    table = processes()
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], list(roots)
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            waiting.append(pid)
            if table[pid][1] not in "ZX":
                found.append(pid)
    return found
