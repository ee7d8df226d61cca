"""Starts a line: forks it, and below it the kernel as a fork of this process or as a new one."""

import fcntl
import json
import os
import sys
import traceback

from coppice_kernel import line, preimport, process

# Where a new interpreter finds what it inherits.
FIRST_LISTENER = 3
SPEC = 8


def start(spec, listeners):
    """Forks the line's process. Returns (its pid, the supervisor's end of the link) or raises OSError."""
    ours, theirs = line.open_link()
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        try:
            line.run(spec["line"], theirs, listeners, lambda: _become_kernel(spec, listeners))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    theirs.close()
    ours.setblocking(False)
    return pid, ours


def _become_kernel(spec, listeners):
    """In the kernel's process; returns only on failure."""
    try:
        os.setsid()
        process.die_with_parent()
        process.set_private(False)
        _prefer_for_oom()
        if spec["fresh"] or preimport.overridden():
            _exec_kernel(spec, listeners)
        from coppice_kernel import kernel

        kernel.serve(spec, listeners)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _prefer_for_oom():
    """Out of memory takes a kernel, not the supervisor."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
            f.write("500")
    except OSError:
        pass  # a sandbox without /proc: the largest process is taken, most often a kernel


def _exec_kernel(spec, listeners):
    """A new interpreter, for variables that are read at import. The key is not in its arguments."""
    carrier = os.memfd_create("spec")
    os.write(carrier, json.dumps(spec).encode())
    os.lseek(carrier, 0, os.SEEK_SET)
    sources = [*listeners, carrier]
    # First out of the way, then to their places: a place may hold another source.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, SPEC + 1) for fd in sources]
    for place, fd in enumerate(high, FIRST_LISTENER):
        os.dup2(fd, place)
    environment = {**os.environ, **spec["env"]}
    argv = [sys.executable, "-P", "-m", "coppice_kernel.kernel"]
    os.execve(sys.executable, argv, environment)
