"""Names of files as they travel and lie in git (docs/decisions/0028): escaped, so that neither the gateway
nor git ever sees one that they would refuse. In here a name is a text as os.fsdecode() makes it."""

import os
import re
import unicodedata
from urllib.parse import unquote_to_bytes

LAY = ".coppice-lay"  # in a folder's top, never recorded
KEEPER = ".coppice-folder"  # what the gateway puts into an empty folder
PATH_MAX = 4000  # of an escaped path, in bytes
NAME_MAX = 255
DEPTH_MAX = 60  # folders in folders

# What git takes for `.git` on systems with other rules, and the file that git follows elsewhere.
_REFUSED = re.compile(r"(\.git|git~1|\.gitmodules)[. ]*([:\\].*)?", re.IGNORECASE | re.DOTALL)
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")  # by HFS
_PLAIN = re.compile(r"[\w+,=@#()\[\]{} -][\w.+,=@#()\[\]{} -]*", re.ASCII)


class BadPath(ValueError):
    """A path that no folder may be given."""


def _quoted(character):
    if "\udc80" <= character <= "\udcff":
        return f"%{ord(character) - 0xDC00:02X}"
    return "".join(f"%{b:02X}" for b in character.encode())


def _must_be_quoted(character):
    return character == "%" or "\udc80" <= character <= "\udcff" or unicodedata.category(character) == "Cc"


def _component(name):
    if _PLAIN.fullmatch(name) and not name.endswith(KEEPER):
        return name
    found = "".join(_quoted(c) if _must_be_quoted(c) else c for c in name)
    if _REFUSED.fullmatch(_IGNORED.sub("", found)) or found.endswith(KEEPER):
        # All of the first character: half of one would not be UTF-8.
        found = _quoted(found[0]) + found[1:]
    return found


def escaped(path):
    return "/".join(map(_component, path.split("/")))


def unescaped(path):
    """Its inverse; raises BadPath for what names nothing below a folder, or our own place in it."""
    names = [unquote_to_bytes(c) for c in path.split("/")]
    for name in names:
        if not 0 < len(name) <= NAME_MAX or name in (b".", b"..") or b"/" in name or b"\0" in name:
            raise BadPath(f"{path[:200]!r} is no path below a folder")
    if os.fsdecode(names[0]) == LAY or len(names) > DEPTH_MAX + 1 or len(path.encode()) > PATH_MAX:
        raise BadPath(f"{path[:200]!r} cannot be laid down")
    return os.fsdecode(b"/".join(names))


def parents(path):
    """The folders above it, the nearest first."""
    while "/" in path:
        path = path[: path.rindex("/")]
        yield path
