"""The event loops that a fork inherits: their epoll is the parent's too, and what is unregistered in it
falls silent there."""

import asyncio
import functools
import os
import signal

from tornado.ioloop import IOLoop

_OURS = ("ipykernel", "tornado", "coppice_kernel", "zmq", "jupyter_client")
_kept = []  # tasks of the user's: as garbage they would run a `finally` of his


def abandon(loops):
    """Closes what the loops hold, and nothing else of them is ever done. Through their own objects, or
    these would close somebody else's descriptors as garbage."""
    for loop in loops:
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False
            if _is_ours(task):
                IOLoop._pending_tasks.discard(task)  # with it the whole kernel of before would stay
            else:
                _kept.append(task)
        loop._selector.close()  # no unregister: this closes the epoll's descriptor alone
        for name in ("_ssock", "_csock"):
            s = getattr(loop, name)
            if s is not None:
                s.close()
            setattr(loop, name, None)
        # The threads that ran the others left their frames, which nothing clears, and so their loops.
        outer = IOLoop._ioloop_for_asyncio.get(loop)
        if outer:
            outer.handlers.clear()
        loop._ready.clear()
        loop._scheduled.clear()
        loop._closed = True
    # Python writes the signals that it gets there, if the loop was to listen: by then it is another's.
    signal.set_wakeup_fd(-1)


def _is_ours(task):
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and any(p in os.path.dirname(code.co_filename).split(os.sep) for p in _OURS)


def users(loop):
    """How many tasks of it are the user's."""
    return sum(1 for task in asyncio.all_tasks(loop) if not _is_ours(task))


def _name(handle):
    """Of the function that is called; None: it is no user's."""
    call = handle._callback
    while isinstance(call, functools.partial):
        call = call.func
    call = getattr(call, "__func__", call)
    if (getattr(call, "__module__", None) or "").split(".")[0] in ("asyncio", "_asyncio", *_OURS):
        return None
    name = getattr(call, "__qualname__", None)
    return name if type(name) is str else type(call).__name__


def waits(loop):
    """(name, kind, reason) of what the user asked this loop to call."""
    for handle in list(loop._scheduled):
        if not handle.cancelled() and (name := _name(handle)):
            yield name, "timer", "is not called any more: the event loop is gone"
    for key in list(loop._selector.get_map().values()):
        for handle in key.data if isinstance(key.data, tuple) else ():
            if handle is not None and not handle.cancelled() and (name := _name(handle)):
                yield name, "watch", "is not called any more: the event loop is gone"
    for number in loop._signal_handlers:
        yield signal.Signals(number).name, "signal handler", "ran in the event loop, which is gone"
