"""Semaphores of multiprocessing, which tqdm makes too: each a page that is shared with whoever maps it.
A fork that is parked gets its own, as they were (branching.md A8 refuses all other shared memory)."""

import ctypes
import mmap

NAME = "/dev/shm/sem."
_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10  # MAP_FIXED: in its place
_FAILED = ctypes.c_void_p(-1).value

_mmap = ctypes.CDLL(None, use_errno=True).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]


def is_one(name):
    return name.startswith(NAME)


def take():
    """Before the fork: (address, content) of each."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as f:
        for line in f:
            fields = line.split(None, 5)
            if len(fields) > 5 and is_one(fields[5]):
                begin, end = (int(n, 16) for n in fields[0].split("-"))
                found.append((begin, ctypes.string_at(begin, end - begin)))
    return found


def make_own(taken):
    """In the fork."""
    for address, content in taken:
        if _mmap(address, len(content), _PROTECTION, _FLAGS, -1, 0) == _FAILED:
            raise OSError(ctypes.get_errno(), "a semaphore stays shared")
        ctypes.memmove(address, content, len(content))
