"""The supervisor's end of a kernel's outbox: hands over what the gateway asks, and its answer.

What comes from the kernel is its guest's: only what answers a replay is passed on, the rest is read
and dropped, and nothing is read that the gateway has no room for.
"""

import select

from coppice_kernel import ctl

ANSWERS = ("kept", "kept_end")


class Outlet:
    def __init__(self, line, link):
        self.line = line
        self.link = link
        self.turn = 0  # number of the replay; an answer to an earlier one is dropped
        self.asked = False  # and its kept_end has not come
        self.request = None  # a replay that the kernel has not had room for
        self.polled = 0

    def events(self, full):
        """What to poll for; `full`: nothing can be passed on now."""
        return (0 if full else select.POLLIN) | (select.POLLOUT if self.request else 0)

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

    def push(self):
        if not self.request:
            return
        try:
            self.link.send(self.request)
        except BlockingIOError:
            return
        except OSError:
            pass  # its end is seen by read()
        self.request = None

    def forget(self):
        """The gateway that asked is gone."""
        self.asked = False
        self.request = None

    def read(self):
        """The packet to pass on, or None. EOFError: the kernel let go."""
        try:
            packet = self.link.recv(ctl.PACKET_MAX)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            packet = b""
        if not packet:
            raise EOFError
        if not self.asked:
            return None
        try:
            return self._checked(ctl.decode(packet, ctl.UP))
        except ctl.Malformed:
            return None

    def _checked(self, message):
        name = message["type"]
        if name not in ANSWERS or message.get("turn") != self.turn:
            return None
        fields = {field: message[field] for field, _, _ in ctl.fields_of(name)}
        packet = ctl.encode(name, **{**fields, "line": self.line})
        self.asked = name != "kept_end"
        return packet
