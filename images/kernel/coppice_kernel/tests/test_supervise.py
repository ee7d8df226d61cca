"""The supervisor as a process of its own, with the gateway's side in Python."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

from coppice_kernel import ctl
from coppice_kernel.tests.fakegateway import FakeGateway

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A kernel that needs no ipykernel: it waits, or does what its environment says.
STUB = """
import os, sys, time
from coppice_kernel import start, supervise
def become(spec, listeners, outbox):
    os.setsid()
    exec(spec["env"].get("DO", "time.sleep(1000)"), {"os": os, "time": time, "fds": listeners, "outbox": outbox})
    os._exit(0)
start._become_kernel = become
supervise.main()
"""


@pytest.fixture
def gateway(tmp_path):
    g = FakeGateway(tmp_path)
    environment = {**os.environ, "COPPICE_CTL": f"{tmp_path}/ctl", "COPPICE_PREIMPORT": ""}
    environment["HOME"] = str(tmp_path)
    environment["PYTHONPATH"] = str(ROOT)
    g.process = subprocess.Popen([sys.executable, "-c", STUB], env=environment)
    yield g
    g.close()
    g.process.terminate()
    assert g.process.wait(20) == 0


def test_hello_names_versions(gateway):
    hello = gateway.accept()
    assert (hello["version"], hello["pid"]) == (ctl.VERSION, gateway.process.pid)


def test_start_kill_exited(gateway):
    gateway.accept()
    pids = {n: gateway.start(n) for n in (1, 2)}
    assert len(set(pids.values())) == 2
    assert gateway.kill(1)["signal"] == 9
    gateway.send("signal", line=2, signal=15)
    assert gateway.expect("signalled", line=2)["ok"]
    assert gateway.expect("exited", line=2)["signal"] == 15


def test_listeners_are_the_kernels_alone(gateway, tmp_path):
    gateway.accept()
    gateway.start(1, env={"DO": "os.close(fds[0]); time.sleep(1000)"})
    shell, control = (f"{tmp_path}/{c}-1" for c in ("shell", "control"))
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(control)
    end = gateway.kill(1)
    assert end["signal"] == 9
    for path in (shell, control):
        with socket.socket(socket.AF_UNIX) as s, pytest.raises(ConnectionRefusedError):
            s.connect(path)


def test_garbage_is_answered_and_survived(gateway):
    gateway.accept()
    for packet in (b"\xff", b"{}", b'{"type":"hello","version":1,"pid":1}', b'{"type":"kill"}'):
        gateway.send_raw(packet)
        assert gateway.expect("error")["reason"]
    gateway.start(1)
    gateway.send_raw(ctl.encode("kill", line=1), [0])
    assert "1 descriptors" in gateway.expect("error", about="kill")["reason"]
    gateway.kill(1)


def test_a_line_number_is_used_once(gateway):
    gateway.accept()
    gateway.start(1)
    gateway.send_raw(
        ctl.encode(
            "start", line=1, kernel="", key="", cwd="/", env={}, endpoints=["x"] * 5, fresh=False
        ),
        [0, 0, 0, 0, 0],
    )
    assert "exists" in gateway.expect("error", about="start")["reason"]


def test_unknown_line(gateway):
    gateway.accept()
    gateway.send("signal", line=5, signal=2)
    assert gateway.expect("signalled", line=5)["ok"] is False


def test_a_longer_packet_than_allowed_ends_the_connection_only(gateway):
    gateway.accept()
    gateway.connection.send(b" " * (ctl.PACKET_MAX + 10))
    with pytest.raises(EOFError):
        gateway.receive()
    assert gateway.accept()["pid"] == gateway.process.pid


def test_it_comes_back_for_ever_and_tells_what_it_missed(gateway):
    gateway.accept()
    gateway.start(1)
    for _ in range(3):
        gateway.hang_up()
        gateway.accept()
    pid = gateway.start(2)
    gateway.hang_up()
    os.kill(pid, 9)
    gateway.accept()
    assert gateway.expect("exited", line=2)["signal"] == 9
    gateway.kill(1)


def test_a_gateway_that_never_welcomes_takes_no_news(gateway):
    gateway.accept()
    pid = gateway.start(1)
    gateway.hang_up()
    os.kill(pid, 9)
    while True:
        gateway.connection, _ = gateway.listener.accept()
        gateway.connection.settimeout(20)
        hello = gateway.receive()
        gateway.hang_up()
        if not hello["lines"]:
            break
    gateway.accept()
    assert gateway.expect("exited", line=1)["signal"] == 9


def test_a_killed_line_process_is_reported_and_leaves_nothing(gateway):
    gateway.accept()
    gateway.start(1, env={"DO": "os.kill(os.getppid(), 9); time.sleep(99)"}, wait=False)
    end = gateway.expect("exited", line=1)
    assert (end["signal"], end["oom"]) == (9, False)
    children = f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children"
    assert pathlib.Path(children).read_text() == ""


def test_hello_lists_the_lines_that_live(gateway):
    assert gateway.accept()["lines"] == []
    first, second = gateway.start(1), gateway.start(2)
    gateway.kill(1)
    gateway.hang_up()
    kernels = gateway.kernels
    assert gateway.accept()["lines"] == [f"2:{second}:{kernels[2]}"] and first
    gateway.kill(2)
    gateway.hang_up()
    assert gateway.accept()["lines"] == []


# A kernel with an outbox of its own, and what a guest may do with the descriptor.
OUTBOX = """
import sys
sys.path.insert(0, {root!r})
from coppice_kernel import deliver
from coppice_kernel.tests.test_outbox import frames
box = deliver.start(outbox).box
for n in range({count}): box.keep("iopub", frames(str(n), b"x" * {size}))
os.close(fds[0])
time.sleep(1000)
"""


def start_with_outbox(gateway, line, count, size=10):
    gateway.start(line, env={"DO": OUTBOX.format(root=str(ROOT), count=count, size=size)})
    # It closes its first listener once all is kept.
    with socket.socket(socket.AF_UNIX) as s:
        while True:
            try:
                s.connect(f"{gateway.folder}/shell-{line}")
            except ConnectionRefusedError:
                return
            s.close()
            s = socket.socket(socket.AF_UNIX)  # noqa: PLW2901


def test_replay_over_ctl(gateway):
    gateway.accept()
    start_with_outbox(gateway, 1, 50)
    gateway.send("ack", line=1, channel="iopub", msg_id="9")
    messages, dropped = gateway.replay(1, iopub="19")
    assert [m["id"] for m in messages] == [str(n) for n in range(20, 50)] and dropped == 0
    assert len(gateway.replay(1, iopub="")[0]) == 40
    gateway.kill(1)


def test_replay_that_the_gateway_leaves_in_the_middle(gateway):
    gateway.accept()
    start_with_outbox(gateway, 1, 60, 100000)
    for _ in range(3):
        gateway.send("replay", line=1, after=["iopub:"])
        gateway.expect("kept")
        gateway.hang_up()
        gateway.accept()
    # Nothing of the answers before comes, and a second one in the same connection ends the first.
    gateway.send("replay", line=1, after=["iopub:"])
    messages, _ = gateway.replay(1, iopub="55")
    assert [m["id"] for m in messages] == ["56", "57", "58", "59"]
    gateway.kill(1)


def test_a_stalled_gateway_stalls_the_answer_and_nothing_else(gateway):
    gateway.accept()
    start_with_outbox(gateway, 1, 100, 100000)
    gateway.send("replay", line=1, after=["iopub:"])
    gateway.send("signal", line=99, signal=2)
    assert gateway.expect("signalled", line=99)["ok"] is False
    children = pathlib.Path(f"/proc/{gateway.process.pid}/statm").read_text().split()
    assert int(children[1]) * 4096 < 100 << 20
    gateway.kill(1)
    assert gateway.expect("kept_end", line=1)["dropped"] == -1


def test_replay_without_anybody_to_ask(gateway):
    gateway.accept()
    assert gateway.replay(5, iopub="") == ([], -1)
    gateway.start(1, env={"DO": "os.close(outbox); time.sleep(1000)"})
    while gateway.replay(1, iopub="")[1] != -1:
        pass
    gateway.send("ack", line=1, channel="iopub", msg_id="x")
    gateway.kill(1)


FLOOD = """
import socket
s = socket.socket(fileno=outbox)
n = 0
while True:
    n += 1
    try:
        s.send([b"x" * 60000, b"{}", b'{"type":"exited","line":2,"oom":false,"left":0}',
            b'{"type":"kept_end","line":2,"dropped":0,"turn":0}'][n % 4])
    except OSError:
        os._exit(3)
"""


def test_a_guest_that_floods_its_end(gateway):
    gateway.accept()
    gateway.start(1, env={"DO": FLOOD})
    gateway.start(2)
    gateway.send("replay", line=1, after=["iopub:"])
    gateway.send("signal", line=2, signal=15)
    assert gateway.expect("exited", line=2)["signal"] == 15
    assert {m["type"] for m in gateway.seen} <= {"signalled"}
    gateway.kill(1)


def test_a_replay_that_is_too_long_is_refused(gateway):
    gateway.accept()
    gateway.start(1)
    bare = len(ctl.encode("replay", line=1, after=[""]))
    gateway.send("replay", line=1, after=["x" * (ctl.PACKET_MAX - bare)])
    assert gateway.expect("error", about="replay")["reason"]
    gateway.kill(1)


# A kernel that reports as often as its first listener is connected to.
REPORTER = """
import socket, sys
sys.path.insert(0, {root!r})
from coppice_kernel import deliver
tell = deliver.start(outbox).report
shell = socket.socket(fileno=fds[0])
shell.setblocking(True)
for n in range(1000):
    shell.accept()[0].close()
    tell("m-" + str(n), "{{}}")
"""


def start_reporter(gateway, line):
    gateway.start(line, env={"DO": REPORTER.format(root=str(ROOT))})


def make_report(gateway, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"{gateway.folder}/shell-{line}")
        s.recv(1)  # it let go: the report follows


def test_reports_for_a_gateway_that_takes_them(gateway):
    gateway.accept(reports=True)
    start_reporter(gateway, 1)
    make_report(gateway, 1)
    assert gateway.expect("report") == {"type": "report", "line": 1, "msg_id": "m-0", "data": "{}"}
    gateway.kill(1)


def test_the_last_report_waits_for_a_gateway(gateway):
    gateway.accept(reports=True)
    start_reporter(gateway, 1)
    gateway.hang_up()
    make_report(gateway, 1)
    make_report(gateway, 1)
    gateway.accept(reports=True)
    while (last := gateway.expect("report"))["msg_id"] != "m-1":
        assert last["msg_id"] == "m-0"
    gateway.kill(1)


def test_an_older_gateway_is_told_nothing(gateway):
    gateway.accept()
    start_reporter(gateway, 1)
    make_report(gateway, 1)
    gateway.kill(1)
    assert not [m for m in gateway.seen if m["type"] == "report"]


# A kernel that asks as often as its first listener is connected to, and tells what it heard.
ASKER = REPORTER.replace("deliver.start(outbox).report", "deliver.start(outbox).ask").replace(
    """    shell.accept()[0].close()
    tell("m-" + str(n), "{{}}")
""", """    peer = shell.accept()[0]
    peer.sendall(repr(tell("show", "HEAD", 20)).encode())
    peer.close()
""")


def start_asker(gateway, line):
    gateway.start(line, env={"DO": ASKER.format(root=str(ROOT))})
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(f"{gateway.folder}/shell-{line}")
    return s


def test_a_question_and_its_answer_in_pieces(gateway):
    gateway.accept(reports=True)
    with start_asker(gateway, 1) as asker:
        asked = gateway.expect("ask")
        assert (asked["line"], asked["what"], asked["about"]) == (1, "show", "HEAD")
        whole = {"line": 1, "status": "ok", "size": 5}
        gateway.send("answer", id=asked["id"] + 1, offset=0, data="wrong", **whole)
        gateway.send("answer", id=asked["id"], offset=0, data="äa", **whole)
        gateway.send("answer", id=asked["id"], offset=9, data="no", **whole)
        gateway.send("answer", id=asked["id"], offset=3, data="bc", **whole)
        assert asker.recv(1000).decode() == "('ok', 'äabc')"
    gateway.kill(1)


def test_a_question_whose_gateway_goes(gateway):
    gateway.accept(reports=True)
    with start_asker(gateway, 1) as asker:
        gateway.expect("ask")
        gateway.hang_up()
        assert "the gateway is gone" in asker.recv(1000).decode()
    gateway.accept()
    gateway.kill(1)


def test_a_question_to_an_older_gateway(gateway):
    gateway.accept()
    with start_asker(gateway, 1) as asker:
        assert "older than this image" in asker.recv(1000).decode()
    gateway.kill(1)
    assert not [m for m in gateway.seen if m["type"] == "ask"]
