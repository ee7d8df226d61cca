"""What a kernel hands to the supervisor after a cell: its look at the folder, and of what changed the
content, all in one sealed memory file. Made in the kernel, read with distrust in the supervisor.

    contents | paths, each ended by NUL | signatures | header, JSON | 8 bytes: length of the header
"""

import array
import fcntl
import json
import os
import stat

from coppice_kernel import look, names

CHANNEL = "files"  # named by the supervisor where it acknowledges what it took: how many, in all
COPIED_MAX = 8 << 20
HEADER_MAX = 4 << 20
PATHS_MAX = 3 * look.NAMES_MAX  # it counts characters
BEYOND_MAX = 100
TAIL = 8
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
COLUMNS = 5


class Unfit(Exception):
    """Not what pack() makes."""


def _copy(carrier, root, path, sig):
    """Appends the file's content. False: it was not what was looked at, at the start or at the end."""
    if look.is_link(sig):
        content = look.read_link(root, path)
        return len(content) == sig[2] and os.write(carrier, content) == len(content)
    fd = look.open_file(root, path)
    try:
        left = sig[2]
        if look.signature(os.fstat(fd)) != sig:
            return False
        while left:
            sent = os.sendfile(carrier, fd, None, left)
            if not sent:
                return False
            left -= sent
        return look.signature(os.fstat(fd)) == sig
    finally:
        os.close(fd)


def _copy_all(carrier, folder, seen, wanted, room):
    """The smallest first. Returns [[place among the paths, size]] in order of content."""
    places = {path: i for i, path in enumerate(seen.rows)}
    wanted = [p for p in wanted if look.is_file(seen.rows[p]) or look.is_link(seen.rows[p])]
    given = []
    try:
        root = look.open_folder(folder)
    except OSError:
        return given
    try:
        for path in sorted(wanted, key=lambda p: seen.rows[p][2]):
            sig = seen.rows[path]
            room -= sig[2]
            if room < 0:
                break
            begin = os.lseek(carrier, 0, os.SEEK_CUR)
            try:
                copied = _copy(carrier, root, path, sig)
            except OSError:
                copied = False
            if copied:
                given.append([places[path], sig[2]])
            else:
                os.lseek(carrier, begin, os.SEEK_SET)
                os.ftruncate(carrier, begin)
    finally:
        os.close(root)
    return given


def _header(seen, changed, given):
    copied = {place for place, _ in given}
    left = set(changed or ()) if len(copied) < len(changed or ()) else ()
    return {
        "at": seen.at,
        "based": changed is not None,
        "beyond": list(seen.beyond.items())[:BEYOND_MAX],
        "count": len(seen.rows),
        "given": given,
        "read": [i for i, p in enumerate(seen.rows) if p in left and i not in copied],
    }


def pack(folder, seen, changed, room=COPIED_MAX):
    """A descriptor. `changed`: paths of the look that may differ from the one before; None: no look came
    before, any of them may."""
    carrier = os.memfd_create("files", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        wanted = seen.rows if changed is None else changed
        given = _copy_all(carrier, folder, seen, wanted, room) if room else []
        paths = b"".join(os.fsencode(path) + b"\0" for path in seen.rows)
        table = array.array("q", [n for sig in seen.rows.values() for n in sig])
        header = json.dumps({**_header(seen, changed, given), "paths": len(paths)}).encode()
        os.writev(carrier, [paths, table, header, len(header).to_bytes(TAIL, "big")])
        fcntl.fcntl(carrier, fcntl.F_ADD_SEALS, SEALS)
    except BaseException:
        os.close(carrier)
        raise
    return carrier


class Handed:
    """What came, checked. `given`: path -> (place in the carrier, size)."""

    def __init__(self, carrier):
        try:
            self._read(carrier)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError) as e:
            raise Unfit(str(e)) from e

    def _read(self, carrier):
        if fcntl.fcntl(carrier, fcntl.F_GET_SEALS) & SEALS != SEALS:
            raise ValueError("it is not sealed")
        end = os.fstat(carrier).st_size - TAIL
        length = int.from_bytes(os.pread(carrier, TAIL, end), "big")
        if length > HEADER_MAX:
            raise ValueError("the header is too long")
        header = json.loads(os.pread(carrier, length, end - length))
        count, paths = int(header["count"]), int(header["paths"])
        if not 0 <= count <= look.ENTRIES_MAX or not 0 <= paths <= PATHS_MAX:
            raise ValueError("there are too many")
        at = end - length - paths - COLUMNS * 8 * count
        listed = os.pread(carrier, paths, at).split(b"\0")[:-1]
        table = array.array("q", os.pread(carrier, COLUMNS * 8 * count, at + paths))
        if len(listed) != count or len(table) != COLUMNS * count:
            raise ValueError("it is cut")
        self.look = self._look(header, listed, table)
        self.based = header["based"] is True
        listed = list(self.look.rows)
        self.read = {listed[i] for i in header["read"]}
        self._take_given(header["given"], listed, at)

    @staticmethod
    def _look(header, listed, table):
        found = look.Look()
        found.at = min(int(header["at"]), found.at)
        for path, reason in header["beyond"][:BEYOND_MAX]:
            found.beyond[_checked(path) if path else ""] = str(reason)[:200]
        for path, *sig in zip(listed, *[iter(table)] * COLUMNS):
            sig = look.FOLDER if stat.S_ISDIR(sig[0]) else tuple(sig)
            if sig[2] < 0:
                raise ValueError("a size")
            found.rows[_checked(os.fsdecode(path))] = sig
        if len(found.rows) != len(listed):
            raise ValueError("a path is there twice")
        return found

    def _take_given(self, given, listed, end):
        self.given, at = {}, 0
        for place, length in given:
            path = listed[place]
            if length != self.look.rows[path][2] or at + length > end:
                raise ValueError("a content is cut")
            self.given[path] = (at, length)
            at += length


def _checked(path):
    parts = path.split("/")
    if not all(parts) or "." in parts or ".." in parts or "\0" in path or parts[0] == names.LAY:
        raise ValueError("a path")
    if len(parts) > names.DEPTH_MAX + 1:
        raise ValueError("a path is too deep")
    return path
