"""A look at a working folder: what `stat` tells of everything below it (docs/decisions/0028).

A file's *signature* is (mode, inode, size, mtime_ns, ctime_ns). Everything is opened by the descriptor of
the folder that it lies in, never through a link: the folder is its guest's, who may change it meanwhile.
"""

import errno
import os
import stat
import time

from coppice_kernel import names

ENTRIES_MAX = 20000
NAMES_MAX = 4 << 20  # bytes of all paths together
RACY_NS = 10_000_000  # a change so near to the look may have left the same signature
FOLDER = (stat.S_IFDIR, 0, 0, 0, 0)  # a folder's own times change with each file that is renamed
TOO_MANY = f"there are more than {ENTRIES_MAX:,} files, or their names are too long: not all were looked at"
TOO_DEEP = f"it lies more than {names.DEPTH_MAX} folders deep"
TOO_LONG = "its path is too long"

DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def signature(s):
    return (s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)


def is_file(sig):
    return stat.S_ISREG(sig[0])


def is_link(sig):
    return stat.S_ISLNK(sig[0])


def is_folder(sig):
    return sig == FOLDER


class Look:
    def __init__(self):
        self.at = time.time_ns()
        self.rows = {}  # path -> signature
        self.beyond = {}  # path -> why nothing is known of it or of what is below it
        self.newest = 0  # time of change of whatever changed last
        self.has_content = False  # some file is not empty
        self._bytes = 0

    def steps(self, fd, prefix="", depth=0):
        """Looks below the folder `fd`; a pause after each folder."""
        rows, folders, newest = self.rows, [], self.newest
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    if path == names.LAY:
                        continue
                    if not self._has_room(path):
                        return
                    try:
                        s = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # gone meanwhile
                    mode, size, changed = s.st_mode, s.st_size, s.st_ctime_ns
                    if stat.S_ISDIR(mode):
                        rows[path] = FOLDER
                        folders.append(entry.name)
                        continue
                    rows[path] = (mode, s.st_ino, size, s.st_mtime_ns, changed)
                    if changed > newest:
                        newest = changed
                    if size:
                        self.has_content = True
        except OSError as e:
            self.beyond[prefix[:-1]] = f"cannot be read: {e.strerror}"
        self.newest = newest
        yield
        for name in folders:
            yield from self._below(fd, prefix + name, name, depth + 1)

    def _below(self, fd, path, name, depth):
        if depth > names.DEPTH_MAX:
            self.beyond[path] = TOO_DEEP
            return
        try:
            sub = os.open(name, DIR, dir_fd=fd)
        except OSError as e:
            if e.errno != errno.ENOENT:
                self.beyond[path] = f"cannot be opened: {e.strerror}"
            return
        try:
            yield from self.steps(sub, path + "/", depth)
        finally:
            os.close(sub)

    def _has_room(self, path):
        self._bytes += len(path)
        if len(self.rows) < ENTRIES_MAX and self._bytes < NAMES_MAX:
            return True
        self.beyond[""] = TOO_MANY
        return False

    def is_closed(self, error):
        """The folder itself. One that is gone holds nothing; of another nothing is known."""
        if error.errno != errno.ENOENT:
            self.beyond[""] = f"the folder cannot be opened: {error.strerror}"

    def may_hide(self, path):
        """It may be there though it was not seen."""
        return "" in self.beyond or any(above in self.beyond for above in names.parents(path))

    def racy(self, sig):
        """It may have changed after this look and look the same."""
        return sig[4] >= self.at - RACY_NS

    def is_as(self, before):
        """Nothing differs from that earlier look, nor may."""
        return (
            self.newest < before.at - RACY_NS
            and self.rows == before.rows
            and self.beyond == before.beyond
        )

    def changed_since(self, before, mapped=()):
        """Paths that differ from an earlier look, or may; `mapped`: inodes that are written to without a
        trace."""
        old = before.rows
        return [
            path
            for path, sig in self.rows.items()
            if old.get(path) != sig or (sig[4] and before.racy(sig)) or (mapped and sig[1] in mapped)
        ]


def open_folder(path):
    return os.open(path, DIR)


def open_parent(root, path):
    """A descriptor of the folder that `path` lies in, below the descriptor `root`; and its last name."""
    *above, name = path.split("/")
    fd = os.dup(root)
    try:
        for component in above:
            sub = os.open(component, DIR, dir_fd=fd)
            os.close(fd)
            fd = sub
    except OSError:
        os.close(fd)
        raise
    return fd, name


def stat_below(root, path):
    fd, name = open_parent(root, path)
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    finally:
        os.close(fd)


def open_file(root, path):
    """A regular file for reading, without waiting for whatever else it may be by now."""
    parent, name = open_parent(root, path)
    try:
        return os.open(name, _FILE, dir_fd=parent)
    finally:
        os.close(parent)


def read_link(root, path):
    parent, name = open_parent(root, path)
    try:
        return os.fsencode(os.readlink(name, dir_fd=parent))
    finally:
        os.close(parent)


def now(path):
    """A whole look at a folder by its path; of one that is not there, an empty one."""
    found = Look()
    try:
        fd = open_folder(path)
    except OSError as e:
        found.is_closed(e)
        return found
    try:
        for _ in found.steps(fd):
            pass
    finally:
        os.close(fd)
    return found
