"""A pasted secret leaves everything that lies below the data folder."""

import base64
import contextlib
import json
import signal
import subprocess
import threading
import time

import pytest
import requests

from gateway import ALICE, BOB, LOGS, READER, wait, within
from test_history import clone_url, executions, git, recorded
from test_survival import again, cut, reconnected

pytestmark = pytest.mark.timeout(300)

SECRET = "sk-4f1d9c77e0"
PIXELS = "pixels-of-4f1d9c77e0"
# A picture of random pixels, so that it is large; the words are a chunk of it.
CODE = f"""key = '{SECRET}'
from IPython.display import display, Image
import os, struct, zlib
print(key)
def chunk(kind, data):
    body = kind + data
    return struct.pack('>I', len(data)) + body + struct.pack('>I', zlib.crc32(body))
rows = b''.join(b'\\0' + os.urandom(300) for _ in range(40))
words = b'Comment\\0' + ('pixels-of-' + key[3:]).encode()
display(Image(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 100, 40, 8, 2, 0, 0, 0))
              + chunk(b'tEXt', words) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')))
raise ValueError(key)"""


def encoded(word):
    """Its middle as base64, wherever in a picture's bytes it begins."""
    for before in range(3):
        text = base64.b64encode(b"x" * before + word.encode()).decode()
        yield text[4:len(text) - 4]


WORDS = (SECRET, PIXELS, *encoded(SECRET), *encoded(PIXELS))


def found(data_dir, words=WORDS):
    """Where they are: in any byte of any file, in any object of git however it is packed."""
    places = []
    for path in (p for p in data_dir.rglob("*") if p.is_file()):
        data = path.read_bytes()
        places += [f"{path}: {w}" for w in words if w.encode() in data]
    for repository in data_dir.glob("history/*.git"):
        out = subprocess.run(["git", "-C", repository, "-c", "safe.directory=*", "cat-file",
                              "--batch-all-objects", "--batch"], capture_output=True, check=True).stdout
        places += [f"{repository}, an object: {w}" for w in words if w.encode() in out]
    return places


def forget(server, *argv):
    done = subprocess.run([server.argv[0], "forget", *argv, "--data-dir", str(server.data_dir)],
                          capture_output=True, text=True, timeout=within(60), check=False)
    return done


@pytest.fixture
def told(docker_server, request):
    """A gateway of its own, whose kernel ran the cell between two others."""
    server = docker_server(f"forget-{request.node.name.split('[')[0][5:25]}")
    kernel_id = server.start_kernel("python3")
    client = server.open(kernel_id)
    client.info()
    assert client.run("a = 1").status == "ok"
    assert client.run(CODE).status == "error"
    assert client.run("print('after')").status == "ok"
    history = recorded(server, kernel_id, 3)
    places = found(server.data_dir)
    assert all(any(p.endswith(f": {w}") for p in places) for w in (SECRET, PIXELS))
    assert any(p.endswith(f": {w}") for p in places for w in encoded(PIXELS))
    yield server, kernel_id, client, history
    client.close()


def test_no_byte_of_it_is_left(told, tmp_path):
    server, kernel_id, client, history = told
    _, secret, last = executions(history)
    done = forget(server, "--history", kernel_id, secret["id"][:10])
    assert done.returncode == 0, done.stderr
    assert secret["id"][:12] in done.stdout and last["id"][:12] in done.stdout
    assert SECRET not in done.stdout
    assert found(server.data_dir) == []
    now = executions(server.json(f"/history/{kernel_id}"))
    assert [n["summary"] for n in now] == ["a = 1", "(forgotten)", "print('after')"]
    assert [n["execution_count"] for n in now] == [1, 2, 3]
    assert all(n["parent"] == b["id"] for n, b in zip(now[1:], now))
    assert server.model(kernel_id)["node"] == now[-1]["id"] != last["id"]
    node = server.json(f"/history/{kernel_id}/nodes/In[2]")
    assert node["id"] == now[1]["id"] and node["outputs"] == []
    assert node["code"] == "# forgotten\n" and "error" not in node
    assert server.json(f"/history/{kernel_id}/nodes/{last['id']}")["id"] == now[-1]["id"]
    git("clone", "-q", clone_url(server, kernel_id), tmp_path / "story")
    git("fsck", "--strict", cwd=tmp_path / "story")
    assert SECRET not in git("log", "-p", cwd=tmp_path / "story").stdout
    # What comes next goes on from there.
    assert client.run("1 + 1").status == "ok"
    now = executions(recorded(server, kernel_id, 4))
    assert now[-1]["parent"] == now[-2]["id"] and now[-1]["branches"] == ["main"]


def test_a_page_that_comes_back_is_not_told(told):
    server, kernel_id, client, history = told
    # It left before it read anything of the cell.
    away = server.open(kernel_id, session="away")
    away.info()
    away.close()
    assert client.run(CODE).status == "error"
    node = executions(recorded(server, kernel_id, 4))[-1]
    assert server.post(f"/history/{kernel_id}/forget", json={"node": node["id"]}).status_code == 200
    with server.open(kernel_id, session="away") as back:
        seen = back.run("'here'")
        assert seen.status == "ok"
        assert all(SECRET.encode() not in m.raw for m in back.messages)
        shown = [m for m in back.messages if m.type == "execute_input"]
        assert [m.content["code"] for m in shown] == ["", "'here'"]


def test_after_packing_and_a_kill(told):
    server, kernel_id, client, history = told
    secret = executions(history)[1]
    subprocess.run(["git", "-C", server.data_dir / "history" / f"{kernel_id}.git", "-c",
                    "safe.directory=*", "repack", "-a", "-d", "-q"], check=True)
    answer = server.post(f"/history/{kernel_id}/forget", json={"node": secret["id"]})
    assert answer.status_code == 200
    pairs = {p["old"]: p["new"] for p in answer.json()["rewritten"]}
    assert found(server.data_dir) == []
    cut(server, signal.SIGKILL)
    again(server)
    assert found(server.data_dir) == []
    with reconnected(server, kernel_id, client) as c:
        assert c.run("a").status == "ok"
    now = executions(recorded(server, kernel_id, 4))
    assert now[1]["id"] == pairs[secret["id"]] and now[-1]["summary"] == "a"
    assert found(server.data_dir) == []


def test_what_a_gateway_had_not_finished_the_next_one_does(told):
    server, kernel_id, client, history = told
    secret = executions(history)[1]
    cut(server, signal.SIGKILL)
    repository = server.data_dir / "history" / f"{kernel_id}.git"
    (repository / f"coppice-forget.{secret['id']}").touch()
    again(server)
    wait(lambda: list(repository.glob("coppice-forget.*")), lambda left: not left, within(20))
    assert found(server.data_dir) == []
    now = executions(server.json(f"/history/{kernel_id}"))
    assert [n["summary"] for n in now] == ["a = 1", "(forgotten)", "print('after')"]


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_killed_on_the_way(told, after):
    """Whenever it is: the node is there whole, or the next gateway has finished it."""
    server, kernel_id, client, history = told
    secret = executions(history)[1]

    def ask():
        with contextlib.suppress(requests.RequestException):
            requests.post(f"{server.url}/history/{kernel_id}/forget", json={"node": secret["id"]},
                          headers={"Authorization": f"token {ALICE}"}, timeout=within(20))

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(after)  # no more than a choice of the moment
    cut(server, signal.SIGKILL)
    asking.join()
    repository = server.data_dir / "history" / f"{kernel_id}.git"
    asked = list(repository.glob("coppice-forget.*"))
    again(server)
    wait(lambda: list(repository.glob("coppice-forget.*")), lambda left: not left, within(20))
    now = executions(server.json(f"/history/{kernel_id}"))
    if not asked and now[1]["id"] == secret["id"]:
        assert server.json(f"/history/{kernel_id}/nodes/{secret['id']}")["code"] == CODE
        path = f"/history/{kernel_id}/forget"
        assert server.post(path, json={"node": secret["id"]}).status_code == 200
    assert found(server.data_dir) == []
    with reconnected(server, kernel_id, client) as c:
        assert c.run("a").status == "ok"
    now = executions(recorded(server, kernel_id, 4))
    assert [n["summary"] for n in now] == ["a = 1", "(forgotten)", "print('after')", "a"]
    git("fsck", "--strict", "--no-dangling", cwd=repository)


# It says it whenever the test lets it, long after its cell.
LATE = f"""import threading
go, gone = threading.Event(), threading.Event()
def late():
    for _ in range(2):
        go.wait(600), go.clear()
        for n in range(200):
            print('late', '{SECRET}', n, flush=True)
        gone.set()
threading.Thread(target=late).start()"""


def test_what_its_thread_says_afterwards_is_not_kept(docker_server):
    """Neither by this gateway nor by the next one, and not among another cell's outputs."""
    server = docker_server("forget-late")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        run = c.run(LATE)
        assert run.status == "ok"
        history = recorded(server, kernel_id, 1)
        (node,) = executions(history)
        assert found(server.data_dir)
        answer = server.post(f"/history/{kernel_id}/forget", json={"node": node["id"]})
        assert answer.status_code == 200
        assert found(server.data_dir) == []
        assert c.run("go.set(), gone.wait(60)").status == "ok"
        assert c.run("gone.clear()").status == "ok"
        assert SECRET not in run.stdout
    recorded(server, kernel_id, 3)
    assert found(server.data_dir) == []
    cut(server, signal.SIGKILL)
    assert found(server.data_dir) == []
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert c.run("go.set(), gone.wait(60)").status == "ok"
        assert c.run("'last'").status == "ok"
    history = recorded(server, kernel_id, 5)
    assert [n["summary"] for n in executions(history)] == [
        "(forgotten)", "go.set(), gone.wait(60)", "gone.clear()", "go.set(), gone.wait(60)", "'last'"]
    assert found(server.data_dir) == []


def test_who_may_and_what_can(told):
    server, kernel_id, _, history = told
    nodes = executions(history)
    path, root = f"/history/{kernel_id}/forget", nodes[0]["parent"]
    body = {"node": nodes[1]["id"]}
    assert server.post(path, json=body, token=BOB).status_code == 404
    assert server.post(path, json=body, token=READER).status_code == 403
    assert server.post(path, json=body, token=None).status_code == 401
    assert server.post(path, json={}).status_code == 400
    assert server.post(path, json={"node": root}).status_code == 400
    assert server.post(path, json={"node": "f" * 12}).status_code == 404
    assert forget(server).returncode == 2
    done = forget(server, "--history", kernel_id, root)
    assert done.returncode == 1 and "root" in done.stderr
    # How they can come back changes by itself: parks come and go.
    left = executions(server.json(f"/history/{kernel_id}"))
    assert [(n["id"], n["summary"]) for n in left] == [(n["id"], n["summary"]) for n in nodes]
    log = (LOGS / f"{server.name}.log")
    assert not log.exists() or SECRET not in log.read_text()


def test_a_conversation_loses_it(told):
    server, _, _, _ = told
    chat = server.post("/chat/conversations", json={"title": "t"}).json()["id"]
    record = server.post(f"/chat/conversations/{chat}/executions", json={"code": f"k = '{SECRET}'\nk"},
                         timeout=within(60)).json()
    assert SECRET in json.dumps(record)
    kernel_id = server.json(f"/chat/conversations/{chat}")["kernel_id"]
    node = executions(recorded(server, kernel_id, 1))[0]
    later = server.post(f"/chat/conversations/{chat}/executions", json={"code": "1 + 1"},
                        timeout=within(60)).json()["id"]
    was = wait(lambda: server.json(f"/chat/records/{later}")["node"], bool, within(20))
    answer = server.post(f"/history/{kernel_id}/forget", json={"node": node["id"]})
    assert answer.status_code == 200
    assert SECRET not in server.get(f"/chat/conversations/{chat}").text
    renamed = {pair["old"]: pair["new"] for pair in answer.json()["rewritten"]}
    assert server.json(f"/chat/records/{later}")["node"] == renamed[was] != was
    assert server.json(f"/chat/records/{record['id']}")["node"] == renamed[node["id"]]
    assert [p for p in found(server.data_dir) if "chat" in p or kernel_id in p] == []
