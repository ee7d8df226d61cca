"""What cannot be parked is refused, what does not come back is declared: the hazards of branching.md
3.A, a scene each (park_scenes.py)."""

import os
import socket

import pytest

REFUSED = {
    "A1 thread": (
        "import threading; e = threading.Event(); t = threading.Thread(target=e.wait, name='mine'); t.start()",
        "thread 'mine'",
        "e.set(); t.join()",
    ),
    "A1 low-level thread": (
        "import _thread; lock = _thread.allocate_lock(); lock.acquire(); "
        "_thread.start_new_thread(lock.acquire, ())",
        "thread",
        "lock.release(); import time; time.sleep(0.2)",
    ),
    "A1 executor": (
        "from concurrent.futures import ThreadPoolExecutor as P; p = P(1); p.submit(int).result()",
        "thread 'ThreadPoolExecutor",
        "p.shutdown()",
    ),
    "A5 user's ZeroMQ": (
        "import zmq; c = zmq.Context(); s = c.socket(zmq.PUB)",
        "ZeroMQ",
        "s.close(); c.term()",
    ),
    "A8 shared memory": (
        "import mmap; m = mmap.mmap(-1, 4096)",
        "mapped writable and shared",
        "m.close()",
    ),
    "A12 child": (
        "import subprocess; p = subprocess.Popen(['sleep', '1000'])",
        "is a child of it",
        "p.kill(); p.wait()",
    ),
    "A12 child that has ended": (
        "import subprocess; p = subprocess.Popen(['true']); import time; time.sleep(0.2)",
        "is a child of it",
        "p.wait()",
    ),
    "A12 listener": (
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()",
        "listens",
        "s.close()",
    ),
    "graphical loop": (
        "k = get_ipython().kernel; k._trait_values['eventloop'] = print",
        "graphical interface",
        "k._trait_values['eventloop'] = None",
    ),
    "debugger": (
        "class D: is_started = True\nk = get_ipython().kernel; d = k.debugger; k.debugger = D()",
        "debugger",
        "k.debugger = d",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusal(ground, case):
    code, reason, undo = REFUSED[case]
    client = ground.start()
    assert reason in ground.refusal(client, code)
    # Told once, and no error of the cell's; afterwards it can be parked.
    assert ground.park(client, undo)["digest"]


def test_a_child_of_the_kernel_is_the_users_own(ground):
    """Parking leaves no child that user code would wait for."""
    client = ground.start()
    ground.park(client, "x = 1")
    out = client.run("import os\ntry: print(os.waitpid(-1, os.WNOHANG))\nexcept ChildProcessError: print('none')")
    assert out == "none\n"


def test_lost_things_are_declared(ground):
    client = ground.start()
    park = ground.park(
        client,
        "import socket, sqlite3, os, tempfile, asyncio\n"
        "a, b = socket.socketpair()\nr, w = os.pipe()\ndb = sqlite3.connect('d.db')\n"
        "folder = tempfile.TemporaryDirectory(dir='.')\ngone = open('gone', 'w+'); os.unlink('gone')\n"
        "log = open('log', 'w'); log.write('before '); log.flush()\n"
        "t = asyncio.get_event_loop().create_task(asyncio.sleep(1000))",
    )
    named = {(loss["name"], loss["kind"]) for loss in park["lost"]}
    assert {("a", "socket"), ("b", "socket"), ("db", "database"), ("folder", "folder"), ("t", "task")} <= named
    assert [k for _, k in named].count("pipe") == 2
    ground.run(client, "log.write('after'); log.flush(); a.send(b'for b')")
    second = ground.revive(park)
    files = {(os.path.basename(n).split(" ")[0], k) for n, k in ground.lost(second) if k == "file"}
    assert files == {("gone", "file"), ("log", "file")}
    # A19: it does not read or write on the other line's connections.
    out = second.run(
        "print(b.recv(10))\ntry: a.send(b'x')\nexcept OSError as e: print(type(e).__name__)\n"
        "print(os.read(r, 1), db.execute('select 1').fetchone())"
    )
    assert out == "b''\nBrokenPipeError\nb'' (1,)\n"
    assert client.run("print(b.recv(10)); os.write(w, b'y'); print(os.read(r, 1))") == "b'for b'\nb'y'\n"


def test_semaphores_are_its_own(ground):
    """A8: of shared memory these alone are taken along. tqdm makes one."""
    client = ground.start()
    park = ground.park(client, "import multiprocessing as m; lock = m.Lock(); free = m.Lock(); lock.acquire()")
    ground.run(client, "lock.release(); free.acquire()")
    second = ground.revive(park)
    assert second.run("print(lock.acquire(timeout=0.1), free.acquire(timeout=0.1))") == "False True\n"
    second.run("lock.release()")
    assert client.run("print(lock.acquire(timeout=0.1), free.acquire(timeout=0.1))") == "True False\n"


def test_the_kernel_of_before_is_garbage_that_says_nothing(ground):
    """A5: its sockets are not closed, and whoever is shown ResourceWarnings is shown none of them."""
    client = ground.start()
    park = ground.park(client, "import gc, warnings; warnings.simplefilter('always', ResourceWarning)")
    for _ in range(3):
        second = ground.revive(park)
        out = second.run(
            "_ = gc.collect()\n"
            "of = [o for o in gc.get_objects() if type(o).__name__ in ('CoppiceKernel', 'CoppiceApp')]\n"
            "print(sum(o is not get_ipython().kernel and o.parent is not None for o in of))"
        )
        assert out == "1\n"  # the first, whose excepthook every thread has
        assert client.run("print('here')") == "here\n"
        park = ground.park(second, "del of")
        client = second


def test_a_lock_ends_with_its_owner(ground):
    """Not with the park: closing the file unlocks it, as it does where nothing is parked."""
    client = ground.start()
    park = ground.park(client, "import fcntl\nf = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX)")
    again = "g = open('lock'); fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB); print('locked')"
    assert client.run(f"f.close(); {again}") == "locked\n"
    second = ground.revive(park)
    assert ("lock", "lock") in {(os.path.basename(name), kind) for name, kind in ground.lost(second)}
    assert second.run("print(f.closed, f.write('x'))") == "False 1\n"


def test_signals_are_not_written_to_what_an_event_loop_had(ground):
    """A6: its socket is closed in the fork, and the number is another's by then."""
    park = ground.park(
        ground.start(),
        "import asyncio, signal; asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)",
    )
    second = ground.revive(park)
    assert second.run("print(signal.set_wakeup_fd(-1))") == "-1\n"


def test_an_exit_runs_what_is_its_own_only(ground):
    """A10."""
    client = ground.start()
    park = ground.park(
        client,
        "import tempfile, atexit, os\nd = tempfile.TemporaryDirectory(dir='.')\n"
        "name = os.path.abspath(d.name); mark = os.path.abspath('mark')\n"
        "atexit.register(lambda: open(mark, 'w'))",
    )
    second = ground.revive(park)
    second.run("own = tempfile.TemporaryDirectory(dir='.'); print(own.name)")
    own = second.run("print(os.path.abspath(own.name))").strip()
    second.send("control", "shutdown_request", {"restart": False})
    assert ground.gateway.expect("exited", line=second.line)["code"] == 0
    assert client.run(f"print(os.path.exists(name), os.path.exists(mark), os.path.exists({own!r}))") == (
        "True False False\n"
    )


def test_siblings_draw_different_secrets(ground):
    client = ground.start()
    park = ground.park(client, "import uuid, secrets, ssl, os, random; random.seed(3)")
    draw = "print(uuid.uuid4(), secrets.token_hex(8), ssl.RAND_bytes(8).hex(), os.urandom(8).hex())"
    siblings = [client, ground.revive(park), ground.revive(park)]
    drawn = [c.run(draw).split() for c in siblings]
    for kind in zip(*drawn):
        assert len(set(kind)) == 3
    # What was seeded goes on alike, as one node means.
    assert len({c.run("print(random.random())") for c in siblings}) == 1


def test_comms_are_closed(ground):
    client = ground.start()
    park = ground.park(client, "from comm import create_comm; c = create_comm(target_name='slider')")
    assert [loss["kind"] for loss in park["lost"]] == ["comm"]
    second = ground.revive(park)
    messages, _ = ground.gateway.replay(second.line, iopub="")
    assert "comm_close" in [m["header"]["msg_type"] for m in messages]
    assert second.run("print(len(get_ipython().kernel.comm_manager.comms))") == "0\n"


def test_loops_of_the_parent_go_on(ground):
    """A6: what the fork closes is not unregistered."""
    client = ground.start()
    for n in range(3):
        second = ground.revive(ground.park(client, f"n = {n}"))
        ground.kill(second)
        assert client.run("print(n)") == f"{n}\n"
        control = client.send("control", "kernel_info_request", {})
        assert client.reply("control", control)["content"]["status"] == "ok"


def test_a_dead_kernel_accepts_nothing_though_parks_live(ground):
    client = ground.start()
    ground.park(client, "x = 1")
    ground.kill(client)
    for channel in ("shell", "iopub", "stdin", "control", "hb"):
        with socket.socket(socket.AF_UNIX) as s, pytest.raises(ConnectionRefusedError):
            s.connect(f"{ground.gateway.folder}/{channel}-{client.line}")


def test_a_folder_that_changed_is_seen(ground):
    """A13: files are not the park's."""
    client = ground.start()
    park = ground.park(client, "open('data', 'w').write('1'); None")
    same = ground.revive(park)
    assert park["folder"] and same.told["folder"] == park["folder"]
    ground.run(client, "open('data', 'w').write('2'); None")
    assert ground.revive(park).told["folder"] != park["folder"]


def test_all_parks_are_released(ground):
    """A18: what a secret was in. None of their processes is left, nor one that is on its way."""
    client = ground.start()
    pids = [ground.park(client, f"x = {n}")["pid"] for n in range(3)]
    ground.gateway.send("release", park=0)
    gone = [ground.gateway.expect("unparked") for _ in pids]
    assert {found["reason"] for found in gone} == {"released"}
    out = client.run(f"import os\nprint([p for p in {pids} if os.path.exists(f'/proc/{{p}}/exe')])")
    assert out == "[]\n"
    # One that was offered, and has not said that it is there.
    seat = "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
    offer = "get_ipython().kernel.parent.delivery.tell('parked', [a.fileno()], msg_id='mine', park=0, pid=0, data='{}')"
    client.run(seat + offer)
    ground.settle()
    ground.gateway.send("release", park=0)
    assert ground.fate("mine")["reason"] == "released"
    assert ground.park(client, "b.close(); a.close(); x = 9")["digest"]  # later ones are made as ever


def test_each_branch_has_its_own_key(ground):
    """A18: what is signed with the key of the line left behind is not answered."""
    park = ground.park(ground.start(), "x = 1")
    second = ground.revive(park)
    key, second.key = second.key, "smoke-key"
    second.send("shell", "execute_request", {"code": "x = 2"})
    second.key = key
    assert second.run("print(x)") == "1\n"


def test_a_device_is_refused(ground):
    """A4, with a device that every machine has."""
    client = ground.start()
    client.run("from coppice_kernel import refusals; refusals.DEVICES = ('/dev/zero',)")
    assert "/dev/zero" in ground.refusal(client, "f = open('/dev/zero')")


def test_a_stall_is_told(ground):
    """A2: the first cell waits for a thread that does not exist here."""
    client = ground.start()
    client.run("from coppice_kernel import watchdog; watchdog.STALL_S = 0.5; watchdog.STEP_S = 0.1")
    park = ground.park(client, "import _thread; lock = _thread.allocate_lock(); lock.acquire()")
    second = ground.revive(park)
    msg_id = second.send("shell", "execute_request", {"code": "lock.acquire()"})
    while (m := second.receive("iopub"))["header"]["msg_type"] != "stream":
        pass
    assert m["content"]["name"] == "stderr" and "do not come back" in m["content"]["text"]
    ground.gateway.send("signal", line=second.line, signal=2)
    assert second.finish(msg_id)[0]["ename"] == "KeyboardInterrupt"
    assert ground.park(second, "lock.release()")["digest"]


def test_history_is_in_memory(ground):
    """A11: no file of SQLite is open when it forks."""
    client = ground.start()
    assert client.run("print(get_ipython().history_manager.hist_file)") == ":memory:\n"
    client.run("x = 'kept'")
    second = ground.revive(ground.park(client, "y = 1"))
    assert "x = 'kept'" in second.run("%history -n")
