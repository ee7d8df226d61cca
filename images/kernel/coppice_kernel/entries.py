"""Entries of a Change (docs/decisions/0028): what is told of a file, by what its content is named, and
which files are over the budget. In the supervisor; reading is done in pieces, with pauses between."""

import hashlib
import os
import stat

from coppice_kernel import look, names

PIECE = 1 << 20  # what is larger is told in chunks of it
BUDGET_BYTES = 256 << 20
BUDGET_FILES = 10000
BUDGET_FILE = 64 << 20
TARGET_MAX = 4095  # of a symlink
MOVED = "it was changed while it was read"
OVER_FILE = "not kept: it is larger than 64 MiB"
OVER_BYTES = "not kept: over the budget of 256 MiB"
OVER_FILES = "not kept: over the budget of 10,000 files"
EMPTY_FOLDER = "40000"
LINK = "120000"

_KINDS = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def mode_of(sig):
    if look.is_link(sig):
        return LINK
    return "100755" if sig[0] & stat.S_IXUSR else "100644"


def is_kept(entry):
    return "lost" not in entry


def same(one, other):
    """Whether nothing would have to be laid down. Neither is lost."""
    keys = ("mode", "bytes", "blob", "chunks")
    return all(one.get(k) == other.get(k) for k in keys)


def no_entry(sig):
    """Why something is none; None: it is one."""
    kind = _KINDS.get(stat.S_IFMT(sig[0]))
    return f"{kind} is not kept" if kind else None


def blob_name(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def chunk_name(content):
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def name_of(entry_is_chunked, content):
    return chunk_name(content) if entry_is_chunked else blob_name(content)


def contents_of(entry):
    """(name, offset, size) of each content of an entry that is kept."""
    if "blob" in entry:
        return [(entry["blob"], 0, entry["bytes"])]
    ends = range(0, entry["bytes"], PIECE)
    return [(n, at, min(PIECE, entry["bytes"] - at)) for n, at in zip(entry.get("chunks", ()), ends)]


def over(rows):
    """path -> why it is not kept though it could be; the largest first."""
    files = [(sig[2], path) for path, sig in rows.items() if look.is_file(sig) or look.is_link(sig)]
    found = {path: OVER_FILE for size, path in files if size > BUDGET_FILE}
    left = sorted(((size, path) for size, path in files if size <= BUDGET_FILE), reverse=True)
    total, count = sum(size for size, _ in left), len(left)
    for size, path in left:
        if total <= BUDGET_BYTES and count <= BUDGET_FILES:
            break
        found[path] = OVER_BYTES if total > BUDGET_BYTES else OVER_FILES
        total, count = total - size, count - 1
    return found


def lost(path, sig, reason):
    return {"path": names.escaped(path), "mode": mode_of(sig), "bytes": sig[2], "lost": reason}


def named(path, sig, read):
    """The entry of what `read(size)` gives piece by piece: as many bytes as the signature says, or it was
    changed meanwhile. In steps."""
    entry = {"path": names.escaped(path), "mode": mode_of(sig), "bytes": sig[2]}
    found = []
    for at in range(0, max(1, sig[2]), PIECE):
        content = read(min(PIECE, sig[2] - at))
        if len(content) != min(PIECE, sig[2] - at):
            return lost(path, sig, MOVED)
        found.append(name_of(sig[2] > PIECE, content))
        yield
    return {**entry, "chunks": found} if sig[2] > PIECE else {**entry, "blob": found[0]}


class Source:
    """Content that still lies in the folder, with the signature that it had when it was read."""

    def __init__(self, folder, path, sig, at, size):
        self.folder, self.path, self.sig, self.at, self.size = folder, path, sig, at, size

    def read(self):
        """None: it is not the same any more."""
        try:
            root = look.open_folder(self.folder)
        except OSError:
            return None
        try:
            return read_part(root, self.path, self.sig, self.at, self.size)
        finally:
            os.close(root)


class Copied:
    """Content in a memory file."""

    def __init__(self, carrier, at, size):
        self.carrier, self.at, self.size = carrier, at, size

    def read(self):
        return os.pread(self.carrier, self.size, self.at)


def read_part(root, path, sig, at, size):
    """None: it is not the file of that signature."""
    try:
        if look.is_link(sig):
            target = look.read_link(root, path)
            return target if look.signature(look.stat_below(root, path)) == sig else None
        fd = look.open_file(root, path)
    except OSError:
        return None
    try:
        content = os.pread(fd, size, at)
        return content if len(content) == size and look.signature(os.fstat(fd)) == sig else None
    except OSError:
        return None
    finally:
        os.close(fd)
