"""The kernel's thread and the supervisor's end, each against the other and against garbage."""

import base64
import os
import socket
import threading

import pytest

from coppice_kernel import ctl, deliver, line
from coppice_kernel.outbox import Outbox
from coppice_kernel.outlet import Outlet
from coppice_kernel.tests.test_outbox import fill, frames


def split(blob):
    found, at = [], 0
    while at < len(blob):
        size = int.from_bytes(blob[at : at + 4], "big")
        found.append(blob[at + 4 : at + 4 + size])
        at += 4 + size
    assert at == len(blob)
    return tuple(found)


class Whole:
    """Puts pieces together, as the gateway does."""

    def __init__(self):
        self.messages = []
        self.dropped = None
        self.blob = b""

    def take(self, packet):
        m = ctl.decode(packet, ctl.UP)
        if m["type"] == "kept_end":
            self.dropped = m["dropped"]
            assert self.blob == b""
            return
        assert (m["line"], m["id"], m["offset"]) == (7, len(self.messages) + 1, len(self.blob))
        self.blob += base64.b64decode(m["data"], validate=True)
        assert len(self.blob) <= m["size"]
        if len(self.blob) == m["size"]:
            self.messages.append((m["channel"], split(self.blob)))
            self.blob = b""


@pytest.fixture
def ends():
    ours, theirs = line.open_link()
    for s in (ours, theirs):
        s.settimeout(20)
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def served(ends):
    """(supervisor's end, outbox) with the thread at work."""
    ours, theirs = ends
    theirs.setblocking(False)
    box = Outbox()
    thread = threading.Thread(target=deliver.Delivery(theirs, box).serve, daemon=True)
    thread.start()
    yield ours, box
    ours.shutdown(socket.SHUT_RDWR)
    thread.join(20)
    assert not thread.is_alive()


def replay(link, turn=1, **after):
    link.send(ctl.encode("replay", line=7, after=[f"{c}:{i}" for c, i in after.items()], turn=turn))


def answer(link, turn=1):
    whole = Whole()
    while whole.dropped is None:
        packet = link.recv(ctl.PACKET_MAX)
        if ctl.decode(packet, ctl.UP)["turn"] == turn:
            whole.take(packet)
    return whole


def test_replay_gives_every_message_whole(served):
    link, box = served
    sizes = [0, 1, deliver.PIECE_BYTES, deliver.PIECE_BYTES * 3 + 1, 5]
    for n, size in enumerate(sizes):
        box.keep(("iopub", "shell")[n % 2], frames(str(n), os.urandom(size)))
    wanted = box.after({"iopub": "", "shell": ""})[0]
    replay(link, iopub="", shell="", nonsense="x")
    whole = answer(link)
    assert whole.messages == wanted and whole.dropped == 0


def test_ack_and_replay(served):
    link, box = served
    fill(box, "iopub", 10)
    link.send(ctl.encode("ack", line=7, channel="iopub", msg_id="iopub-003"))
    replay(link, iopub="")
    assert len(answer(link).messages) == 6
    replay(link, turn=2, iopub="iopub-007")
    assert len(answer(link, 2).messages) == 2


def test_a_later_replay_ends_an_earlier_one(served):
    link, box = served
    for n in range(20):
        box.keep("iopub", frames(str(n), b"x" * 100000))  # more than the link holds
    replay(link, turn=1, iopub="")
    assert ctl.decode(link.recv(ctl.PACKET_MAX), ctl.UP)["turn"] == 1
    replay(link, turn=2, iopub="17")
    whole = answer(link, 2)
    assert [f[-1] for _, f in whole.messages] == [b"x" * 100000] * 2


def test_garbage_does_not_end_the_thread(served):
    link, box = served
    fill(box, "iopub", 1)
    for packet in (b"\xff", b"{}", b"[" * 60000, ctl.encode("kill", line=7)):
        link.send(packet)
    replay(link, iopub="")
    assert len(answer(link).messages) == 1


def test_the_largest_piece_fits():
    packets = list(deliver.packets(2**52, 2**52, [("control", [b"\xff" * 100000])], 2**52))
    assert max(map(len, packets)) > 60000  # and encode() raised nothing


# ---- the supervisor's end ----


@pytest.fixture
def outlet(ends):
    ours, theirs = ends
    ours.setblocking(False)
    return Outlet(7, ours), theirs


def kept(**changes):
    fields = dict(line=1, channel="iopub", id=1, offset=0, size=1, data="eA==", turn=1)
    return ctl.encode("kept", **{**fields, **changes})


def test_only_an_answer_is_passed_on(outlet):
    outlet, kernel = outlet
    kernel.send(kept())
    assert outlet.read() is None, "nobody asked"
    outlet.replay(["iopub:"])
    for packet in (b"\xff", b"[" * 60000, kept(turn=0), ctl.encode("exited", line=1, oom=False, left=0)):
        kernel.send(packet)
        assert outlet.read() is None
    kernel.send(kept())
    assert ctl.decode(outlet.read(), ctl.UP) == {
        "type": "kept", "line": 7, "channel": "iopub", "id": 1, "offset": 0, "size": 1, "data": "eA==",
    }
    assert outlet.asked
    kernel.send(ctl.encode("kept_end", line=1, dropped=0, turn=1))
    assert outlet.read() and not outlet.asked
    kernel.send(kept())
    assert outlet.read() is None


def test_an_answer_that_grows_over_the_limit_is_dropped(outlet):
    outlet, kernel = outlet
    outlet.replay([])
    packet = b'{"type":"kept","line":1,"channel":"i","id":1,"offset":0,"size":1,"turn":1,"data":"%s"}'
    kernel.send(packet % (b"x" * (ctl.PACKET_MAX - len(packet) + 2)))
    assert outlet.read() is None


def test_a_kernel_that_does_not_read(outlet):
    outlet, kernel = outlet
    ack = ctl.encode("ack", line=7, channel="iopub", msg_id="x" * 50000)
    for _ in range(20):
        outlet.ack(ack)
    outlet.replay(["iopub:"])
    assert outlet.request, "it waits for room"
    while outlet.request:
        assert ctl.decode(kernel.recv(ctl.PACKET_MAX), ctl.DOWN)["type"] == "ack"
        outlet.push()
    while (m := ctl.decode(kernel.recv(ctl.PACKET_MAX), ctl.DOWN))["type"] == "ack":
        pass
    assert m["after"] == ["iopub:"] and m["turn"] == outlet.turn


def test_an_end_that_was_closed(outlet):
    outlet, kernel = outlet
    kernel.close()
    outlet.ack(kept())
    outlet.replay([])
    with pytest.raises(EOFError):
        outlet.read()


def hand_over(link, kernel="k-1", env=None, cwd="/"):
    link.send(ctl.encode("hand_over", line=7, kernel=kernel, cwd=cwd, env=env or {}))


@pytest.fixture
def settled(ends):
    """(supervisor's end, outbox, what settle was called with)."""
    ours, theirs = ends
    theirs.setblocking(False)
    box, calls = Outbox(), []
    thread = threading.Thread(target=deliver.Delivery(theirs, box, calls.append).serve, daemon=True)
    thread.start()
    yield ours, box, calls
    ours.shutdown(socket.SHUT_RDWR)
    thread.join(20)
    assert not thread.is_alive()


def test_the_first_hand_over_counts(settled):
    link, _, calls = settled
    for kernel in ("k-1", "k-2"):
        hand_over(link, kernel, {"A": "1"})
        assert ctl.decode(link.recv(ctl.PACKET_MAX), ctl.UP) == {"type": "handed_over", "line": 7}
    assert [(c["kernel"], c["env"]) for c in calls] == [("k-1", {"A": "1"})]


def test_a_hand_over_comes_before_the_replay_behind_it(settled):
    link, box, calls = settled
    fill(box, "iopub", 3)
    hand_over(link)
    replay(link, iopub="")
    assert ctl.decode(link.recv(ctl.PACKET_MAX), ctl.UP)["type"] == "handed_over"
    assert len(calls) == 1
    assert len(answer(link).messages) == 3


def test_a_hand_over_in_the_middle_of_a_replay(settled):
    link, box, calls = settled
    for n in range(20):
        box.keep("iopub", frames(str(n), b"x" * 100000))  # more than the link holds
    replay(link, iopub="")
    hand_over(link)
    whole, handed = Whole(), 0
    while whole.dropped is None or not handed:
        packet = link.recv(ctl.PACKET_MAX)
        if ctl.decode(packet, ctl.UP)["type"] == "handed_over":
            handed += 1
        else:
            whole.take(packet)
    assert (len(whole.messages), handed, len(calls)) == (20, 1, 1)


def test_outlet_hands_over_first_and_answers_once(ends):
    ours, theirs = ends
    ours.setblocking(False)
    outlet = Outlet(7, ours)
    outlet.hand_over(ctl.encode("hand_over", line=7, kernel="k", cwd="/", env={}))
    outlet.replay(["iopub:"])
    assert [ctl.decode(theirs.recv(ctl.PACKET_MAX), ctl.DOWN)["type"] for _ in range(2)] == [
        "hand_over",
        "replay",
    ]
    said = ctl.encode("handed_over", line=99)  # the line is ours to name
    theirs.send(said)
    assert ctl.decode(outlet.read(), ctl.UP) == {"type": "handed_over", "line": 7}
    theirs.send(said)
    assert outlet.read() is None


def test_outlet_passes_on_no_answer_that_nobody_asked_for(ends):
    ours, theirs = ends
    ours.setblocking(False)
    outlet = Outlet(7, ours)
    theirs.send(ctl.encode("handed_over", line=7))
    assert outlet.read() is None
    outlet.hand_over(ctl.encode("hand_over", line=7, kernel="k", cwd="/", env={}))
    theirs.send(ctl.encode("kept_end", line=7, dropped=0))
    assert outlet.read() is None


def report(link, msg_id="m", data="{}"):
    link.send(ctl.encode("report", line=99, msg_id=msg_id, data=data))


def test_outlet_keeps_the_last_report(ends):
    ours, theirs = ends
    ours.setblocking(False)
    outlet = Outlet(7, ours)
    for n in range(3):
        report(theirs, f"m-{n}")
        assert outlet.read() is None
    assert ctl.decode(outlet.report, ctl.UP) == {
        "type": "report", "line": 7, "msg_id": "m-2", "data": "{}"}


def test_a_report_to_a_supervisor_that_does_not_read(ends):
    ours, theirs = ends
    theirs.setblocking(False)
    delivery = deliver.Delivery(theirs, Outbox())
    while delivery.report("m", "x" * 40000):
        pass
    assert ctl.decode(ours.recv(ctl.PACKET_MAX), ctl.UP)["msg_id"] == "m"
