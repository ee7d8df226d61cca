"""The descriptors of a kernel's process: which are the kernel's own, and what becomes of each of them in
a fork that is parked and in a kernel that is revived from it (docs/decisions/0025)."""

import fcntl
import os
import socket
import stat
from typing import NamedTuple

EVENTFD = "anon_inode:[eventfd]"
# What is not asked for again; /proc/self/fd is a link.
MADE_ONCE = os.O_CREAT | os.O_TRUNC | os.O_EXCL | os.O_NOFOLLOW
STATELESS = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")}
SQLITE = b"SQLite format 3\0"


class File(NamedTuple):
    """A regular file as it was before the fork: its offset is shared with the parent from then on."""

    fd: int
    path: str
    flags: int
    offset: int
    identity: tuple  # device, inode
    stamp: tuple | None  # size, time of change; None: a folder's
    locked: bool
    database: bool


class Open(NamedTuple):
    fd: int
    kind: str  # file, folder, socket, pipe, terminal, device, anonymous, other
    link: str
    stat: os.stat_result


def _kind(mode, link):
    if link.startswith("anon_inode:"):
        return "anonymous"
    if stat.S_ISCHR(mode) and link not in STATELESS:
        return "terminal" if link.startswith("/dev/pt") else "device"
    kinds = {
        stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFSOCK: "socket", stat.S_IFIFO: "pipe",
    }
    return kinds.get(stat.S_IFMT(mode), "other")


def scan():
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(name))
            link = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # that of the listing itself
        found.append(Open(int(name), _kind(status.st_mode, link), link, status))
    return found


def _asked(fd, question):
    """What `question` answers about a socket; None if it does not."""
    try:
        s = socket.socket(fileno=fd)
    except OSError:
        return None
    try:
        return question(s)
    except OSError:
        return None
    finally:
        s.detach()


def listens(fd):
    return bool(_asked(fd, lambda s: s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)))


def _name(fd):
    return _asked(fd, lambda s: s.getsockname())


class Ours:
    """What the kernel itself has open. Taken as it is ready, before any cell ran."""

    def __init__(self, users=()):
        """`users`: the numbers that a revived kernel's user had in the parked one."""
        kinds = ("socket", "pipe", "anonymous", "terminal", "device")
        opened = [o for o in scan() if o.kind in kinds and o.fd not in users]
        self._known = {o.fd: (o.stat.st_dev, o.stat.st_ino, o.link) for o in opened}
        # What a listener accepts later has its name.
        self._names = {_name(o.fd) for o in opened if o.kind == "socket" and listens(o.fd)} - {None, ""}

    def has(self, o):
        if self._known.get(o.fd) == (o.stat.st_dev, o.stat.st_ino, o.link):
            return True
        if o.kind == "socket":
            return _name(o.fd) in self._names
        # ZeroMQ makes one for each inner socket, and none that blocks, as Python's do unless asked.
        return o.link == EVENTFD and not os.get_blocking(o.fd)


class Table:
    """All of them at one moment."""

    def __init__(self, ours, beside=()):
        """`beside`: descriptors that are left out."""
        self.ours, self.users, self.files = [], [], []
        self.numbers = set()  # of what is the user's in the fork
        self._left = []  # what was lost in leave()
        for o in scan():
            if o.fd in beside or o.kind == "other":
                continue
            if o.kind in ("file", "folder"):
                self.files.append(_file(o))
            else:
                (self.ours if ours.has(o) else self.users).append(o)
        self._same = _same(self.files)

    def told(self):
        """What is known before the fork to be lost of the files."""
        for f in self.files:
            if f.database:
                yield loss(f.path, "database", "is shared with the line left behind; open it again")
            if f.locked:
                yield loss(f.path, "lock", "is not held any more: lock it again")

    def leave(self):
        """In the fork: no listener, connection or end of a pipe is held that its parent lets go of, and
        what was the user's leads nowhere. Nothing is shut down or unregistered, which the parent would
        feel. The user's numbers stay taken: an object that closes its own closes nobody else's."""
        for o in self.ours:
            if o.fd > 2 and _is_still(o.fd, (o.stat.st_dev, o.stat.st_ino)):
                os.close(o.fd)
        users = [o for o in self.users if _is_still(o.fd, (o.stat.st_dev, o.stat.st_ino))]
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in (1, 2):
            os.dup2(null, fd)
        os.close(null)
        if users:
            end, other = socket.socketpair()
            other.close()  # reads its end, writes break
            for o in users:
                os.dup2(end.fileno(), o.fd, inheritable=False)
            end.close()
            self.numbers = {o.fd for o in users}
        # A lock of flock() is the open file's: held here it would outlive its owner's close().
        locked = [f for f in self.files if f.locked and _is_still(f.fd, f.identity)]
        self._left = [found for found in map(_reopen, locked) if found]

    def reopen(self, by_name=lambda f: False, is_theirs=lambda f: False):
        """In the revived kernel: offsets of its own, as they were. `by_name(f)` may put another file in its
        place; one that `is_theirs(f)` is not used else. Returns what did not come back."""
        lost, opened = self._left, set()
        for f in self.files:
            if not _is_still(f.fd, f.identity):
                continue  # a hook of the fork closed it: matplotlib, its fonts
            self.numbers.add(f.fd)
            first = self._same.get(f.fd)
            if first in opened:
                os.dup2(first, f.fd, inheritable=os.get_inheritable(f.fd))
                continue
            opened.add(f.fd)
            if not by_name(f):
                lost.append(_lead_nowhere(f) if is_theirs(f) else _reopen(f))
        return [found for found in lost if found]


def _is_still(fd, identity):
    """Not closed since by its object or by a hook of the fork, and its number not somebody else's."""
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == identity


def _file(o):
    try:
        offset = os.lseek(o.fd, 0, os.SEEK_CUR)
    except OSError:
        offset = 0
    is_folder = o.kind == "folder"
    return File(
        o.fd,
        o.link,
        fcntl.fcntl(o.fd, fcntl.F_GETFL),
        offset,
        (o.stat.st_dev, o.stat.st_ino),
        None if is_folder else (o.stat.st_size, o.stat.st_mtime_ns),
        _is_locked(o.fd),
        not is_folder and _is_database(o.fd),
    )


def _is_locked(fd):
    """By this process, through this descriptor or a copy of it."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii", errors="replace") as f:
            return "\nlock:" in f.read()
    except OSError:
        return False


def _is_database(fd):
    """Of SQLite, whatever object holds it: its locks and pages in memory do not stand a fork."""
    try:
        return os.pread(fd, len(SQLITE), 0) == SQLITE
    except OSError:
        return False


def _same(files):
    """Descriptor -> an earlier one, where both are one open file (dup) and so have one offset."""
    found, earlier = {}, {}
    for f in files:
        if f.stamp is None or f.flags & os.O_PATH:
            continue
        alike = earlier.setdefault((f.identity, f.flags, f.offset), [])
        first = next((e for e in alike if _moves_with(e, f)), None)
        if first:
            found[f.fd] = first.fd
        else:
            alike.append(f)
    return found


def _moves_with(one, other):
    try:
        os.lseek(one.fd, one.offset + 1, os.SEEK_SET)
        try:
            return os.lseek(other.fd, 0, os.SEEK_CUR) == one.offset + 1
        finally:
            os.lseek(one.fd, one.offset, os.SEEK_SET)
    except OSError:
        return False  # it cannot be moved


def _lead_nowhere(f):
    """Reads its end, writes break: what a branch writes never goes to the other line's file."""
    end, other = socket.socketpair()
    other.close()
    os.dup2(end.fileno(), f.fd, inheritable=os.get_inheritable(f.fd))
    end.close()
    return loss(f.path, "file", "is the other line's, and not in this one's folder")


def _reopen(f):
    """Through the descriptor itself, so that a file without a name is found too."""
    if f.flags & os.O_PATH:
        return None  # it only names a file
    inheritable = os.get_inheritable(f.fd)
    try:
        fresh = os.open(f"/proc/self/fd/{f.fd}", (f.flags & ~MADE_ONCE) | os.O_CLOEXEC)
    except OSError as e:
        end, other = socket.socketpair()
        other.close()
        os.dup2(end.fileno(), f.fd, inheritable=inheritable)
        end.close()
        return loss(f.path, "file", f"could not be opened again: {e.strerror}")
    os.lseek(fresh, f.offset, os.SEEK_SET)
    now = os.fstat(fresh)
    os.dup2(fresh, f.fd, inheritable=inheritable)
    os.close(fresh)
    if f.stamp is None:
        return None  # what a folder holds is not the descriptor's
    if now.st_nlink == 0:
        return loss(f.path, "file", "has no name any more; its content is shared with the line left behind")
    if (now.st_size, now.st_mtime_ns) != f.stamp:
        return loss(f.path, "file", "was written to since")
    try:
        named = os.stat(f.path)
    except OSError:
        return loss(f.path, "file", "was moved since")
    if (named.st_dev, named.st_ino) != f.identity:
        return loss(f.path, "file", "was replaced since")
    return None


def loss(name, kind, reason):
    return {"name": name[:200], "kind": kind, "reason": reason}
