"""The process above one kernel: forks it, reaps what falls to it, reports its end.

It is a subreaper, so everything that the kernel ever forks stays below it. It talks `ctl` messages
with the supervisor over a socketpair.
"""

import os
import select
import signal
import socket

from coppice_kernel import ctl, kill, oom, process, signals


class Line:
    def __init__(self, number, link):
        self.number = number
        self.link = link
        self.pid = 0
        self.status = None  # of the kernel, once it has ended
        self.spared = None  # what a kill leaves alone, once the supervisor has said it
        self.killed = False  # by us
        self.ooms = oom.count()

    def tell(self, name, **fields):
        try:
            self.link.send(ctl.encode(name, line=self.number, **fields))
        except OSError:
            pass  # the supervisor is gone; the end of the link ends us as well

    def reap(self, flags=0):
        """Collects ended children; with flags 0 it waits for one. False if there is none at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, flags)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.status = status
            flags = os.WNOHANG

    def kill_all(self):
        return kill.kill_below([os.getpid()], self.reap, self.spared or ())

    def on_packet(self, packet, kills=True):
        try:
            message = ctl.decode(packet, ctl.DOWN)
        except ctl.Malformed:
            return
        if message["type"] == "kill":
            self.spared = spared(message) - {self.pid}
            if kills:
                self.killed = True
                self.kill_all()
        elif message["type"] == "signal":
            reason = "the kernel has ended"
            if self.status is None:
                self.killed |= message["signal"] == signal.SIGKILL
                reason = signals.send(self.pid, message["signal"])
            self.tell("signalled", ok=reason is None, reason=reason)

    def report_end(self):
        code = os.waitstatus_to_exitcode(self.status)
        died = -code if code < 0 else None
        end = {
            "code": code if died is None else None,
            "signal": died,
            "oom": died == signal.SIGKILL and not self.killed and oom.count() > self.ooms,
        }
        if self.spared is None:
            # What is parked below us outlives the kernel; the supervisor knows what that is.
            self.tell("exited", **end, left=0, waits=True)
            self.wait_for_kill()
        self.tell("exited", **end, left=self.kill_all())

    def wait_for_kill(self):
        while self.spared is None:
            packet = self.link.recv(ctl.PACKET_MAX)
            if not packet:
                return
            self.on_packet(packet, kills=False)

    def serve(self, wake):
        """Returns when the kernel and everything below it is gone."""
        poll = select.poll()
        poll.register(self.link, select.POLLIN)
        poll.register(wake, select.POLLIN)
        while self.status is None:
            ready = dict(poll.poll())
            if self.link.fileno() in ready:
                packet = self.link.recv(ctl.PACKET_MAX)
                if not packet:
                    self.spared = set()  # with the supervisor everything ends
                    self.kill_all()
                    return
                self.on_packet(packet)
            if wake.fileno() in ready:
                process.read_waiting(wake)
            self.reap(os.WNOHANG)
        self.report_end()


def spared(message):
    """The processes of a kill's `spare` (PID:START each) that are still the same ones."""
    found = set()
    for text in message.get("spare") or ():
        pid, _, start = str(text).partition(":")
        if pid.isdigit() and start.isdigit() and process.started(int(pid)) == int(start):
            found.add(int(pid))
    return found


def watch(number, link, pid):
    """Above a kernel that runs already. Never returns."""
    process.become_subreaper()
    process.set_private(True)
    process.set_name(f"line-{number}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wake, _ = process.wake_on_signals(signal.SIGCHLD)
    line = Line(number, link)
    line.pid = pid
    line.reap(os.WNOHANG)  # what ended before the signal was listened to
    line.serve(wake)
    os._exit(0)


def run(number, link, handed, become_kernel):
    """Never returns. `become_kernel()` is what the forked kernel does; `handed` are its descriptors."""
    process.reset_signals()
    process.close_all_but([0, 1, 2, link.fileno(), *handed])
    process.become_subreaper()
    process.set_name(f"line-{number}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wake, writer = process.wake_on_signals(signal.SIGCHLD)
    line = Line(number, link)
    try:
        line.pid = os.fork()
    except OSError as e:
        line.tell("start_failed", reason=f"no kernel process: {e.strerror}")
        os._exit(1)
    if line.pid == 0:
        process.reset_signals()
        process.close_all_but([0, 1, 2, *handed])
        become_kernel()
        os._exit(127)
    for fd in handed:
        os.close(fd)
    line.tell("started", pid=line.pid)
    line.serve(wake)
    writer.close()
    os._exit(0)


def open_link():
    """The two ends of a socketpair: the supervisor's; the line's, or the kernel's for its outbox."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
