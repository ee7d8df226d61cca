"""What is to be done at the exit: a revived kernel leaves it to the one that was parked, or it would delete
that one's folders (branching.md A10). What is the user's of it is told."""

import atexit
import functools
import logging
import sys
import sysconfig
import tempfile
import weakref

from coppice_kernel.descriptors import loss

_REASON = "is not called at the exit of a kernel that was gone back to"
_LIBRARIES = ("dist-packages", "site-packages")
_standard = sysconfig.get_path("stdlib")
_register, _unregister = atexit.register, atexit.unregister
_users = []  # functions


def _is_users(filename):
    return not filename.startswith(("<frozen", _standard)) and not any(p in filename for p in _LIBRARIES)


@functools.wraps(_register)
def register(func, /, *args, **kwargs):
    _register(func, *args, **kwargs)
    if _is_users(sys._getframe(1).f_code.co_filename):
        _users.append(func)
    return func


@functools.wraps(_unregister)
def unregister(func):
    _unregister(func)
    _users[:] = [f for f in _users if f is not func and f != func]


def watch():
    """From now on: atexit itself does not tell what it has."""
    atexit.register, atexit.unregister = register, unregister


def _name(func):
    while isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__qualname__", None)
    return name if type(name) is str else type(func).__name__


def _cleans_up(func):
    """The folder of a TemporaryDirectory."""
    return getattr(func, "__func__", func) is tempfile.TemporaryDirectory._cleanup.__func__


def lost(folders):
    """`folders`: paths of temporary directories that are told already."""
    found = [loss(_name(func), "exit function", _REASON) for func in _users]
    for finalizer in list(weakref.finalize._registry):
        _, func, args, _ = finalizer.peek() or (None, None, (), {})
        code = getattr(getattr(func, "__func__", func), "__code__", None)
        if func and _cleans_up(func) and args and args[0] not in folders:
            found.append(loss(str(args[0]), "folder", "is shared with the line left behind"))
        elif code and finalizer.atexit and _is_users(code.co_filename):
            found.append(loss(_name(func), "exit function", _REASON))
    return found


def forget():
    """In a revived kernel."""
    for finalizer in list(weakref.finalize._registry):
        finalizer.atexit = False
    _users.clear()
    atexit._clear()
    _register(logging.shutdown)
    _register(weakref.finalize._exitfunc)
    util = sys.modules.get("multiprocessing.util")
    if util:
        _register(util._exit_function)  # it knows of forks
