"""The working folder belongs to a node, in real containers: recorded, brought back, never half, and
never removed before it is recorded."""

import concurrent.futures
import contextlib
import json
import pathlib
import random
import signal
import subprocess

import pytest
import requests

import engine
from gateway import Server, wait, within
from test_going_back import checkout, parked
from test_history import clone_url, executions, git, recorded
from test_survival import again, cut, reconnected

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def server(container_engine):
    from conftest import CONFIG

    server = Server("workfiles", "--engine", "docker", "--pool-floor", "0", config=CONFIG).start()
    yield server
    server.stop()


@contextlib.contextmanager
def kernel_of(server):
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        yield kernel_id, c


def ran(server, kernel_id, c, n, code):
    """The n-th cell; it is recorded, and parked. Its node."""
    run = c.run(code)
    assert run.status == "ok", run.text()
    return parked(server, kernel_id, n, f"In[{n}]")


def shown(folder, node, path):
    """A file of a node, as stock git has it; None: it has none of that name."""
    done = subprocess.run(["git", "show", f"{node}:files/{path}"], cwd=folder, check=False,
                          capture_output=True)
    return done.stdout if done.returncode == 0 else None


def cloned(server, kernel_id, folder):
    git("clone", "-q", clone_url(server, kernel_id), folder)
    assert git("fsck", "--strict", cwd=folder).returncode == 0
    return folder


def printed(c, code):
    run = c.run(code, silent=True)
    assert run.status == "ok", run.text()
    return run.stdout


LOOK = "import os; print({n: open(n).read() for n in sorted(os.listdir('.')) if n[0] != '.'})"


def test_a_file_written_over_two_cells_later_is_there_again(server, tmp_path):
    with kernel_of(server) as (kernel_id, c):
        first = ran(server, kernel_id, c, 1, "open('a.csv', 'w').write('one'); x = 1")
        second = ran(server, kernel_id, c, 2, "open('a.csv', 'w').write('two'); x = 2")
        third = ran(server, kernel_id, c, 3,
                    "import os; os.remove('a.csv'); open('b', 'w').write('three'); x = 3")
        told = checkout(server, kernel_id, node="In[1]")
        assert told["report"]["fidelity"] == "exact", told["report"]
        assert printed(c, LOOK) == "{'a.csv': 'one'}\n"
        assert printed(c, "print(x)") == "1\n"
        for node, files in ((second, "{'a.csv': 'two'}\n"), (third, "{'b': 'three'}\n"),
                            (first, "{'a.csv': 'one'}\n")):
            checkout(server, kernel_id, node=node["id"])
            assert printed(c, LOOK) == files
        folder = cloned(server, kernel_id, tmp_path / "story")
        assert [shown(folder, n["id"], "a.csv") for n in (first, second, third)] == \
            [b"one", b"two", None]
        assert shown(folder, third["id"], "b") == b"three"
        # The line that begins here goes on from these files.
        checkout(server, kernel_id, node=first["id"])
        assert c.run("open('c', 'w').write('on')").status == "ok"
        last = executions(recorded(server, kernel_id, 4))[-1]
        assert last["parent"] == first["id"]
        git("fetch", "-q", "origin", cwd=folder)
        assert shown(folder, last["id"], "a.csv") == b"one"
        assert shown(folder, last["id"], "c") == b"on"
        assert shown(folder, last["id"], "b") is None


def test_undo_brings_a_file_back(server):
    with kernel_of(server) as (kernel_id, c):
        ran(server, kernel_id, c, 1, "open('a.csv', 'w').write('one')")
        ran(server, kernel_id, c, 2, "open('a.csv', 'w').write('two')")
        answer = server.post(f"/api/kernels/{kernel_id}/undo", json={})
        assert answer.status_code == 200, answer.text
        assert printed(c, LOOK) == "{'a.csv': 'one'}\n"


def test_an_upload_between_cells_is_a_node_of_its_own(server, tmp_path):
    with kernel_of(server) as (kernel_id, c):
        first = ran(server, kernel_id, c, 1, "open('a.csv', 'w').write('one')")
        second = ran(server, kernel_id, c, 2, "open('a.csv', 'w').write('two')")
        engine.run(server.container_of(kernel_id), "sh", "-c", "printf up > /work/up.csv")
        told = checkout(server, kernel_id, node="In[1]")
        assert told["node"] == first["id"]
        assert printed(c, LOOK) == "{'a.csv': 'one'}\n"
        nodes = server.json(f"/history/{kernel_id}")["nodes"]
        upload = next(n for n in nodes if n["kind"] == "files")
        assert upload["parent"] == second["id"]
        folder = cloned(server, kernel_id, tmp_path / "story")
        assert shown(folder, upload["id"], "up.csv") == b"up"
        assert shown(folder, second["id"], "up.csv") is None
        # So the move can be undone, with what was there and nobody had recorded.
        checkout(server, kernel_id, node=upload["id"])
        assert printed(c, LOOK) == "{'a.csv': 'two', 'up.csv': 'up'}\n"


def test_the_last_cell_of_a_program_that_ends_the_kernel(server, tmp_path):
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("open('result.csv', 'w').write('done')").status == "ok"
        assert server.delete(f"/api/kernels/{kernel_id}").status_code == 204
    node = executions(recorded(server, kernel_id, 1))[-1]
    assert shown(cloned(server, kernel_id, tmp_path / "story"), node["id"], "result.csv") == b"done"


HOSTILE = r"""
import os
os.mkdir(b'.git'); open(b'.git/config', 'w').write('[core]')
os.mkdir(b'.GIT'); open(b'.GIT/x', 'w').write('x')
open(b'git~1', 'w').write('tilde')
open(b'new\nline', 'w').write('newline')
open(b'\xff\xfe not utf-8', 'w').write('bytes')
open(b'a%41', 'w').write('percent')
open('\u202e\u200cname', 'w').write('marks')
open('-rf', 'w').write('dash')
os.symlink('/etc/passwd', 'out'); os.symlink('../../..', 'up')
os.makedirs('empty/below')
open('run.sh', 'w').write('#!/bin/sh'); os.chmod('run.sh', 0o755)
os.mkfifo('fifo')
os.makedirs('d/' * 40); open('d/' * 40 + 'deep', 'w').write('deep')
"""
TREE = r"""
import hashlib, os, stat
def tree():
    found = []
    for folder, dirs, files in os.walk(b'.'):
        for name in sorted(dirs + files):
            path = os.path.join(folder, name); st = os.lstat(path)
            if stat.S_ISFIFO(st.st_mode):
                continue
            what = os.readlink(path) if stat.S_ISLNK(st.st_mode) else (
                b'' if stat.S_ISDIR(st.st_mode) else open(path, 'rb').read())
            found.append((path, stat.S_IFMT(st.st_mode), bool(st.st_mode & 0o100), what))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()
"""


def test_hostile_names_come_back_as_they_were(server, tmp_path):
    with kernel_of(server) as (kernel_id, c):
        ran(server, kernel_id, c, 1, TREE)
        run = c.run(HOSTILE)
        assert run.status == "ok", run.text()
        hostile = parked(server, kernel_id, 2, "In[2]")
        digest = printed(c, "print(tree())")
        ran(server, kernel_id, c, 3, "import shutil\nfor n in os.listdir(b'.'):\n"
            "    shutil.rmtree(n) if os.path.isdir(n) and not os.path.islink(n) else os.remove(n)")
        assert printed(c, "print(tree())") != digest
        checkout(server, kernel_id, node=hostile["id"], accept="partial")
        assert printed(c, "print(tree())") == digest
        folder = cloned(server, kernel_id, tmp_path / "story")
        git("checkout", "-q", hostile["id"], cwd=folder)  # stock git takes all of it
        names = git("ls-tree", "-r", "-z", "--name-only", hostile["id"], "files/",
                    cwd=folder).stdout.split("\0")
        assert not any(part.lower() == ".git" for n in names for part in n.split("/"))


def test_a_large_file_and_one_beyond_the_budget(server):
    with kernel_of(server) as (kernel_id, c):
        ran(server, kernel_id, c, 1,
            "import hashlib, os\n"
            "data = os.urandom(5 << 20); open('big', 'wb').write(data)\n"
            "open('small', 'w').write('one'); digest = hashlib.sha256(data).hexdigest(); del data")
        ran(server, kernel_id, c, 2, "open('big', 'r+b').write(b'x'); os.remove('small')")
        checkout(server, kernel_id, node="In[1]")
        assert printed(c, "print(digest == hashlib.sha256(open('big', 'rb').read()).hexdigest(), "
                          "open('small').read())") == "True one\n"
        run = c.run("with open('huge', 'wb') as f:\n    f.truncate(70 << 20)")
        assert run.status == "ok", run.text()
        huge = parked(server, kernel_id, 3)
        # It is not kept, so no move removes it; and the node where it was says so.
        checkout(server, kernel_id, node="In[1]")
        assert printed(c, "print(os.path.getsize('huge'))") == f"{70 << 20}\n"
        told = checkout(server, kernel_id, 409, node=huge["id"])
        assert [(row["name"], row["kind"]) for row in told["report"]["lost"]] == [("huge", "file")]
        told = checkout(server, kernel_id, node=huge["id"], accept="partial")
        assert told["report"]["fidelity"] == "partial" and "64 MiB" in told["report"]["lost"][0]["reason"]


def test_an_open_file_goes_on_where_it_stood(server):
    with kernel_of(server) as (kernel_id, c):
        ran(server, kernel_id, c, 1,
            "open('lines', 'w').write('one\\ntwo\\nthree\\n'); f = open('lines'); f.readline()\n"
            "log = open('log', 'a'); _ = log.write('first\\n'); log.flush()")
        ran(server, kernel_id, c, 2,
            "f.read(); _ = log.write('second\\n'); log.flush(); open('lines', 'w').write('gone')")
        told = checkout(server, kernel_id, node="In[1]")
        assert told["report"]["fidelity"] == "exact", told["report"]
        assert printed(c, "print(f.readline().strip(), repr(open('log').read()))") == \
            "two 'first\\n'\n"
        assert printed(c, "_ = log.write('again\\n'); log.flush(); print(repr(open('log').read()))") \
            == "'first\\nagain\\n'\n"


def test_without_files_it_is_as_before(docker_server):
    server = docker_server("workfiles-off", "--files=false")
    with kernel_of(server) as (kernel_id, c):
        ran(server, kernel_id, c, 1, "open('a.csv', 'w').write('one'); x = 1")
        ran(server, kernel_id, c, 2, "open('a.csv', 'w').write('two'); x = 2")
        told = checkout(server, kernel_id, 409, node="In[1]")
        assert any("stay as they are" in note for note in told["report"]["notes"])
        assert printed(c, "print(x)") == "2\n"
        told = checkout(server, kernel_id, node="In[1]", accept="partial")
        assert told["report"]["fidelity"] == "partial"
        assert printed(c, "print(x, open('a.csv').read())") == "1 two\n"


VERSION = """
import os
x = {0}
for name in ('a', 'b', 'c'):
    with open(name, 'wb') as f:
        f.write(bytes([{0}]) * (4 << 20))
"""
LAID = "for n in a b c; do test \"$(head -c1 /work/$n | od -An -tu1 | tr -d ' ')\" = 1 || exit 1; done"
SEEN = "print(x, *sorted({(n, open(n, 'rb').read(1)[0], os.path.getsize(n)) for n in 'abc'}))"


def test_a_kill_on_the_way_leaves_one_folder_whole(docker_server):
    """At moments drawn from the whole length of a checkout, as it was measured: what is there
    afterwards is the one or the other, memory and files of the same node. And as soon as the row
    says that it moved: then it has."""
    server = docker_server("workfiles-killed")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        nodes = [ran(server, kernel_id, c, i, VERSION.format(i)) for i in (1, 2)]
        told = checkout(server, kernel_id, node=nodes[0]["id"])
        length = told["duration_ms"] / 1000
    at = random.Random(4)
    row = pathlib.Path(server.data_dir, "kernels", f"{kernel_id}.json")
    for round_ in range(9):
        with reconnected(server, kernel_id, c) as c, \
                concurrent.futures.ThreadPoolExecutor(1) as pool:
            c.info()
            before = printed(c, "print(x)")
            to = nodes[0] if before == "2\n" else nodes[1]
            wait(lambda to=to: server.json(f"/history/{kernel_id}/nodes/{to['id']}"),
                 lambda found: "parked" in found["restorable_by"], within(20))
            asked = pool.submit(requests.post, f"{server.url}/api/kernels/{kernel_id}/checkout",
                                json={"node": to["id"], "accept": "partial"},
                                headers={"Authorization": f"token {server.token}"},
                                timeout=within(60))
            if round_ < 6:
                concurrent.futures.wait([asked], timeout=length * at.random() * 1.2)
            else:
                while not asked.done() and json.loads(row.read_text())["at"] != to["id"]:
                    pass
                assert not asked.done() or asked.result().ok, asked.result().text
            cut(server, signal.SIGKILL)
            with contextlib.suppress(requests.RequestException):
                asked.result()
        again(server)
        with reconnected(server, kernel_id, c) as c:
            c.info()
            seen = printed(c, SEEN).split(maxsplit=1)
            v = seen[0]
            assert round_ < 6 or v == ("1" if to == nodes[0] else "2"), f"round {round_}: {seen}"
            expected = " ".join(str((n, int(v), 4 << 20)) for n in "abc")
            assert seen[1].strip() == expected, f"round {round_}: {seen}"
    server.delete(f"/api/kernels/{kernel_id}")


HELD = """
import os, time
def hold():
    while os.path.exists('/tmp/hold'):
        time.sleep(0.01)
os.register_at_fork(after_in_child=hold)
"""


def test_a_kill_between_the_files_and_the_memory(docker_server):
    """What comes of a park is held up, so the files of a checkout are there and its kernel is not: that is
    where the gateway is killed. Nothing has moved, so the folder is put back."""
    server = docker_server("workfiles-between")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        first = ran(server, kernel_id, c, 1, HELD + VERSION.format(1))
        ran(server, kernel_id, c, 2, VERSION.format(2))
        pid = printed(c, "print(os.getpid())")
        container = server.container_of(kernel_id)
        assert engine.run(container, "touch", "/tmp/hold") == 0
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(requests.post, f"{server.url}/api/kernels/{kernel_id}/checkout",
                                json={"node": first["id"], "accept": "partial"},
                                headers={"Authorization": f"token {server.token}"},
                                timeout=within(60))
            wait(lambda: engine.run(container, "sh", "-c", LAID), lambda code: code == 0, within(8))
            cut(server, signal.SIGKILL)
            with contextlib.suppress(requests.RequestException):
                assert not asked.result().ok
        # It stands until somebody says what it is.
        assert engine.run(container, "sh", "-c", LAID) == 0
        assert engine.run(container, "rm", "/tmp/hold") == 0
    again(server)
    with reconnected(server, kernel_id, c) as c:
        c.info()
        assert printed(c, SEEN) == "2 " + " ".join(str((n, 2, 4 << 20)) for n in "abc") + "\n"
        assert printed(c, "print(os.getpid())") == pid
    server.delete(f"/api/kernels/{kernel_id}")


def test_a_kill_while_contents_travel_loses_no_run(docker_server, tmp_path):
    server = docker_server("workfiles-travel")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("open('big', 'wb').write(bytes(range(256)) * (160 << 10)); x = 1").status == "ok"
        cut(server, signal.SIGKILL)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        c.info()
        assert c.run("open('small', 'w').write('two')").status == "ok"
        history = recorded(server, kernel_id, 2)
        first, second = executions(history)
        assert second["parent"] == first["id"]
        folder = cloned(server, kernel_id, tmp_path / "story")
        assert shown(folder, first["id"], "small") is None
        # Of the first one all or nothing; the second one has it in any case.
        big = shown(folder, second["id"], "big")
        assert big is not None and big.startswith(b"coppice-file 1"), big and big[:80]
        assert shown(folder, second["id"], "small") == b"two"
        meta = json.loads(git("show", f"{second['id']}:runs/00/00/02/meta.json",
                              cwd=folder).stdout)
        assert meta["status"] == "ok"
    server.delete(f"/api/kernels/{kernel_id}")
