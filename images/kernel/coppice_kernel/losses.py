"""What of a namespace will not come back whole in a fork, by name, without running the user's code."""

import asyncio
import os
import sys

from coppice_kernel.descriptors import loss

COUNT_MAX = 100
LOOKED_AT = 20000  # names
_OURS = ("ipykernel", "tornado", "coppice_kernel", "zmq", "jupyter_client")

# Module, class, kind, reason. A module that is not imported has no objects here.
_KINDS = (
    ("socket", "socket", "socket", "connections must be opened again"),
    ("sqlite3", "Connection", "database", "is shared with the line left behind; open it again"),
    ("duckdb", "DuckDBPyConnection", "database", "is shared with the line left behind; open it again"),
    ("asyncio", "Task", "task", "stands still: the event loop it ran in is gone"),
    ("asyncio", "AbstractEventLoop", "event loop", "waits for nothing any more"),
    ("select", "epoll", "descriptor", "waits for nothing any more"),
    ("tempfile", "TemporaryDirectory", "folder", "is shared with the line left behind"),
    ("multiprocessing.connection", "Connection", "pipe", "its other end is gone"),
)


def _member(module, name):
    found = sys.modules.get(module)
    return found.__dict__.get(name) if found is not None else None


def _known():
    found = []
    for module, name, kind, reason in _KINDS:
        cls = _member(module, name)
        if isinstance(cls, type):
            found.append((cls, kind, reason))
    return found


def _is_done(cls, value):
    """A task that has ended, a socket that is closed."""
    if cls is _member("asyncio", "Task"):
        return cls.done(value)
    socket = _member("socket", "socket")
    return cls is socket and cls.fileno(value) < 0


def _is_out(name):
    """_, __, _12: what cells showed, which is there under a name of its own or not at all."""
    rest = name.lstrip("_")
    return rest != name and (not rest or rest.isdigit())


def of(namespace, hidden, table):
    """`table`: the descriptors (descriptors.Table)."""
    known, found, named = _known(), [], set()
    for name, value in list(namespace.items())[:LOOKED_AT]:
        if type(name) is not str or _is_out(name) or hidden.get(name, hidden) is value:
            continue
        for cls, kind, reason in known:
            if not issubclass(type(value), cls):
                continue
            try:
                if not _is_done(cls, value):
                    found.append(loss(name, kind, reason))
                if kind == "socket":
                    named.add(cls.fileno(value))
            except Exception:  # half made by the user: it is told as it is
                found.append(loss(name, kind, reason))
            break
    found += _without_name(table, named)
    return (found + _tasks(found))[:COUNT_MAX]


def of_folder(namespace, folder):
    """Names that hold paths of a folder that is another line's now."""
    paths, below = _member("pathlib", "PurePath"), folder.rstrip("/") + "/"
    found = []
    for name, value in list(namespace.items())[:LOOKED_AT]:
        if type(name) is not str or _is_out(name):
            continue
        is_path = isinstance(paths, type) and issubclass(type(value), paths)
        text = str(value) if is_path else value if type(value) is str else ""
        if text == folder or text.startswith(below):
            found.append(loss(name, "path", f"names a file in {folder}, which is the other line's folder"))
    return found[:COUNT_MAX]


def _without_name(table, named):
    for o in table.users:
        if o.fd not in named:
            yield loss(f"descriptor {o.fd} ({o.link})", o.kind, "leads nowhere: it was the other line's")


def _tasks(found):
    """Those of the main loop that no variable names."""
    named = sum(1 for f in found if f["kind"] == "task")
    count = 0
    try:
        tasks = asyncio.all_tasks(asyncio.get_running_loop())
    except RuntimeError:
        return []
    for task in tasks:
        code = getattr(task.get_coro(), "cr_code", None)
        folder = os.path.dirname(code.co_filename) if code else ""
        if not any(part in folder.split(os.sep) for part in _OURS):
            count += 1
    if count <= named:
        return []
    return [loss(f"{count - named} more", "task", "stands still: the event loop it ran in is gone")]
