"""Starts a line: forks it, and below it the kernel as a fork of this process or as a new one."""

import contextlib
import fcntl
import json
import os
import sys
import traceback

from coppice_kernel import line, preimport, process

# Where a new interpreter finds what it inherits.
FIRST_LISTENER = 3
OUTBOX = 8
SPEC = 9


def start(spec, listeners):
    """Forks the line's process. Returns its pid and the supervisor's ends of two links, the line's and
    the one of the kernel's outbox; or raises OSError."""
    with contextlib.ExitStack() as on_failure:
        ends = []
        for _ in range(2):
            ends += map(on_failure.enter_context, line.open_link())
        pid = os.fork()
        if pid == 0:
            _become_line(spec, listeners, ends[1], ends[3])
        on_failure.pop_all()
    for ours, theirs in (ends[:2], ends[2:]):
        theirs.close()
        ours.setblocking(False)
    return pid, ends[0], ends[2]


def _become_line(spec, listeners, link, outbox):
    handed = [*listeners, outbox.fileno()]
    try:
        line.run(spec["line"], link, handed, lambda: _become_kernel(spec, listeners, outbox.fileno()))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _become_kernel(spec, listeners, outbox):
    """In the kernel's process; returns only on failure."""
    try:
        os.setsid()
        process.die_with_parent()
        process.set_private(False)
        process.prefer_for_oom(process.OOM_KERNEL)
        if spec["fresh"] or preimport.overridden():
            _exec_kernel(spec, listeners, outbox)
        from coppice_kernel import kernel

        kernel.serve(spec, listeners, outbox)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _exec_kernel(spec, listeners, outbox):
    """A new interpreter, for variables that are read at import. The key is not in its arguments."""
    carrier = os.memfd_create("spec")
    os.write(carrier, json.dumps(spec).encode())
    os.lseek(carrier, 0, os.SEEK_SET)
    sources = [*listeners, outbox, carrier]
    # First out of the way, then to their places: a place may hold another source.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, SPEC + 1) for fd in sources]
    for place, fd in enumerate(high, FIRST_LISTENER):
        os.dup2(fd, place)
    environment = {**os.environ, **spec["env"]}
    argv = [sys.executable, "-P", "-m", "coppice_kernel.kernel"]
    os.execve(sys.executable, argv, environment)
