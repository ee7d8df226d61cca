"""The supervisor's end of a kernel's outbox: hands over what the gateway asks, and its answer.

What comes from the kernel is its guest's: only what answers a replay is passed on, the last report,
and what is of parks or of files; the rest is read and dropped, and nothing is read that the gateway has no room
for.
"""

import os
import select
import socket

from coppice_kernel import ctl

ANSWERS = ("kept", "kept_end")
FDS_MAX = 4  # that a packet may bring


class Outlet:
    def __init__(self, line, link, revived=False):
        self.line = line
        self.link = link
        self.turn = 0  # number of the replay; an answer to an earlier one is dropped
        self.asked = False  # and its kept_end has not come
        self.request = None  # a replay that the kernel has not had room for
        self.order = None  # a hand_over likewise, which goes first
        self.handing = False  # and its answer has not come
        self.report = None  # the last one, until there is a gateway that takes it
        self.asks = None  # the packet of a question that is not answered
        self.polled = 0
        self.note = None  # the last that the supervisor itself has to say
        self.offer = None  # (message, descriptor of the seat) of a park
        self.of_parks = None  # a packet about parks to pass on
        self.to_be_revived = revived  # and it has not said that it was
        self.files = None  # (message, descriptor) of what changed in its folder
        self.taken = 0  # of these, in all

    def tell(self, packet):
        self.note = packet
        self.push()

    def events(self, full):
        """What to poll for; `full`: nothing can be passed on now."""
        return (0 if full else select.POLLIN) | (
            select.POLLOUT if self.note or self.order or self.request else 0
        )

    def ack(self, packet):
        try:
            self.link.send(packet)
        except OSError:
            pass  # the kernel does not read now; a later one says it too

    def replay(self, after):
        self.turn += 1
        self.request = ctl.encode("replay", line=self.line, after=after, turn=self.turn)
        self.asked = True
        self.push()

    def hand_over(self, packet):
        self.order = packet
        self.handing = True
        self.push()

    def push(self):
        if self.note and self._sent(self.note):
            self.note = None
        if self.order and self._sent(self.order):
            self.order = None
        if self.request and not self.order and self._sent(self.request):
            self.request = None

    def _sent(self, packet):
        try:
            self.link.send(packet)
        except BlockingIOError:
            return False
        except OSError:
            pass  # its end is seen by read()
        return True

    def forget(self):
        """The gateway that asked is gone."""
        self.asked = self.handing = False
        self.request = None
        self.refuse("the gateway is gone")

    def answer(self, message, packet):
        """A piece of what the gateway answers."""
        if self.asks == message["id"]:
            self.ack(packet)

    def refuse(self, why):
        """There is nobody to answer."""
        number, self.asks = self.asks, None
        if number is not None:
            self.ack(ctl.encode("answer", line=self.line, id=number, status="unavailable", offset=0,
                                size=len(why), data=why))

    def read(self):
        """The packet to pass on, or None. EOFError: the kernel let go."""
        try:
            packet, fds, _, _ = socket.recv_fds(
                self.link, ctl.PACKET_MAX, FDS_MAX, socket.MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            packet, fds = b"", []
        try:
            if not packet:
                raise EOFError
            return self._checked(ctl.decode(packet, ctl.UP), fds)
        except ctl.Malformed:
            return None
        finally:
            for fd in fds:
                os.close(fd)

    def _checked(self, message, fds):
        name = message["type"]
        if name == "parked":
            if len(fds) == 1:
                self.offer = (message, fds.pop())
            return None
        if name == "files":
            if len(fds) == 1:
                self.files = (message, fds.pop())
            return None
        if name == "not_parked" or (name == "revived" and self.to_be_revived):
            self.to_be_revived &= name != "revived"
            self.of_parks = self._ours(message)
            return None
        if name == "handed_over":
            if not self.handing:
                return None
            self.handing = False
            return ctl.encode(name, line=self.line)
        if name == "ask":
            self.asks = message["id"]
            return self._ours(message)
        if name == "report":
            self.report = self._ours(message)
            return None
        if name not in ANSWERS or not self.asked or message.get("turn") != self.turn:
            return None
        packet = self._ours(message)
        self.asked = name != "kept_end"
        return packet

    def _ours(self, message):
        """Its known fields alone, of the line that it came from."""
        name = message["type"]
        fields = {field: message[field] for field, _, _ in ctl.fields_of(name)}
        return ctl.encode(name, **{**fields, "line": self.line})
