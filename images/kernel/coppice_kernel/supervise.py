"""The supervisor: keeps a connection to the gateway and does what it asks, one line per kernel.

It lives as long as the container. It must outlive garbage: from the gateway's side an ill-formed
packet is answered with `error`, from a line's side it is dropped.
"""

import os
import select
import signal
import socket
import sys
import time
from collections import deque

from coppice_kernel import (
    branch_folder, ctl, filing, kill, line, oom, parks, preimport, probe, process, start,
)
from coppice_kernel.outlet import Outlet

SOCKET = "/run/coppice/ctl"
RETRY_S = 0.05
WAITING_MAX = 10000  # events kept while the gateway is away
FULL = 4  # packets waiting for the gateway at which outboxes are not read any more
LINES_TOLD = 200  # in hello, which is one packet
DRAIN_MAX = 1000  # packets read of what an ended kernel left
LOOK_S = 1.0  # between two looks at the parks
FILES_S = 0.5  # until what waits for the gateway is looked at again


class Child:
    """A line as the supervisor sees it."""

    def __init__(self, number, kernel, pid, link, outlet, folder):
        self.number = number
        self.kernel = kernel
        self.folder = folder  # that it works in
        self.kernel_pid = 0  # until it is started
        self.pid = pid
        self.link = link
        self.outlet = outlet
        self.end = None  # its last word, told once its process is gone too
        self.killed = False
        self.ooms = oom.count()
        # Begun from this park: `pid` is no child of ours, and is known once it has written.
        self.park = None
        self.start = None  # time of that process


class Supervisor:
    def __init__(self, path=SOCKET):
        self.path = path
        self.gateway = None
        self.welcome = False  # what waits is not told to one that may refuse us
        self.reports = False  # it takes reports: an older one counts them as garbage
        # (packet, True if only the gateway that is connected now is meant)
        self.waiting = deque(maxlen=WAITING_MAX)
        self.lines = {}
        self.poll = select.poll()
        self.wake, self.wake_writer = process.wake_on_signals(signal.SIGCHLD, signal.SIGTERM)
        self.poll.register(self.wake, select.POLLIN)
        self.ended = False
        self.parks = parks.Parks(self.poll, self.tell_now, self.not_revived)
        self.probe = probe.Probe()
        self.look_at = 0.0
        self.filing = filing.Filing(self.tell_of_files, lambda: len(self.waiting) < FULL, self.lines)

    # ---- the gateway ----

    def connect(self):
        """One attempt. False: try again later."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)  # a listener whose backlog is full would hold us
        try:
            s.connect(self.path)
            s.send(self.hello())
        except OSError:
            s.close()
            return False
        self.gateway, self.welcome, self.reports = s, False, False
        self.poll.register(s, select.POLLIN)
        return True

    def hello(self):
        return ctl.encode(
            "hello",
            version=ctl.VERSION,
            pid=os.getpid(),
            image=os.environ.get("COPPICE_IMAGE"),
            python=sys.version.split()[0],
            ipykernel=preimport.ipykernel_version(),
            lines=[
                f"{c.number}:{c.kernel_pid}:{c.kernel[:64]}"
                for c in list(self.lines.values())[:LINES_TOLD]
            ],
            hands_over=True,
            parks=True,
            files=True,
            branches=True,
        )

    def disconnect(self):
        self.poll.unregister(self.gateway)
        self.gateway.close()
        self.gateway = None
        for child in self.lines.values():
            if child.outlet:
                child.outlet.forget()
        self.waiting = deque((w for w in self.waiting if not w[1]), maxlen=WAITING_MAX)
        self.filing.on_hang_up()

    def tell(self, name, **fields):
        self.pass_on(ctl.encode(name, **fields))

    def tell_now(self, name, **fields):
        """What is of parks: only to a gateway that wants them; one that comes is told anew."""
        if self.welcome and self.parks.max:
            self.pass_on(ctl.encode(name, **fields), now_only=True)

    def tell_of_files(self, name, /, **fields):
        if self.filing.is_wanted:
            self.pass_on(ctl.encode(name, **fields), now_only=True)

    def pass_on(self, packet, now_only=False):
        if now_only and not self.gateway:
            return
        self.waiting.append((packet, now_only))
        self.flush()

    def flush(self):
        while self.gateway and self.welcome and self.waiting:
            try:
                self.gateway.send(self.waiting[0][0])
            except (BlockingIOError, InterruptedError):
                self.poll.modify(self.gateway, select.POLLIN | select.POLLOUT)
                return
            except OSError:
                self.disconnect()
                return
            self.waiting.popleft()
        if self.gateway:
            self.poll.modify(self.gateway, select.POLLIN)

    def on_gateway(self):
        """Reads one packet; level-triggered, so the next one wakes us again."""
        try:
            packet, fds, flags, _ = socket.recv_fds(
                self.gateway, ctl.PACKET_MAX + 1, 16, socket.MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            packet, fds, flags = b"", [], 0
        try:
            if not packet or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                self.disconnect()
            else:
                self.obey(packet, fds)
        finally:
            # By now those that need them have their own copies.
            for fd in fds:
                os.close(fd)

    def obey(self, packet, fds):
        try:
            message = ctl.decode(packet, ctl.DOWN)
            if len(fds) != ctl.TABLE[message["type"]][2]:
                raise ctl.Malformed(message["type"], f"came with {len(fds)} descriptors")
            verb = {
                "welcome": self.on_welcome,
                "start": lambda m: self.on_start(m, fds),
                "signal": lambda m: self.forward(m, packet),
                "kill": self.on_kill,
                "release": lambda m: self.parks.release(m["park"]),
                "revive": lambda m: self.on_revive(m, fds),
                "ack": lambda m: self.on_ack(m, packet),
                "replay": self.on_replay,
                "answer": lambda m: self.on_answer(m, packet),
                "hand_over": lambda m: self.on_hand_over(m, packet),
                "drop_folder": self.on_drop_folder,
                **self.filing.verbs,
            }.get(message["type"])
            if verb:
                verb(message)
        except ctl.Malformed as e:
            self.tell("error", about=e.about, reason=e.reason)

    def on_welcome(self, message):
        if message["version"] != ctl.VERSION:
            print(f"supervise: gateway speaks version {message['version']}", file=sys.stderr)
        self.welcome = True
        self.reports = message.get("reports") is True
        self.flush()
        for child in self.lines.values():
            self.pass_report(child)
        self.parks.max = max(0, message.get("parks_max") or 0)
        self.parks.thin()
        self.parks.tell_all()
        if self.parks.max:
            self.probe.begin()
        self.filing.on_welcome(message.get("files") is True, message.get("lays_kept") or ())
        self.note_wishes()

    def note_wishes(self, *children):
        """Tells kernels whether they are to be parked, and whether files are told of."""
        known = self.probe.ended
        packet = ctl.encode("welcome", version=ctl.VERSION, parks_max=self.parks.max if known else 0,
                            no_parks=self.probe.reason, files=self.filing.is_wanted)
        for child in children or self.lines.values():
            if child.outlet:
                child.outlet.tell(packet)

    # ---- lines ----

    def on_start(self, message, fds):
        number = message["line"]
        if number in self.lines:
            self.tell("error", about="start", reason=f"line {number} exists")
            return
        if len(message["endpoints"]) != len(fds):
            self.tell("start_failed", line=number, reason="five endpoints are needed")
            return
        try:
            branch_folder.make(message["cwd"])
            pid, link, outbox = start.start(message, fds)
        except OSError as e:
            self.tell("start_failed", line=number, reason=f"cannot fork: {e.strerror}")
            return
        child = Child(number, message["kernel"], pid, link, Outlet(number, outbox), message["cwd"])
        self.add(child, outbox)

    def add(self, child, outbox):
        self.lines[child.number] = child
        self.poll.register(child.link, select.POLLIN)
        self.poll.register(outbox, 0)
        if self.parks.max or self.filing.is_wanted:
            self.note_wishes(child)

    def on_revive(self, message, fds):
        number, park = message["line"], self.parks.living.get(message["park"])
        if number in self.lines:
            self.tell("error", about="revive", reason=f"line {number} exists")
            return
        reason = None if park else f"there is no park {message['park']}"
        if len(message["endpoints"]) != len(fds):
            reason = "five endpoints are needed"
        if reason:
            self.tell("start_failed", line=number, reason=reason)
            return
        folder = message["cwd"] or park.folder
        ends = [*line.open_link(), *line.open_link()]
        try:
            branch_folder.make(message["cwd"])
            ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # who is the line's process
            order = {**message, "laid": self.filing.is_laid(folder)}
            self.parks.revive(park, order, fds, (ends[1].fileno(), ends[3].fileno()))
        except OSError as e:
            for end in ends:
                end.close()
            self.tell("start_failed", line=number, reason=f"the park cannot be asked: {e.strerror}")
            return
        for ours, theirs in (ends[:2], ends[2:]):
            theirs.close()
            ours.setblocking(False)
        outlet = Outlet(number, ends[2], revived=True)
        child = Child(number, message["kernel"], 0, ends[0], outlet, folder)
        child.park = park
        self.add(child, ends[2])

    def not_revived(self, number, reason):
        child = self.lines.get(number)
        if child and child.park and not child.kernel_pid:
            self.forget(child)
            self.tell("start_failed", line=number, reason=reason)

    def spare(self):
        """pid -> start time of all that a kill of a line leaves alone where it is not its own."""
        found = self.parks.spared()
        for child in self.lines.values():
            if child.park and child.pid and process.started(child.pid) == child.start:
                found[child.pid] = child.start
        return found

    def on_kill(self, message):
        child = self.lines.get(message["line"])
        if child and child.park:
            self.kill_revived(child)
        elif child:
            self.send_kill(child, message)

    def send_kill(self, child, message):
        spare = [f"{pid}:{start}" for pid, start in self.spare().items() if pid != child.pid]
        message = {"line": message["line"], "spare": spare}
        self.forward({"type": "kill", **message}, ctl.encode("kill", **message))

    def kill_revived(self, child):
        """From here, since its process was a guest's before it was ours."""
        self.end_revived(child)
        self.forget(child)
        self.tell("exited", line=child.number, signal=signal.SIGKILL, oom=False, left=0)

    def end_revived(self, child):
        """Kills what is left of it. Returns how many that was."""
        if not child.pid or process.started(child.pid) != child.start:
            return 0
        kill.send(child.pid, signal.SIGSTOP)
        count = kill.kill_below([child.pid], lambda: True, set(self.spare()) - {child.pid})
        kill.send(child.pid, signal.SIGKILL)
        return count

    def forget(self, child):
        self.unlink(child)
        self.close_outlet(child)
        self.parks.withdraw(child.number)
        self.filing.forget_line(child.number)
        self.lines.pop(child.number, None)

    def forward(self, message, packet):
        child = self.lines.get(message["line"])
        if child is None or child.link is None:
            if message["type"] == "signal":
                self.tell("signalled", line=message["line"], ok=False, reason="no such line")
            return
        child.killed |= message["type"] == "kill"
        try:
            child.link.send(packet)
        except OSError:
            # The line's process is gone or does not read; from here we can end it all.
            if child.killed and child.park:
                self.end_revived(child)
            elif child.killed:
                os.kill(child.pid, signal.SIGKILL)

    def on_line(self, child):
        packet, writer = parks.receive(child.link, ctl.PACKET_MAX)
        if packet is None:
            return
        if not packet:
            self.unlink(child)
            if child.park:
                self.revived_ended(child)
            return
        if child.park and not child.pid and process.is_below(writer, child.park.pid):
            child.pid, child.start = writer, process.started(writer)
        try:
            message = ctl.decode(packet, ctl.UP)
            name = message["type"]
            if name not in ("started", "start_failed", "signalled", "exited"):
                return
            fields = {field: message.get(field) for field, _, _ in ctl.fields_of(name)}
            fields["line"] = child.number
            told = ctl.encode(name, **fields)
        except ctl.Malformed:
            return
        if name == "exited" and message.get("waits"):
            self.send_kill(child, {"line": child.number})
            return
        if name in ("exited", "start_failed"):
            child.end = child.end or told
            if child.park:
                self.revived_ended(child)
            return
        if name == "started":
            child.kernel_pid = child.kernel_pid or fields["pid"]
        self.pass_on(told)

    def revived_ended(self, child):
        """Its process is gone, or says that its kernel is."""
        if child.number not in self.lines:
            return
        self.drain_outlet(child)
        left = self.end_revived(child)
        self.forget(child)
        if child.end:
            self.pass_on(child.end)
        elif child.kernel_pid:
            self.tell("exited", line=child.number, signal=signal.SIGKILL, oom=False, left=left)
        else:
            self.tell("start_failed", line=child.number, reason="the park did not begin it")

    # ---- outboxes ----

    def outlet_of(self, number):
        child = self.lines.get(number)
        return child.outlet if child else None

    def on_ack(self, message, packet):
        outlet = self.outlet_of(message["line"])
        if outlet:
            outlet.ack(packet)

    def on_answer(self, message, packet):
        outlet = self.outlet_of(message["line"])
        if outlet:
            outlet.answer(message, packet)

    def on_replay(self, message):
        outlet = self.outlet_of(message["line"])
        if outlet:
            outlet.replay(message["after"])
        else:
            self.nobody_to_ask(message["line"])

    def on_drop_folder(self, message):
        branch_folder.drop(message["folder"])
        self.filing.forget_folder(message["folder"])

    def on_hand_over(self, message, packet):
        """Unanswered if there is nobody: the line's end is told by itself."""
        child = self.lines.get(message["line"])
        if child and child.outlet:
            child.kernel = message["kernel"]
            child.outlet.hand_over(packet)

    def nobody_to_ask(self, number):
        self.pass_on(ctl.encode("kept_end", line=number, dropped=-1), now_only=True)

    def watch_outlets(self):
        # Without a gateway they are read and what comes is dropped.
        full = self.gateway is not None and (len(self.waiting) >= FULL or self.filing.is_full)
        for child in self.lines.values():
            outlet = child.outlet
            if outlet and outlet.polled != outlet.events(full):
                outlet.polled = outlet.events(full)
                self.poll.modify(outlet.link, outlet.polled)

    def on_outlet(self, child):
        child.outlet.push()
        try:
            packet = child.outlet.read()
        except EOFError:
            self.close_outlet(child)
            return
        if child.outlet.offer:
            (message, seat), child.outlet.offer = child.outlet.offer, None
            self.parks.offer(child, message, seat)
        if child.outlet.files:
            (message, carrier), child.outlet.files = child.outlet.files, None
            self.filing.on_handed(child, message, carrier)
        if child.outlet.of_parks:
            packet, child.outlet.of_parks = child.outlet.of_parks, None
            if self.welcome and self.parks.max:
                self.pass_on(packet, now_only=True)
            return
        asks = child.outlet.asks is not None
        if packet and not (asks and not self.takes_reports()):
            self.pass_on(packet, now_only=True)
        elif packet:
            child.outlet.refuse("the gateway is gone, or older than this image")
        self.pass_report(child)

    def takes_reports(self):
        """And questions."""
        return self.gateway is not None and self.welcome and self.reports

    def pass_report(self, child):
        """One that waits for a gateway is the last cell's: no other began meanwhile."""
        outlet = child.outlet
        if outlet and outlet.report and self.takes_reports():
            report, outlet.report = outlet.report, None
            self.pass_on(report)

    def close_outlet(self, child):
        outlet, child.outlet = child.outlet, None
        if outlet:
            self.poll.unregister(outlet.link)
            outlet.link.close()
            if outlet.asked:
                self.nobody_to_ask(child.number)

    # ---- ends ----

    def unlink(self, child):
        if child.link:
            self.poll.unregister(child.link)
            child.link.close()
            child.link = None

    def drain(self, child):
        """What a line said before it ended counts more than that it ended."""
        while child.link:
            before = child.link
            try:
                before.recv(1, socket.MSG_PEEK)
            except OSError:
                break
            self.on_line(child)
        self.unlink(child)
        self.drain_outlet(child)
        self.close_outlet(child)

    def drain_outlet(self, child):
        for _ in range(DRAIN_MAX):
            if child.outlet:
                self.on_outlet(child)

    def reap(self):
        """Collects lines and, where a line was killed under its kernel, what it left to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if self.probe.ends(pid, status):
                self.note_wishes()
                continue
            child = next((c for c in self.lines.values() if c.pid == pid and not c.park), None)
            if child:
                self.line_ended(child, status)
        self.end_strays()

    def line_ended(self, child, status):
        self.drain(child)
        self.parks.withdraw(child.number)
        self.filing.forget_line(child.number)
        del self.lines[child.number]
        left = self.end_strays()
        if child.end:
            self.pass_on(child.end)
            return
        code = os.waitstatus_to_exitcode(status)
        lost = code == -signal.SIGKILL and not child.killed and oom.count() > child.ooms
        self.tell("exited", line=child.number, signal=signal.SIGKILL, oom=lost, left=left)

    def end_strays(self):
        spared = self.spare()
        wardens = {c.pid for c in self.lines.values()} | set(spared) | {self.probe.pid}
        return kill.end_strays(wardens, set(spared))

    # ---- the loop ----

    def on_wake(self):
        signals = process.read_waiting(self.wake)
        self.ended |= signal.SIGTERM in signals
        if signal.SIGCHLD in signals:
            self.reap()

    def turn(self, timeout_ms):
        self.watch_outlets()
        for fd, _ in self.poll.poll(timeout_ms):
            if fd == self.wake.fileno():
                self.on_wake()
            elif self.gateway and fd == self.gateway.fileno():
                self.flush()
                if self.gateway:
                    self.on_gateway()
            else:
                self.on_child(fd)

    def on_child(self, fd):
        park = self.parks.at(fd)
        if park:
            taken = {pid for c in self.lines.values() for pid in (c.pid, c.kernel_pid)}
            self.parks.on_seat(park, self.lines.get(park.line), taken)
            return
        for child in self.lines.values():
            if child.link and child.link.fileno() == fd:
                self.on_line(child)
                return
            if child.outlet and child.outlet.link.fileno() == fd:
                self.on_outlet(child)
                return

    def look_at_parks(self, now):
        if self.parks.living and now >= self.look_at:
            self.look_at = now + LOOK_S
            self.parks.look(len(self.lines))

    def serve(self):
        """Until SIGTERM; the container's init then ends everything."""
        retry_at = 0.0
        while not self.ended:
            now = time.monotonic()
            if self.gateway is None and now >= retry_at:
                self.connect()
                retry_at = now + RETRY_S
            self.look_at_parks(now)
            self.filing.work()
            waits = [RETRY_S] * (self.gateway is None) + [LOOK_S] * bool(self.parks.living)
            waits += [0.0] * self.filing.is_busy + [FILES_S] * self.filing.is_active
            self.turn(min(waits) * 1000 if waits else None)
        self.parks.end_all("the supervisor ends")


def main():
    process.become_subreaper()
    process.set_private(True)
    process.set_name("supervise")
    preimport.prepare()
    Supervisor(os.environ.get("COPPICE_CTL", SOCKET)).serve()


if __name__ == "__main__":
    main()
