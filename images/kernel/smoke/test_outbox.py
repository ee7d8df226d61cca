"""A gateway that is killed and comes back gets what its kernels sent meanwhile."""

import signal

import pytest

from coppice_kernel.tests.fakegateway import text

CHANNELS = ("iopub", "shell", "control", "stdin")


def connect_again(place, client):
    """The gateway is killed and starts anew: `ctl`, then the channels under the same routing id.
    Returns (client, its live iopub messages so far)."""
    again = place.gateway.client(client.line, client.session)
    again.line, again.pid = client.line, client.pid
    place.clients.append(again)
    seen = []
    while True:
        msg_id = again.send("control", "kernel_info_request", {})
        again.reply("control", msg_id)
        while again.iopub.poll(1000):
            m = again.receive("iopub")
            seen.append(m)
            if m["parent"].get("msg_id") == msg_id and m["content"].get("execution_state") == "idle":
                return again, seen


def kill_gateway(place, client):
    client.close()
    place.clients.remove(client)
    place.gateway.hang_up()
    return place.gateway.accept()


def once(*parts):
    """What the parts hold, each message once and in order of its first coming."""
    found = {}
    for m in (m for part in parts for m in part):
        found.setdefault(m["header"]["msg_id"], m)
    return list(found.values())


def of(messages, msg_id, channel=None):
    return [
        m
        for m in messages
        if m["parent"].get("msg_id") == msg_id and m.get("channel", channel) == channel
    ]


def state(message):
    return message["content"].get("execution_state")


CELL = """
for i in range(200): print(i, flush=True)
name = input('who? ')
for i in range(200, 400): print(i, flush=True)
print(name, flush=True)
name
"""


@pytest.mark.parametrize("fresh", [False, True])
def test_gateway_killed_while_a_cell_prints(make_place, fresh):
    place = make_place()
    kernel = place.start(fresh=fresh)
    msg_id = kernel.send("shell", "execute_request", {"code": CELL, "allow_stdin": True})
    had = []
    while "10\n" not in text(had, "stdout"):
        had.append(kernel.receive("iopub"))
    mark = had[-1]["header"]["msg_id"]
    place.gateway.send("ack", line=kernel.line, channel="iopub", msg_id=mark)
    lines = kill_gateway(place, kernel)["lines"]
    assert lines == [f"1:{kernel.pid}:{place.gateway.kernels[1]}"]

    again, live = connect_again(place, kernel)
    kept, dropped = place.gateway.replay(1, **{**dict.fromkeys(CHANNELS, ""), "iopub": mark})
    assert dropped == 0
    asked = of(kept, msg_id, "stdin") or [again.receive("stdin")]
    assert asked[0]["content"]["prompt"] == "who? "
    again.send("stdin", "input_reply", {"value": "ann"}, asked[0]["header"])
    while not (live and live[-1]["parent"].get("msg_id") == msg_id and state(live[-1]) == "idle"):
        live.append(again.receive("iopub"))
    reply = again.reply("shell", msg_id)
    assert reply["content"]["status"] == "ok"

    iopub = [m for m in kept if m["channel"] == "iopub"]
    assert mark not in {m["header"]["msg_id"] for m in iopub}
    got = of(once(had, ({**m, "channel": None} for m in iopub), live), msg_id)
    assert text(got, "stdout") == "".join(f"{i}\n" for i in range(400)) + "ann\n"
    kinds = [m["header"]["msg_type"] for m in got]
    assert kinds[:2] == ["status", "execute_input"] and kinds[-2:] == ["execute_result", "status"]
    assert [state(m) for m in got if state(m)] == ["busy", "idle"]

    # And what was sent to this one is kept until it is acknowledged.
    place.gateway.send("ack", line=1, channel="iopub", msg_id=live[-1]["header"]["msg_id"])
    kept, _ = place.gateway.replay(1, iopub="", shell="", stdin="")
    assert not of(kept, msg_id, "iopub")
    assert [m["header"]["msg_id"] for m in of(kept, msg_id, "shell")] == [reply["header"]["msg_id"]]
    assert len(of(kept, msg_id, "stdin")) == 1


def test_a_cell_that_ends_while_there_is_no_gateway(make_place):
    place = make_place()
    kernel = place.start()
    code = "import sys\nfor i in range(20000): sys.stdout.write(f'{i}\\n'); sys.stdout.flush()\n1/0"
    msg_id = kernel.send("shell", "execute_request", {"code": code})
    while kernel.receive("iopub")["header"]["msg_type"] != "execute_input":
        pass
    kill_gateway(place, kernel)
    again, _ = connect_again(place, kernel)
    # Shell is answered in order: then the cell is over.
    again.reply("shell", again.send("shell", "kernel_info_request", {}))
    kept, dropped = place.gateway.replay(1, iopub="", shell="")
    assert dropped == 0
    got = of(kept, msg_id, "iopub")
    assert text(got, "stdout").split() == [str(i) for i in range(20000)]
    assert [state(m) for m in got if state(m)] == ["busy", "idle"]
    assert [m["content"]["ename"] for m in of(kept, msg_id, "shell")] == ["ZeroDivisionError"]
    # In order of sending over channels: the reply before idle, as it was sent.
    order = [m["header"]["msg_type"] for m in kept if m["parent"].get("msg_id") == msg_id][-3:]
    assert order in (["error", "execute_reply", "status"], ["error", "status", "execute_reply"])


def test_large_frames_come_whole(make_place):
    place = make_place()
    kernel = place.start()
    code = (
        "from IPython.display import display\n"
        "display({'text/plain': 'x' * 5_000_000}, raw=True)\n"
        "from ipykernel.comm import Comm\n"
        "b = bytearray(b'a' * 3_000_000)\n"
        "c = Comm('t'); c.send({}, buffers=[b, memoryview(b)])\n"
        "b[:] = b'b' * len(b)"
    )
    reply, seen = kernel.execute(code)
    assert reply["status"] == "ok", reply
    kept, dropped = place.gateway.replay(1, iopub="")
    kept = [m for m in kept if m["parent"] == seen[0]["parent"]]
    assert [m["content"] for m in kept if not state(m)] == [m["content"] for m in seen]
    assert dropped == 0


FIND = """
import os, socket
ours = []
for fd in map(int, os.listdir('/proc/self/fd')):
    try: s = socket.socket(fileno=os.dup(fd))
    except OSError: continue
    if s.type == socket.SOCK_SEQPACKET: ours.append(fd)
    s.close()
assert len(ours) == 1, ours
"""


def test_a_guest_that_closes_the_link(make_place):
    place = make_place()
    kernel = place.start()
    kernel.run(FIND + "s = socket.socket(fileno=ours[0]); s.shutdown(socket.SHUT_RDWR); s.close()")
    assert place.gateway.replay(1, iopub="") == ([], -1)
    assert kernel.run("print(6 * 7)") == "42\n"
    assert place.start().run("print(1)") == "1\n"
    assert place.gateway.kill(1)["signal"] == signal.SIGKILL


def test_a_guest_that_floods_the_link(make_place):
    place = make_place()
    kernel = place.start()
    kernel.run(
        FIND + "import threading\n"
        "def flood():\n"
        "    s = socket.socket(fileno=os.dup(ours[0])); s.setblocking(True)\n"
        "    n = 0\n"
        "    while True:\n"
        "        n += 1\n"
        "        try: s.send((b'x' * 60000, b'[' * 60000, b'{}')[n % 3])\n"
        "        except OSError: pass\n"
        "threading.Thread(target=flood, daemon=True).start()"
    )
    second = place.start()
    assert second.run("print(1)") == "1\n"
    place.gateway.send("replay", line=1, after=["iopub:"])
    assert place.gateway.kill(second.line)["signal"] == signal.SIGKILL
    assert place.gateway.kill(1)["signal"] == signal.SIGKILL


def test_forks_of_the_guest_do_not_hold_the_link(make_place):
    place = make_place()
    kernel = place.start()
    reply, _ = kernel.execute(
        "import os, time, multiprocessing as mp\n"
        "def f(n): return n * n\n"
        "with mp.get_context('fork').Pool(2) as p: assert p.map(f, range(50)) == [n * n for n in range(50)]\n"
        "if os.fork() == 0:\n"
        "    time.sleep(1000)"
    )
    assert reply["status"] == "ok", reply
    kernel.run(FIND + "s = socket.socket(fileno=ours[0]); s.close()")
    assert place.gateway.replay(1, iopub="") == ([], -1)


def test_replies_of_subshells_are_kept(kernel, place):
    if "kernel subshells" not in kernel.info.get("supported_features", []):
        assert kernel.info["implementation_version"].startswith("8.")
        return
    made = kernel.reply("control", kernel.send("control", "create_subshell_request", {}))
    subshell = made["content"]["subshell_id"]
    msg_id = kernel.send("shell", "execute_request", {"code": "print(5)"}, subshell_id=subshell)
    reply = kernel.reply("shell", msg_id)
    kept, _ = place.gateway.replay(kernel.line, shell="")
    assert [m["header"]["msg_id"] for m in of(kept, msg_id, "shell")] == [reply["header"]["msg_id"]]
