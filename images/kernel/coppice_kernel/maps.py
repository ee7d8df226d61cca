"""Which files of a folder some process has mapped so that it writes to them without a trace in `stat`:
writable and shared, on a tmpfs (branching.md 4.3). Told by inode."""

import os

_WRITABLE = (b" rw-s ", b" rwxs ", b" -w-s ")
LOOKED_AT = 200  # processes


def _read(path):
    pieces = []
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while piece := os.read(fd, 1 << 16):
            pieces.append(piece)
    finally:
        os.close(fd)
    return b"".join(pieces)


def _inodes(text, folder):
    """Of the lines of a `maps` below that folder."""
    if not any(mark in text for mark in _WRITABLE):
        return frozenset()
    below = os.fsencode(folder).rstrip(b"/") + b"/"
    found = set()
    for line in text.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[1][1:2] == b"w" and fields[1][3:4] == b"s":
            if fields[5].startswith(below):
                found.add(int(fields[4]))
    return frozenset(found)


def _kilobytes(status, name):
    at = status.find(name)
    return int(status[at + len(name) : status.index(b"kB", at)]) if at >= 0 else None


class Own:
    """Of this process, cheaply: pages that were written through such a map are its shared memory."""

    def __init__(self, folder):
        self._folder = folder
        self._key, self._found = None, frozenset()

    def look(self):
        status = _read("/proc/self/status")
        shared = _kilobytes(status, b"\nRssShmem:")
        if shared == 0:
            return frozenset()
        key = (shared, _kilobytes(status, b"\nVmSize:"))
        if shared is None or key != self._key:
            self._found, self._key = _inodes(_read("/proc/self/maps"), self._folder), key
        return self._found


def of_all(folder, but=()):
    """Of every process that can be seen; a pause after each. Returns the inodes."""
    found = set()
    for pid in [n for n in os.listdir("/proc") if n.isdigit() and int(n) not in but][:LOOKED_AT]:
        try:
            found |= _inodes(_read(f"/proc/{pid}/maps"), folder)
        except OSError:
            continue  # gone, or private
        yield
    return frozenset(found)
