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
        return kill.kill_below([os.getpid()], self.reap)

    def on_packet(self, packet):
        try:
            message = ctl.decode(packet, ctl.DOWN)
        except ctl.Malformed:
            return
        if message["type"] == "kill":
            self.killed = True
            self.kill_all()
        elif message["type"] == "signal":
            reason = "the kernel has ended"
            if self.status is None:
                self.killed |= message["signal"] == signal.SIGKILL
                reason = signals.send(self.pid, message["signal"])
            self.tell("signalled", ok=reason is None, reason=reason)

    def report_end(self):
        left = self.kill_all()
        code = os.waitstatus_to_exitcode(self.status)
        died = -code if code < 0 else None
        self.tell(
            "exited",
            code=code if died is None else None,
            signal=died,
            oom=died == signal.SIGKILL and not self.killed and oom.count() > self.ooms,
            left=left,
        )

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
                    self.kill_all()
                    return
                self.on_packet(packet)
            if wake.fileno() in ready:
                process.read_waiting(wake)
            self.reap(os.WNOHANG)
        self.report_end()


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
