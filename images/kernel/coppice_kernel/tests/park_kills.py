"""Guests that lie about parks, and every process of a park and a revive killed (park_scenes.py)."""

import socket

import pytest

from coppice_kernel import ctl
from coppice_kernel.tests.park_scenes import NAMES

LIAR = """
import os, socket, signal, json
from coppice_kernel import ctl
delivery = get_ipython().kernel.parent.delivery
def offer(say):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    delivery.tell("parked", [a.fileno()], msg_id="m", park=0, pid=1, data='{"digest":"d","seconds":1}')
    a.close()
    say(b)
    return b
"""


def test_a_kernel_that_offers_itself_is_not_taken(ground):
    client = ground.start()
    client.run(LIAR)
    client.run("end = offer(lambda s: s.send(b'here')); end.settimeout(20)")
    assert client.run("print(end.recv(10))") == "b''\n"
    assert client.run("print('runs')") == "runs\n"


def test_what_is_offered_must_be_below_the_line(ground):
    """A process of another line says that it is there."""
    first, second = ground.start(), ground.start()
    first.run(LIAR)
    first.run("listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); listener.bind('\\0carry'); "
              "listener.listen()")
    second.run("import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect('\\0carry')")
    first.run("peer = listener.accept()[0]\nend = offer(lambda s: socket.send_fds(peer, [b'x'], [s.fileno()]))")
    second.run("fd = socket.recv_fds(s, 10, 1)[1][0]; seat = socket.socket(fileno=fd); seat.send(b'here')")
    assert first.run("end.settimeout(20); print(end.recv(10))") == "b''\n"
    assert second.run("print('runs')") == "runs\n"


def test_garbage_for_a_seat(ground):
    client = ground.start()
    client.run(LIAR)
    client.run(
        "fd = os.open('/dev/null', os.O_RDONLY)\n"
        "for fds in ([], [fd], [fd, fd], [fd] * 9): delivery.tell('parked', fds, msg_id='m', park=0, pid=1, data='{}')\n"
        "for n in range(200):\n"
        "    a, b = socket.socketpair(); delivery.tell('parked', [a.fileno()], msg_id='m', park=0, pid=1, data='[')\n"
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "delivery.tell('parked', [a.fileno()], msg_id='m', park=0, pid=1, data='x' * 60000)\n"
        "del a, b"
    )
    assert ground.park(client, "fine = 1")["digest"]


def test_what_is_parked_cannot_run(ground):
    """Somebody in the container continues it: it is not that node any more."""
    client = ground.start()
    park = ground.park(client, "x = 1")
    client.run(f"import os, signal; os.kill({park['pid']}, signal.SIGCONT)")
    assert "continued" in ground.gateway.expect("unparked", park=park["park"])["reason"]


def test_a_kill_spares_no_ordinary_process(ground):
    client = ground.start()
    park = ground.park(client, "x = 1")
    client.run("import subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True); print(p.pid)")
    child = int(client.run("print(p.pid)"))
    ground.kill(client)
    second = ground.revive(park)
    assert second.run(f"import os\ntry: os.kill({child}, 0); print('lives')\nexcept OSError: print('ended')") == (
        "ended\n"
    )


@pytest.mark.parametrize("victim", ["park", "kernel", "line"])
def test_kill_of_each_process(ground, victim):
    client = ground.start()
    park = ground.park(client, "x = 5; import os")
    second = ground.revive(park)
    line = int(second.run("print(os.getppid())"))
    pid = {"park": park["pid"], "kernel": int(second.run("print(os.getpid())")), "line": line}[victim]
    client.run(f"os.kill({pid}, 9)")
    if victim == "park":
        assert "ended" in ground.gateway.expect("unparked", park=park["park"])["reason"]
        assert second.run("print(x)") == "5\n"
        return
    assert ground.gateway.expect("exited", line=second.line)["signal"] == 9
    third = ground.revive(park)
    assert third.run("print(x)") == "5\n"
    assert client.run("print(x)") == "5\n"


def test_a_park_that_dies_while_it_is_asked(ground):
    client = ground.start()
    park = ground.park(client, "import os; x = 5")
    os_kill = f"os.kill({park['pid']}, 9)"
    client.send("shell", "execute_request", {"code": os_kill})
    ground.line += 1
    ground.gateway.revive(ground.line, park["park"], wait=False)
    while True:
        m = ground.gateway.receive()
        if m["type"] in ("start_failed", "started") and m.get("line") == ground.line:
            break
    assert client.run("print(x)") == "5\n"
    if m["type"] == "started":
        ground.gateway.expect("revived", line=ground.line)
        ground.gateway.kill(ground.line)


DEATHS = {  # of a park: (what dies in place of going on, whether it is told)
    "kernel before it tells": ("delivery.tell = lambda *a, **k: os.kill(os.getpid(), 9)", False),
    "process between": ("park._be_between = lambda *a: os.kill(os.getpid(), 9)", True),
    "parked process": ("park._be_parked = lambda *a: os.kill(os.getpid(), 9)", True),
}


@pytest.mark.parametrize("who", DEATHS)
def test_kill_at_each_step_of_a_park(ground, who):
    code, told = DEATHS[who]
    client = ground.start()
    msg_id = ground.run(
        client,
        "import os\nfrom coppice_kernel import park\ndelivery = get_ipython().kernel.parent.delivery\n" + code,
    )
    if told:
        assert ground.fate(msg_id)["type"] == "not_parked"
        assert client.run("print('runs')") == "runs\n"
        ground.kill(client)
    else:
        assert ground.gateway.expect("exited", line=client.line)["signal"] == 9
    nothing_left(ground)


def nothing_left(ground):
    """Below the supervisor is what a new kernel needs, and nothing else."""
    client = ground.start()
    wanted = sorted(["kernel", f"line-{client.line}"])
    for _ in range(200):  # until what was told to end has ended
        ground.release_all()
        names = client.run(NAMES % ground.supervisor).split()
        if names == wanted:
            break
    assert names == wanted


STEPS = {  # of a revive
    "line's process": "park._become_line = lambda *a: os.kill(os.getpid(), 9)",
    "kernel": "park._become_kernel = lambda *a: os.kill(os.getpid(), 9)",
    "kernel in the middle": "revive._make = lambda *a: os.kill(os.getpid(), 9)",
    "kernel that does not stand": "revive._make = lambda *a: 1 / 0",
}


@pytest.mark.parametrize("who", STEPS)
def test_kill_at_each_step_of_a_revive(ground, who):
    client = ground.start()
    made = ground.park(client, f"import os\nfrom coppice_kernel import park, revive\n{STEPS[who]}; x = 1")
    ground.line += 1
    ground.gateway.revive(ground.line, made["park"], wait=False)
    while (m := ground.gateway.receive())["type"] not in ("exited", "start_failed"):
        if m["type"] == "revived":
            assert "ZeroDivisionError" in m["data"]
    assert m["line"] == ground.line
    assert client.run("print(x)") == "1\n"
    ground.kill(client)
    ground.gateway.send("release", park=made["park"])
    ground.gateway.expect("unparked", park=made["park"])
    nothing_left(ground)


def test_a_revive_that_hangs_is_killed(ground):
    client = ground.start()
    made = ground.park(
        client, "import time\nfrom coppice_kernel import revive\nrevive._make = lambda *a: time.sleep(1000)")
    ground.line += 1
    ground.gateway.revive(ground.line, made["park"], wait=False)
    ground.gateway.expect("started", line=ground.line)
    assert ground.gateway.kill(ground.line)["signal"] == 9
    ground.kill(client)
    ground.gateway.send("release", park=made["park"])
    ground.gateway.expect("unparked", park=made["park"])
    nothing_left(ground)


def test_parks_max_is_kept(ground):
    ground.gateway.hang_up()
    ground.gateway.accept(reports=True, parks_max=3)
    client = ground.start()
    made = [ground.park(client, f"n = {n}")["park"] for n in range(6)]
    gone = [ground.gateway.expect("unparked")["park"] for _ in range(3)]
    assert len(set(gone)) == 3 and not {made[-1], made[-2]} & set(gone)
    # 16 again for those that come after.
    ground.gateway.hang_up()
    ground.gateway.accept(reports=True, parks_max=16)


def test_garbage_in_revive(ground):
    client = ground.start()
    park = ground.park(client, "x = 1")
    ground.gateway.send_raw(
        ctl.encode("revive", line=client.line, park=park["park"], kernel="", key="", cwd="", env={},
                   endpoints=["x"] * 5),
        [0] * 5,
    )
    assert "exists" in ground.gateway.expect("error", about="revive")["reason"]
    ground.line += 1
    ground.gateway.send_raw(
        ctl.encode("revive", line=ground.line, park=park["park"], kernel="", key="", cwd="", env={},
                   endpoints=["x"] * 4),
        [0] * 5,
    )
    assert "five" in ground.gateway.expect("start_failed", line=ground.line)["reason"]
    ground.line += 1  # endpoints that are no names: the new kernel says why it does not stand
    ground.gateway.send_raw(
        ctl.encode("revive", line=ground.line, park=park["park"], kernel="", key="", cwd="", env={},
                   endpoints=["x"] * 5),
        [0] * 5,
    )
    assert "error" in ground.gateway.expect("revived", line=ground.line)["data"]
    assert ground.gateway.expect("exited", line=ground.line)["code"] == 1
    assert ground.revive(park).run("print(x)") == "1\n"
