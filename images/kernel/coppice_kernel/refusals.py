"""Why a kernel cannot be parked as it is now (docs/decisions/0025; hazards A1 to A12). Main thread."""

import ctypes
import os
import sys
import threading

from coppice_kernel import descriptors, memory, process, semaphores

ZMQ_THREADS = 4  # of our two contexts: one that reaps and one for input and output each
ZMQ_NAME = "ZMQbg/"
FULL = 0.9  # of the container's memory: a fork would be the first to be ended
# Whose threads do not come back in a fork, and whose work then waits for them for ever.
POOLS = {
    "polars": "polars",
    "tokenizers": "tokenizers",
    "libtorch": "torch",
    "libtensorflow": "TensorFlow",
    "jaxlib": "JAX",
    "libmkl": "MKL",
    "cygrpc": "gRPC",
    "libarrow": "Arrow",
    "libgomp": "OpenMP (libgomp)",
    "libomp": "OpenMP (libomp)",
    "libiomp": "OpenMP (libiomp)",
    "libtbb": "TBB",
}
OPENBLAS = (
    "openblas_get_num_threads",
    "openblas_get_num_threads64_",
    "scipy_openblas_get_num_threads",
    "scipy_openblas_get_num_threads64_",
)
DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri")


def look(app, ours):
    """A sentence, or None. The cheap ones first."""
    for ask in (_interpreter, _kernel, python_threads, _children, _memory):
        reason = ask(app)
        if reason:
            return reason
    maps = _Maps()
    return _mappings(maps) or _os_threads(app, maps) or _descriptors(ours)


def _interpreter(_app):
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not known to survive a fork"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "a free-threaded Python is not known to survive a fork"
    return None


def _kernel(app):
    kernel = app.kernel
    if kernel.eventloop is not None:
        return "the event loop of a graphical interface runs in it"
    if getattr(getattr(kernel, "debugger", None), "is_started", False):
        return "a debugger is attached"
    return None


def own_threads(app):
    threads = {threading.main_thread(), app.iopub_thread.thread, app.heartbeat, app.control_thread}
    threads |= {app.delivery.thread, app.watchdog.thread, getattr(app, "shell_channel_thread", None)}
    threads |= {getattr(s, "watch_fd_thread", None) for s in app.streams()}
    return threads - {None}


def _is_of_zmq(thread):
    """It sends large buffers without a copy, and knows of forks."""
    return type(thread).__module__ == "zmq.utils.garbage"


def _is_harmless(thread):
    """Or the one that refreshes progress bars; the next bar starts another (revive.py)."""
    return _is_of_zmq(thread) or type(thread).__module__ == "tqdm._monitor"


def python_threads(app):
    own = own_threads(app)
    for thread in threading.enumerate():
        if thread in own or _is_harmless(thread):
            continue
        if str(thread.name).startswith("subshell"):
            return "a subshell is there"
        return f"thread {str(thread.name)[:60]!r} runs in it"
    return None


def _task_name(tid):
    try:
        with open(f"/proc/self/task/{tid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def _os_threads(app, maps):
    """Those that Python does not know."""
    # Our own by the system's word: after a fork Python may still tell the parent's.
    known = {t.native_id for t in own_threads(app)} | {threading.get_native_id()}
    zmq_allowed = ZMQ_THREADS
    for thread in threading.enumerate():
        if _is_harmless(thread):
            known.add(thread.native_id)
            zmq_allowed += 2 * _is_of_zmq(thread)
    names = {int(t): _task_name(t) for t in os.listdir("/proc/self/task") if int(t) not in known}
    of_zmq = [t for t, name in names.items() if name.startswith(ZMQ_NAME)]
    if len(of_zmq) > zmq_allowed:
        return "a ZeroMQ context of the user's is open"
    others = [name for t, name in names.items() if t not in of_zmq]
    if not others:
        return None
    for part, library in POOLS.items():
        if any(part in m.rsplit("/", 1)[-1] for m in maps.files):
            return f"threads that Python does not know run in it, such as {library} has: they do not come back"
    if len(others) <= _openblas_threads(maps):
        return None
    return f"a thread ({others[0]}) runs in it that `threading` does not know"


def _openblas_threads(maps):
    """They stop before a fork and start again after it, by OpenBLAS's own hooks."""
    count = 0
    for path in maps.files:
        if "openblas" in path:
            count += max(0, _asked_openblas(path) - 1)
    return count


def _asked_openblas(path):
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return 0
    for name in OPENBLAS:
        ask = getattr(library, name, None)
        if ask:
            return ask()
    return 0


def _children(_app):
    pids = []
    for tid in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{tid}/children", encoding="ascii") as f:
                pids += f.read().split()
        except OSError:
            pids = [p for p, found in process.processes().items() if found[0] == os.getpid()]
            break
    if not pids:
        return None
    return f"process {pids[0]} is a child of it" + (f", and {len(pids) - 1} more" if pids[1:] else "")


def _memory(_app):
    if memory.fullness() > FULL:
        return "the memory of the container is nearly used up"
    return None


class _Maps:
    def __init__(self):
        self.files, self.shared = set(), []
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as f:
            for line in f:
                fields = line.rstrip("\n").split(None, 5)
                name = fields[5] if len(fields) > 5 else ""
                if fields[1][3] == "s" and fields[1][1] == "w":
                    self.shared.append(name)
                if name[:1] == "/":
                    self.files.add(name)


def _mappings(maps):
    for name in maps.shared:
        if semaphores.is_one(name):
            continue
        return f"memory is mapped writable and shared ({name[:80] or 'without a name'})"
    return None


def _descriptors(ours):
    for o in descriptors.scan():
        if o.link.startswith(DEVICES):
            return f"{o.link} is open, whose state a fork cannot have"
        if o.kind == "socket" and not ours.has(o) and descriptors.listens(o.fd):
            return f"descriptor {o.fd} is a socket that listens"
    return None
