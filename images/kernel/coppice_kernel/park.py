"""Parks a kernel: a fork of it that stands still as the kernel stands now, and from which others are
begun (docs/decisions/0025). Main thread, in a pause.

    kernel ---- fork, and at once another ----> the parked process, a child of the line
    parked process, when asked over its seat -- fork --> a line's process -- fork --> the revived kernel
"""

import contextlib
import contextvars
import gc
import hashlib
import json
import os
import random
import signal
import socket
import sys
import warnings

from coppice_kernel import ctl, descriptors, folder, losses, loops, process, refusals, reopen, semaphores

HANDED = 7  # five listeners, the line's link, the outbox's
OOM_PARKED = 800  # before any kernel
DATA_MAX = 40000  # of JSON: in quotes and with its fields it fits into one packet


class Revived(SystemExit):
    """Unwinds the event loop that the parked kernel stood in, of which only a SystemExit gets out."""

    def __init__(self, state, order, fds):
        super().__init__(0)
        self.state = state
        self.order = order
        self.fds = fds


def digest(shell, msg_id, random_state):
    """What a revived kernel must have in common with the one that was parked."""
    names = sorted(str.__str__(n) for n in dict.keys(shell.user_ns) if isinstance(n, str))
    told = (msg_id, shell.execution_count, names, random_state, os.getcwd())
    return hashlib.blake2b(repr(told).encode("utf-8", "replace"), digest_size=16).hexdigest()


class State:
    """What must be known of the moment before the fork."""

    def __init__(self, app, msg_id, seconds, beside):
        shell = app.kernel.shell
        self.msg_id = msg_id
        self.mask = None  # of signals, in the fork
        self.random = random.getstate()
        self.table = descriptors.Table(app.ours, beside)
        self.collects = gc.isenabled()
        self.on_child = signal.getsignal(signal.SIGCHLD)
        self.semaphores = semaphores.take()
        self.maps = reopen.maps(app.folder)
        self.cwd = os.getcwd()
        self.context = contextvars.copy_context()
        self.lost = losses.of(shell.user_ns, shell.user_ns_hidden, self.table)
        self.lost += [
            descriptors.loss(str(c.target_name), "comm", "was closed")
            for c in list(app.kernel.comm_manager.comms.values())[:20]
        ]
        self.digest = digest(shell, msg_id, self.random)
        self.folder = folder.digest(app.folder)
        self.facts = {
            "digest": self.digest,
            "execution_count": shell.execution_count,
            "seconds": round(seconds, 6),
            "folder": self.folder,
        }

    def told(self):
        return packed({**self.facts, "lost": self.lost})


def packed(facts):
    """As JSON that fits into a packet: the list of what is lost is cut, and says so."""
    while len(text := json.dumps(facts)) > DATA_MAX:
        kept = facts["lost"][: len(facts["lost"]) // 2]
        facts = {**facts, "lost": [*kept, descriptors.loss("others", "many", "not all are listed")]}
        if not kept:
            break
    return text


class Parker:
    def __init__(self, app):
        self._app = app
        self._between = 0  # pid of the process that forks the parked one, until it is reaped
        self._watches = app.is_revived

    def executes(self):
        if self._watches:
            self._app.watchdog.begin(lambda: not refusals.python_threads(self._app))

    def executed(self):
        self._watches = False
        self._app.watchdog.end()

    def settle(self):
        """Before user code runs: it finds no child that is not its own."""
        pid, self._between = self._between, 0
        if pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def park(self, msg_id, seconds):
        """Parks, or tells why not. Returns only in the kernel that goes on."""
        if not self._app.delivery.parks_max:
            return
        self.settle()
        self._app.watchdog.join()
        try:
            reason = self._app.delivery.no_parks or refusals.look(self._app, self._app.ours)
            if not reason:
                reason = self._parked(msg_id, seconds)
        except Exception as e:  # the cell was fine
            reason = f"it cannot be: {type(e).__name__}: {e}"[:500]
        if reason:
            self._app.delivery.tell("not_parked", msg_id=msg_id, reason=reason)

    def _parked(self, msg_id, seconds):
        """Why not; None: it is."""
        for stream in self._app.streams():
            stream.flush()  # what was printed is the parent's to send
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # the system says who writes
            state = State(self._app, msg_id, seconds, (ours.fileno(), theirs.fileno()))
            self._fork(state, ours, theirs)
            facts = {"msg_id": msg_id, "park": 0, "pid": 0, "data": state.told()}
            told = self._app.delivery.tell("parked", [ours.fileno()], **facts)
            return None if told else "the supervisor does not read"

    def _fork(self, state, ours, theirs):
        mask = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            pid = _quiet_fork()
            if pid == 0:
                _be_between(state, mask, ours, theirs, self._app)
            self._between = pid
        finally:
            if state.mask is None:  # not in the revived kernel, which has set its own
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _quiet_fork():
    """Python warns of a fork beside threads. Those that are here are known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _be_between(state, mask, ours, theirs, app):
    """In the process between: its end makes the parked one a child of the line."""
    try:
        if _quiet_fork():
            os._exit(0)
        ours.close()
        state.mask = mask
        _be_parked(state, theirs, app)
    except Revived:
        raise
    except BaseException:
        os._exit(1)


def _be_parked(state, seat, app):
    """Raises Revived in a revived kernel; ends with its seat."""
    os.setsid()  # an interrupt of its kernel's group is not for it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # lines that it forks are nobody's to collect
    gc.disable()
    process.set_name("parked")
    process.prefer_for_oom(OOM_PARKED)
    semaphores.make_own(state.semaphores)
    loops.abandon(app.loops())
    state.table.leave()
    seat.send(b"here")
    while True:
        packet, fds, _, _ = socket.recv_fds(seat, ctl.PACKET_MAX, HANDED + 1, socket.MSG_CMSG_CLOEXEC)
        if not packet:
            os._exit(0)
        answer = b"no descriptors"
        if len(fds) == HANDED:
            answer = _serve_one(state, seat, json.loads(packet), fds)
        for fd in fds:
            os.close(fd)
        seat.send(answer)  # last: with it we are stopped


def _serve_one(state, seat, order, fds):
    try:
        pid = _quiet_fork()
    except OSError as e:
        return f"no process: {e.strerror}".encode()
    if pid:
        return b"done"
    seat.close()
    _become_line(state, order, fds)


def _become_line(state, order, fds):
    """The new line's process. It returns as the kernel that it forks; itself it becomes a new program,
    or it would hold the memory of the parked kernel as long as the line lives."""
    link = fds[5]
    process.become_subreaper()
    process.prefer_for_oom(0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    me = os.getpid()
    try:
        pid = _quiet_fork()
    except OSError as e:
        os.write(link, ctl.encode("start_failed", line=order["line"], reason=f"no process: {e.strerror}"))
        os._exit(1)
    if pid == 0:
        _become_kernel(state, order, fds, me)
    os.write(link, ctl.encode("started", line=order["line"], pid=pid))
    process.close_all_but([0, 1, 2, link])
    os.set_inheritable(link, True)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "warden.py")
    # Not the user's environment: it is a program of ours.
    arguments = [sys.executable, "-I", "-S", program, str(order["line"]), str(link), str(pid)]
    os.execve(sys.executable, arguments, {"PATH": os.environ.get("PATH", os.defpath)})


def _become_kernel(state, order, fds, parent):
    os.setsid()
    process.die_with_parent()
    if os.getppid() != parent:
        os._exit(1)  # it had ended before that
    os.close(fds[5])
    process.prefer_for_oom(process.OOM_KERNEL)
    process.set_name("kernel")
    handler = signal.SIG_DFL if state.on_child is None else state.on_child
    signal.signal(signal.SIGCHLD, handler)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as between two cells
    signal.pthread_sigmask(signal.SIG_SETMASK, state.mask)
    if state.collects:
        gc.enable()
    raise Revived(state, order, [*fds[:5], fds[6]])
