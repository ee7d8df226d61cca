"""A kernel around the shell that was parked: new context, loop, application, key, streams and outbox.

In the process of the new kernel, out of the old event loop. Nothing of the old kernel is closed or
ended in an orderly way: what it would reach is its parent's.
"""

import asyncio
import copy
import gc
import json
import os
import random
import sys
import threading

from coppice_kernel import ctl, deliver, exits, folder, losses, park, reopen
from coppice_kernel.streams import CoppiceStream

_run, _init = threading.Thread.run, threading.Thread.__init__  # before ipykernel wraps them


def rebuild(old, state, order, fds):
    """Returns the application, ready to be started; what it found was told."""
    outbox = fds[-1]
    try:
        return _rebuild(old, state, order, fds)
    except BaseException as e:
        told = json.dumps({"error": f"{type(e).__name__}: {e}"[:1000]})
        os.write(outbox, ctl.encode("revived", line=0, data=told))
        raise


def _rebuild(old, state, order, fds):
    place = reopen.Place(old.folder, order["cwd"] or old.folder)
    lost = state.lost + _take_files(state, order, place)
    replaced = _let_go_of_streams(old)
    exits.forget()
    _forget_hooks(old)
    _forget_threads()
    asyncio.set_event_loop(asyncio.new_event_loop())
    old.delivery.box.clear()  # the gateway has it from the kernel that was parked
    app = _make(old, order, fds, place.now)
    app.users = state.table.numbers
    _keep_one_of_each(app.kernel.shell, old)
    _close_comms(app.kernel)
    _let_go_of_sockets(old)
    _let_go_of_threads(old)
    for name, stream in replaced.items():
        setattr(sys, name, stream)
    _make_random_its_own()
    random.setstate(state.random)  # last: what was built above drew from it
    found = {
        "digest": park.digest(app.kernel.shell, state.msg_id, random.getstate()),
        "folder": folder.digest(app.folder),
        "lost": lost,
    }
    if place.now != place.was:  # a branch beside
        found["paths"] = losses.of_folder(app.kernel.shell.user_ns, place.was)
    _settle(order, place.of(state.cwd))
    app.delivery.tell("revived", data=park.packed(found))
    return app


def _take_files(state, order, place):
    """What was open in the folder, of the state that was laid down there; else as it was."""
    beside = place.now != place.was
    if not order["laid"] and not beside:
        return state.table.reopen()
    if not beside:
        _enter(state.cwd)  # the folder of that name may be another one now
    lost = state.table.reopen(lambda f: reopen.by_name(f, place),
                              lambda f: beside and place.of(f.path) is not None)
    return lost + reopen.map_again(state.maps, place)


def _let_go_of_streams(old):
    """Their objects are used again: loggers and modules of the user hold them. Returns what the user had
    put in their place, by name."""
    streams = old.streams()
    replaced = {}
    for name in ("stdout", "stderr"):
        now = getattr(sys, name)
        if not any(now is stream for stream in streams):
            replaced[name] = now
        setattr(sys, name, getattr(sys, f"__{name}__"))
    logged_to = set()
    for handler in old.log.handlers:
        try:
            logged_to.add(handler.stream.fileno())
        except (AttributeError, OSError, ValueError):
            continue
    for stream in streams:
        copied = getattr(stream, "_original_stdstream_copy", -1)
        if copied > 2 and copied not in logged_to:
            os.close(copied)
    CoppiceStream.inherited = {s.name: s for s in streams}
    return replaced


def _let_go_of_sockets(old):
    """They are the parent's and dead here. As garbage they are not to complain, nor to be closed."""
    for context in (old.context, old.heartbeat.context):
        for s in list(getattr(context, "_sockets", ())):
            s._shadow = True
        context._shadow = True


def _let_go_of_threads(old):
    """Their frames are still there, nothing clears them, and through these the kernel of before."""
    own = vars(threading.Thread(name=""))  # with a name: the user's next one is numbered as ever
    for thread in (old.control_thread, old.heartbeat, getattr(old, "shell_channel_thread", None)):
        for name in [n for n in vars(thread) if n not in own] if thread else ():
            delattr(thread, name)
    vars(old.iopub_thread).pop("session", None)  # the newest ipykernel's; its parent is the application


def _forget_hooks(old):
    if threading.Thread.run.__module__.startswith("ipykernel"):
        threading.Thread.run = _run
    if threading.Thread.__init__.__module__.startswith("ipykernel"):
        threading.Thread.__init__ = _init
    hook = getattr(old.kernel, "_clean_thread_parent_frames", None)
    if hook in gc.callbacks:
        gc.callbacks.remove(hook)


def _forget_threads():
    """Of those that a fork may lack (refusals.py) tqdm's believes that it runs."""
    bars = sys.modules.get("tqdm.std")
    if bars:
        bars.tqdm.monitor = None


def _make(old, order, fds, place):
    config = copy.deepcopy(old.config)
    config.Session.key = order["key"].encode()
    for kind in (type(old), type(old.kernel)):
        kind.clear_instance()
    # Its log is not configured again: that would close every handler of the user's.
    app = type(old).instance(config=config, log=old.log, profile_dir=old.profile_dir)
    app.take(order["endpoints"], fds[:-1], deliver.start(fds[-1]), place)
    app.begin_again()
    shell = app.kernel.shell
    shell.kernel = shell.parent = app.kernel
    return app


def _keep_one_of_each(shell, old):
    kept = []
    for configurable in shell.configurables:
        if configurable is not old and not any(configurable is k for k in kept):
            kept.append(configurable)
    shell.configurables[:] = kept


def _close_comms(kernel):
    """Their other ends are pages that know the line left behind."""
    manager = kernel.comm_manager
    comms = list(manager.comms.values())
    manager.comms.clear()
    for comm in comms:
        try:
            comm.kernel = kernel
            comm.publish_msg("comm_close")
        except Exception:  # one that the user made
            continue


def _make_random_its_own():
    """Siblings draw different secrets, whatever OpenSSL does at a fork."""
    ssl = sys.modules.get("ssl")
    if ssl:
        ssl.RAND_add(os.urandom(48), 48.0)


def _settle(order, folder):
    os.environ.update(order["env"])
    if order["kernel"]:
        os.environ["KERNEL_ID"] = order["kernel"]
    if order["cwd"]:
        _enter(folder, order["cwd"])


def _enter(*folders):
    for folder in folders:
        try:
            os.chdir(folder)
            return
        except (OSError, TypeError):
            continue  # the next one, or where it stood
