"""The event loops that a fork inherits: their epoll is the parent's too, and what is unregistered in it
falls silent there."""

import asyncio

_kept = []  # tasks: as garbage they would run the user's `finally` and be complained about


def abandon(loops):
    """Closes what the loops hold, and nothing else of them is ever done. Through their own objects, or
    these would close somebody else's descriptors as garbage."""
    for loop in loops:
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False
            _kept.append(task)
        loop._selector.close()  # no unregister: this closes the epoll's descriptor alone
        for name in ("_ssock", "_csock"):
            s = getattr(loop, name)
            if s is not None:
                s.close()
            setattr(loop, name, None)
        loop._ready.clear()
        loop._scheduled.clear()
        loop._closed = True
