"""Working folders of branches that run beside another line (docs/decisions/0029): /branches/NAME.

Made and removed by the supervisor. What is in them is the guest's.
"""

import contextlib
import os
import shutil

ABOVE = "/branches"


def _name(path, above):
    """NAME of /branches/NAME; None: it is another path."""
    head, name = os.path.split(path)
    return name if head == above and name not in ("", ".", "..") else None


def make(path, above=ABOVE):
    """It is there then, if it is one of ours. Raises OSError."""
    if _name(path, above):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def drop(path, above=ABOVE):
    """It goes with all that is in it; a link in its place goes alone."""
    if not _name(path, above):
        return
    if os.path.islink(path):
        os.unlink(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
