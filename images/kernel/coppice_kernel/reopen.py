"""The files that a kernel has open in its working folder, in a kernel that is revived from its park after
another state was laid down there (docs/decisions/0028): opened by their names, at their positions."""

import ctypes
import fcntl
import mmap
import os
import stat
from typing import NamedTuple

from coppice_kernel import descriptors

# What was right for the first time only.
_MADE_ONCE = os.O_CREAT | os.O_TRUNC | os.O_EXCL
_MAP_FIXED = 0x10

_mmap = ctypes.CDLL(None, use_errno=True).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
_FAILED = ctypes.c_void_p(-1).value


class Place(NamedTuple):
    """Where the park's folder is now: another one for a branch beside."""

    was: str
    now: str

    def of(self, path):
        """None: it does not lie in the folder."""
        if path == self.was:
            return self.now
        return self.now + path[len(self.was) :] if path.startswith(self.was.rstrip("/") + "/") else None


class Map(NamedTuple):
    """A part of memory that is a file's, read only and shared."""

    begin: int
    end: int
    offset: int
    path: str
    protection: int


def maps(folder):
    """Before the fork: those of the folder. (What is writable is no park's.)"""
    found, below = [], folder.rstrip("/") + "/"
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            fields = line.rstrip("\n").split(None, 5)
            if len(fields) < 6 or fields[1][3] != "s" or not fields[5].startswith(below):
                continue
            begin, end = (int(n, 16) for n in fields[0].split("-"))
            protection = mmap.PROT_READ * (fields[1][0] == "r") | mmap.PROT_EXEC * (fields[1][2] == "x")
            # As the system writes it there: a newline is spelled out.
            path = fields[5].replace("\\012", "\n")
            found.append(Map(begin, end, int(fields[2], 16), path, protection))
    return found


def _open(path, flags):
    """A regular file, or OSError; a FIFO of that name would make it wait."""
    fd = os.open(path, (flags & ~_MADE_ONCE) | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(2, "it is no file any more")
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK | flags & os.O_NONBLOCK)
    return fd


def by_name(f, place):
    """Puts the file of that name in the place of a descriptors.File. False: it cannot be."""
    path = place.of(f.path)
    if path is None or f.flags & os.O_PATH:
        return False
    try:
        fresh = _open(path, f.flags)
    except OSError:
        return False
    os.lseek(fresh, f.offset, os.SEEK_SET)
    os.dup2(fresh, f.fd, inheritable=os.get_inheritable(f.fd))
    os.close(fresh)
    return True


def map_again(found, place):
    """Returns what is still that of the line left behind."""
    lost = []
    for m in found:
        reason = _map(m, place.of(m.path))
        if reason:
            lost.append(descriptors.loss(m.path, "map", reason))
    return lost


def _map(m, path):
    try:
        fd = _open(path, os.O_RDONLY)
    except OSError as e:
        return f"could not be mapped again: {e.strerror}"
    try:
        if os.fstat(fd).st_size <= max(0, m.offset):
            return "could not be mapped again: the file is shorter"
        size = m.end - m.begin
        if _mmap(m.begin, size, m.protection, mmap.MAP_SHARED | _MAP_FIXED, fd, m.offset) == _FAILED:
            return f"could not be mapped again: {os.strerror(ctypes.get_errno())}"
    finally:
        os.close(fd)
    return None
