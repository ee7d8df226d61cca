import json
import os
import threading

import pytest
import zmq

from coppice_kernel import outbox
from coppice_kernel.outbox import DELIMITER, OVERHEAD_BYTES, Outbox, id_of

REST = [b"{}", b"{}", b"{}"]


def frames(msg_id, body=b"", ident=b"topic"):
    header = json.dumps({"msg_id": msg_id, "msg_type": "stream"}).encode()
    return [ident, DELIMITER, b"mac", header, *REST, body]


def size_of(msg_id, body=b""):
    return sum(map(len, frames(msg_id, body)[1:])) + OVERHEAD_BYTES


def ids(found):
    return [id_of(f[2]) for _, f in found]


def fill(box, channel, count, start=0):
    for i in range(start, start + count):
        box.keep(channel, frames(f"{channel}-{i:03}"))


def test_what_was_sent_is_kept_without_its_identities():
    box = Outbox()
    box.keep("shell", frames("a", b"buffer", b"peer"))
    assert box.after({"shell": ""}) == ([("shell", tuple(frames("a", b"buffer")[1:]))], 0)


def test_after_an_id_of_each_channel():
    box = Outbox()
    for i in range(4):
        fill(box, "iopub", 1, i)
        fill(box, "shell", 1, i)
    found, dropped = box.after({"iopub": "iopub-001", "shell": "shell-002"})
    assert ids(found) == ["iopub-002", "iopub-003", "shell-003"]
    assert dropped == 0
    assert ids(box.after({"shell": "never heard of"})[0]) == [f"shell-00{i}" for i in range(4)]
    assert box.after({"stdin": ""}) == ([], 0)


def test_order_of_sending_over_all_channels():
    box = Outbox()
    order = ["iopub", "shell", "iopub", "control", "stdin", "iopub"]
    for i, channel in enumerate(order):
        box.keep(channel, frames(str(i)))
    found, _ = box.after(dict.fromkeys(outbox.CHANNELS, ""))
    assert [c for c, _ in found] == order and ids(found) == list("012345")


def test_ack_forgets_up_to_and_including():
    box = Outbox()
    fill(box, "iopub", 5)
    fill(box, "shell", 1)
    box.ack("iopub", "iopub-002")
    assert ids(box.after({"iopub": ""})[0]) == ["iopub-003", "iopub-004"]
    assert ids(box.after({"iopub": "iopub-002"})[0]) == ["iopub-003", "iopub-004"]
    for nonsense in ("iopub-001", "shell-000", "", "x"):
        box.ack("iopub", nonsense)
    box.ack("no channel", "iopub-004")
    assert len(box.after({"iopub": ""})[0]) == 2
    box.ack("iopub", "iopub-004")
    box.ack("shell", "shell-000")
    assert box._bytes == 0 and not any(c.kept or c.bytes for c in box._channels.values())


def test_bound_drops_the_oldest_and_counts_them():
    box = Outbox(limit_bytes=10 * size_of("iopub-000"))
    fill(box, "iopub", 25)
    found, dropped = box.after({"iopub": ""})
    assert ids(found) == [f"iopub-{i:03}" for i in range(15, 25)]
    assert dropped == 15
    assert box.after({"iopub": "iopub-009"})[1] == 5
    assert box.after({"iopub": "iopub-014"})[1] == 0
    assert box.after({"iopub": "iopub-020"})[1] == 0
    box.ack("iopub", "iopub-011")
    assert box.after({"iopub": ""})[1] == 3
    box.ack("iopub", "iopub-016")
    assert box.after({"iopub": ""})[1] == 0


def test_a_flood_on_iopub_drops_no_reply():
    box = Outbox(limit_bytes=10 * size_of("iopub-000"))
    fill(box, "shell", 2)
    fill(box, "iopub", 50)
    found, dropped = box.after({"shell": "", "iopub": ""})
    assert ids(found)[:2] == ["shell-000", "shell-001"] and len(found) + dropped == 52


def test_dropped_ids_are_bounded_and_still_counted(monkeypatch):
    monkeypatch.setattr(outbox, "LOST_NAMED", 3)
    box = Outbox(limit_bytes=size_of("iopub-000"))
    fill(box, "iopub", 11)
    assert len(box._channels["iopub"].lost) == 3
    assert box.after({"iopub": ""})[1] == 10
    assert box.after({"iopub": "iopub-000"})[1] == 10  # not remembered: more rather than less
    assert box.after({"iopub": "iopub-008"})[1] == 1


def test_one_message_over_the_bound():
    box = Outbox(limit_bytes=5000)
    fill(box, "iopub", 2)
    box.keep("iopub", frames("huge", b"x" * 5000))
    fill(box, "iopub", 1, 2)
    found, dropped = box.after({"iopub": ""})
    assert ids(found) == ["iopub-002"] and dropped == 3
    assert box.after({"iopub": "huge"})[1] == 0


def test_an_id_that_is_used_twice():
    box = Outbox()
    for msg_id in ("a", "b", "a", "c"):
        box.keep("iopub", frames(msg_id))
    assert ids(box.after({"iopub": "a"})[0]) == ["b", "a", "c"]
    box.ack("iopub", "a")
    assert ids(box.after({"iopub": ""})[0]) == ["b", "a", "c"]
    box.ack("iopub", "c")
    assert box.after({"iopub": ""})[0] == []


def test_frames_that_may_change_are_copied():
    box = Outbox()
    body = bytearray(b"old")
    box.keep("iopub", [*frames("a"), body, memoryview(body), zmq.Frame(b"frame")])
    body[:] = b"new"
    assert box.after({"iopub": ""})[0][0][1][-3:] == (b"old", b"old", b"frame")


def test_what_is_no_message_is_not_kept():
    box = Outbox()
    for odd in ([], [b"x"], [DELIMITER], [DELIMITER, b"mac"]):
        box.keep("iopub", odd)
    box.keep("shell", frames("a", ident=b"\x00\x01\x02\x03\x04"))  # to the debugger
    assert box.after({"iopub": "", "shell": ""}) == ([], 0)


@pytest.mark.parametrize(
    "header, msg_id",
    [
        (b'{"msg_id": "a-1_2", "x": 1}', "a-1_2"),
        (b'{"msg_id":"a-1_2","x":1}', "a-1_2"),
        (b'{"x": "\\"msg_id\\": \\"b\\"", "msg_id": "a"}', "a"),
        (b'{"msg_id": "a\\"b"}', 'a"b'),
        (b'{"msg_id": "\\u00e9"}', "\u00e9"),
        (b'{"msg_id": 5, "msg_type": "x"}', ""),
        (b'{"msg_id": "', ""),
        (b"{}", ""),
        (b"[]", ""),
        (b"\xff", ""),
        (b"", ""),
        (b"[" * 100000, ""),
    ],
)
def test_id_of_a_header(header, msg_id):
    assert id_of(header) == msg_id


def test_messages_without_an_id_are_kept_and_end_nothing():
    box = Outbox()
    for _ in range(2):
        box.keep("iopub", [DELIMITER, b"mac", b"{}", *REST])
    assert len(box.after({"iopub": ""})[0]) == 2
    box.ack("iopub", "")
    assert len(box.after({"iopub": ""})[0]) == 2


def test_sockets_and_streams_keep_what_they_send():
    box = Outbox()
    context = zmq.Context()
    a, b = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    box.attach(a, "iopub")
    b.bind("inproc://t")
    a.connect("inproc://t")
    a.linger = 0
    a.send_multipart(frames("a"))
    a.send_multipart(frames("b"), copy=False)
    assert [b.recv_multipart()[3] for _ in range(2)] == [frames(i)[3] for i in "ab"]
    assert ids(box.after({"iopub": ""})[0]) == ["a", "b"]
    context.destroy(linger=0)


def reply_to(request, session="kernel"):
    """As ipykernel answers: under the identity that the request came with."""
    identity, _, parent = request
    header = json.dumps({"msg_id": "r", "msg_type": "execute_reply", "session": session}).encode()
    return [identity, DELIMITER, b"mac", header, parent, b"{}", b"{}"]


MADE_UP = b"\0\1\2\3\4"


@pytest.mark.parametrize("channel", ["shell", "control", "stdin"])
def test_what_lay_unread_when_the_gateway_was_replaced_is_answered_under_its_name(channel):
    box = Outbox()
    unread = [MADE_UP, DELIMITER, b'{"session": "page"}']
    assert box.addressed(channel, reply_to(unread)) == reply_to(unread)  # no name is known
    named = reply_to([b"gateway", DELIMITER, b'{"session": "page"}'])
    assert box.addressed("control", named) == named
    assert box.addressed(channel, reply_to(unread)) == named
    topic = [b"\0topic", *named[1:]]
    assert box.addressed("iopub", topic) == topic


def test_the_debugger_gets_its_own_answers():
    box = Outbox()
    box.addressed("control", reply_to([b"gateway", DELIMITER, b'{"session": "page"}']))
    own = reply_to([MADE_UP, DELIMITER, b'{"session": "kernel"}'])
    assert box.addressed("shell", own) == own
    for odd in ([], [MADE_UP], [MADE_UP, b"x"], [MADE_UP, *own[:1], *own[2:]]):
        assert box.addressed("shell", odd) == odd


def test_a_socket_sends_to_the_gateway_that_is_there():
    box, context = Outbox(), zmq.Context()
    shell, gateway = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    gateway.routing_id = b"gateway"
    gateway.rcvtimeo = 5000
    box.attach(shell, "shell")
    shell.bind("inproc://shell")
    gateway.connect("inproc://shell")
    gateway.send_multipart([DELIMITER, b'{"session": "page"}'])
    request = shell.recv_multipart()
    shell.send_multipart(reply_to(request))
    shell.send_multipart(reply_to([MADE_UP, *request[1:]]))
    assert [id_of(gateway.recv_multipart()[outbox.HEADER]) for _ in range(2)] == ["r", "r"]
    assert len(box.after({"shell": ""})[0]) == 2
    context.destroy(linger=0)


def test_a_fork_keeps_nothing_and_waits_for_no_lock():
    box = Outbox()
    held, done = threading.Event(), threading.Event()

    def hold():
        with box._lock:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        box.keep("iopub", frames("a"))
        os._exit(0 if not box._channels["iopub"].kept else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    done.set()
    holder.join()
