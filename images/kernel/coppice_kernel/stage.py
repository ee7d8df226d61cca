"""The place in a working folder where files are laid beside it, and the renames that bring them into it and
back (docs/decisions/0028).

    .coppice-lay/new/N      what is to be put in
    .coppice-lay/stash/N    what was taken out
    .coppice-lay/journal    the moves: [["out" or "in", N, path], ...], in order

Of each move the places tell whether it was done, so that a kill at any moment leaves what can be put back.
The journal's removal is the moment from which on the new is what counts.
"""

import ctypes
import errno
import json
import os
import stat

from coppice_kernel import look, names

NEW, STASH, JOURNAL = "new", "stash", "journal"
OUT, IN = "out", "in"
_NOREPLACE = 1
_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)



def rename_new(name, to, source, target):
    """Never over something that is there."""
    if _renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    done = _renameat2(source, os.fsencode(name), target, os.fsencode(to), _NOREPLACE)
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), to)


def _exists(name, at):
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


class Stage:
    def __init__(self, root, made=True):
        """`root`: descriptor of the folder, which stays the caller's. Raises OSError."""
        self.root = root
        if made:
            os.mkdir(names.LAY, 0o700, dir_fd=root)
        self.place = os.open(names.LAY, look.DIR, dir_fd=root)
        self._ends = [self.place]
        try:
            for name in (NEW, STASH) if made else ():
                os.mkdir(name, 0o700, dir_fd=self.place)
            self.new, self.stash = (self._open(name) for name in (NEW, STASH))
        except OSError:
            self.close()
            raise

    def _open(self, name):
        self._ends.append(os.open(name, look.DIR, dir_fd=self.place))
        return self._ends[-1]

    def close(self):
        while self._ends:
            os.close(self._ends.pop())

    def plan(self, moves):
        part = f"{JOURNAL}.part"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self.place)
        with os.fdopen(fd, "w", encoding="ascii") as f:
            json.dump(moves, f)
        os.rename(part, JOURNAL, src_dir_fd=self.place, dst_dir_fd=self.place)

    def read_plan(self):
        """None: nothing was moved, or all of it counts."""
        try:
            fd = os.open(JOURNAL, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.place)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, encoding="ascii") as f:
            return json.load(f)

    def move(self, kind, number, path):
        parent, name = look.open_parent(self.root, path)
        try:
            if kind == OUT:
                rename_new(name, str(number), parent, self.stash)
            else:
                rename_new(str(number), name, self.new, parent)
        finally:
            os.close(parent)

    def put_back(self, moves):
        """In steps; as often as is wanted. Returns what could not be put back."""
        failed = []
        for kind, number, path in reversed(moves):
            try:
                self._undo(kind, str(number), path)
            except OSError as e:
                failed.append(f"{names.escaped(path)}: {e.strerror}")
            yield
        return failed

    def _undo(self, kind, number, path):
        if kind == OUT and _exists(number, self.stash):
            parent, name = self._made_parent(path)
            try:
                # Over what was written there meanwhile: what was taken out is what was told.
                os.rename(number, name, src_dir_fd=self.stash, dst_dir_fd=parent)
            finally:
                os.close(parent)
        elif kind == IN and not _exists(number, self.new):
            self._take_back(number, path)

    def _take_back(self, number, path):
        try:
            parent, name = look.open_parent(self.root, path)
        except OSError:
            parent = None
        try:
            if parent is not None and _exists(name, parent):
                rename_new(name, number, parent, self.new)
                return
        finally:
            if parent is not None:
                os.close(parent)
        # Its guest has removed it. The place says that it is undone, or a second time would take what
        # the first one brought back.
        os.close(os.open(number, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=self.new))

    def _made_parent(self, path):
        for above in reversed(list(names.parents(path))):
            parent, name = look.open_parent(self.root, above)
            try:
                os.mkdir(name, dir_fd=parent)
            except FileExistsError:
                pass
            finally:
                os.close(parent)
        return look.open_parent(self.root, path)

    def forget_plan(self):
        """From now on what lies in the folder is what counts. Comes before anything of the place goes."""
        try:
            os.unlink(JOURNAL, dir_fd=self.place)
        except FileNotFoundError:
            pass


def clear(root, name=names.LAY):
    """Removes all of that name below `root`, in steps, following nothing."""
    try:
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode)
        if not is_folder:
            os.unlink(name, dir_fd=root)
            return
        fd = os.open(name, look.DIR, dir_fd=root)
    except OSError:
        return
    try:
        for entry in os.listdir(fd):
            yield from clear(fd, entry)
            yield
    finally:
        os.close(fd)
    try:
        os.rmdir(name, dir_fd=root)
    except OSError:
        pass


def recover(folder):
    """At a start: what a lay left that came to no end is put back. In steps; raises OSError where that
    cannot be done, and then nothing of it is removed."""
    try:
        root = look.open_folder(folder)
    except OSError:
        return
    try:
        if not _exists(names.LAY, root):
            return
        failed = yield from _recover(root)
        if failed:
            raise OSError(errno.EEXIST, f"an earlier move could not be undone: {failed[0]}")
        yield from clear(root)
    finally:
        os.close(root)


def _recover(root):
    try:
        stage = Stage(root, made=False)
    except (FileNotFoundError, NotADirectoryError):
        return []  # nothing was moved yet, or it is not ours
    try:
        moves = stage.read_plan()
        failed = (yield from stage.put_back(moves)) if moves else []
        if not failed:
            stage.forget_plan()
        return failed
    except (ValueError, TypeError):
        return []  # no journal of ours
    finally:
        stage.close()
