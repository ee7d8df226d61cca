"""Every execution is a commit: told by the gateway, and by stock git."""

import json
import os
import signal
import subprocess

import pytest

from gateway import ALICE, BOB, wait, within
from test_survival import again, cut, reconnected

pytestmark = pytest.mark.timeout(300)


def git(*argv, cwd=None, check=True):
    """git as a person has it, without their settings."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": "1",
           "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    done = subprocess.run(["git", *map(str, argv)], cwd=cwd, env=env, capture_output=True, text=True,
                          timeout=within(60), check=False)
    assert not check or done.returncode == 0, f"git {argv}: {done.stderr}"
    return done


def clone_url(server, history, token=ALICE):
    return f"{server.url.replace('://', f'://any:{token}@')}/history/{history}.git"


def recorded(server, kernel_id, count):
    """Waits until that many executions of the history are commits; the history."""
    return wait(lambda: server.get(f"/history/{kernel_id}").json(),
                lambda h: sum(n["kind"] == "execution" for n in h.get("nodes", ())) >= count,
                within(20))


def executions(history):
    """Oldest first."""
    return [n for n in reversed(history["nodes"]) if n["kind"] == "execution"]


CELLS = ("x = 6 * 7\nx", "print('eins')\nimport sys\nprint('zwei', file=sys.stderr)", "1/0",
         "from IPython.display import HTML, display\ndisplay(HTML('<b>fett</b>'))")


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


@pytest.fixture
def told(server, kernel):
    """A kernel that ran CELLS, and its history."""
    with server.open(kernel) as c:
        c.info()
        for code in CELLS:
            c.run(code)
    return kernel, recorded(server, kernel, len(CELLS))


def test_what_was_seen_is_what_is_kept(server, told):
    kernel_id, history = told
    nodes = executions(history)
    assert [n["status"] for n in nodes] == ["ok", "ok", "error", "ok"]
    assert [n["execution_count"] for n in nodes] == [1, 2, 3, 4]
    assert [n["summary"] for n in nodes] == [c.split("\n")[0] for c in CELLS]
    assert all(n["parent"] == b["id"] for n, b in zip(nodes[1:], nodes))
    assert nodes[2]["error"]["ename"] == "ZeroDivisionError"
    first, second, third, fourth = (
        server.json(f"/history/{kernel_id}/nodes/{n['id']}") for n in nodes)
    assert first["code"] == CELLS[0]
    assert first["outputs"][0]["data"]["text/plain"] in ("42", ["42"])
    assert {o["name"]: "".join(o["text"]) for o in second["outputs"]} == {
        "stdout": "eins\n", "stderr": "zwei\n"}
    assert third["outputs"][0]["output_type"] == "error"
    assert "".join(fourth["outputs"][0]["data"]["text/html"]) == "<b>fett</b>"
    assert server.model(kernel_id)["node"] == nodes[-1]["id"]
    assert server.model(kernel_id)["branch"] == "main"


def test_stock_git_tells_the_story(server, told, tmp_path):
    kernel_id, history = told
    git("clone", "-q", clone_url(server, kernel_id), tmp_path / "story")
    story = tmp_path / "story"
    git("fsck", "--strict", cwd=story)
    subjects = git("log", "--format=%s", cwd=story).stdout.split("\n")[:-1]
    assert subjects[:4] == [c.split("\n")[0] for c in reversed(CELLS)]
    shown = git("show", "HEAD~1", cwd=story).stdout
    assert "+1/0" in shown and "Coppice-Status: error" in shown and "ZeroDivisionError" in shown
    assert git("log", "-1", "--format=%H", cwd=story).stdout.strip() == executions(history)[-1]["id"]
    (outputs,) = [p for p in (story / "runs").rglob("outputs.json")][-1:]
    assert isinstance(json.loads(outputs.read_text()), list)


@pytest.mark.parametrize("token", [BOB, "wrong-secret-of-nobody"])
def test_nobody_else_can_clone(server, told, tmp_path, token):
    kernel_id, _ = told
    done = git("clone", "-q", clone_url(server, kernel_id, token), tmp_path / "no", check=False)
    assert done.returncode != 0 and not (tmp_path / "no" / ".git").exists()
    status = 404 if token == BOB else 401
    assert server.get(f"/history/{kernel_id}", token=token).status_code == status
    assert kernel_id not in server.get("/history", token=BOB).text


def test_nothing_can_be_pushed(server, told, tmp_path):
    kernel_id, _ = told
    git("clone", "-q", clone_url(server, kernel_id), tmp_path / "mine")
    done = git("push", clone_url(server, kernel_id), "HEAD:refs/heads/other",
               cwd=tmp_path / "mine", check=False)
    assert done.returncode != 0
    assert "other" not in [b["name"] for b in server.json(f"/history/{kernel_id}")["branches"]]


def test_a_restart_begins_a_line_at_the_root(server, told):
    kernel_id, history = told
    root = history["nodes"][-1]["id"]
    assert server.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("y = 1").status == "ok"
    history = recorded(server, kernel_id, len(CELLS) + 1)
    newest = history["nodes"][0]
    assert newest["parent"] == root and newest["branches"] == ["main.2"]
    assert {b["name"] for b in history["branches"]} == {"main", "main.2"}


def test_silent_ones_are_kept_and_hidden(server, kernel):
    with server.open(kernel) as c:
        c.info()
        c.run("1")
        c.run("2", silent=True)
        c.run("3")
    recorded(server, kernel, 2)
    whole = wait(lambda: server.json(f"/history/{kernel}?silent=true"),
                 lambda h: len(executions(h)) == 3, within(20))
    assert [n["summary"] for n in executions(whole)] == ["1", "2", "3"]
    assert [n["summary"] for n in executions(server.json(f"/history/{kernel}"))] == ["1", "3"]


def test_a_history_outlives_its_kernel(server, tmp_path):
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        assert c.run("'kept'").status == "ok"
    history = recorded(server, kernel_id, 1)
    assert history["nodes"][0]["summary"] == "'kept'"
    git("clone", "-q", clone_url(server, kernel_id), tmp_path / "kept")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_each_once_through_a_gateway_s_end(docker_server, how):
    server = docker_server(f"history-{how.name}")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        for i in range(20):
            assert c.run(f"n = {i}").status == "ok"
        run = c.execute("import time\nfor i in range(30):\n    print(i)\n    time.sleep(0.05)")
        c.until_text("3", run)
        cut(server, how)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert c.collect(run, within(20)).status == "ok"
        assert c.run("n").status == "ok"
    history = recorded(server, kernel_id, 22)
    assert [n["summary"] for n in executions(history)] == [
        *(f"n = {i}" for i in range(20)), "import time", "n"]
    node = server.json(f"/history/{kernel_id}/nodes/{executions(history)[20]['id']}")
    assert "".join(node["outputs"][0]["text"]) == "".join(f"{i}\n" for i in range(30))


def test_a_burst_is_each_once_through_a_kill(docker_server):
    """The recorder waits for a pause in it; what waits then is recorded by the next gateway."""
    server = docker_server("history-burst")
    kernel_id, count = server.start_kernel("python3"), 150
    with server.open(kernel_id) as c:
        c.info()
        for i in range(count):
            assert c.run(f"n = {i}").status == "ok"
        cut(server, signal.SIGKILL)
    again(server)
    history = wait(lambda: server.json(f"/history/{kernel_id}?limit=1000"),
                   lambda h: len(executions(h)) >= count, within(20))
    assert [n["summary"] for n in executions(history)] == [f"n = {i}" for i in range(count)]
    repository = server.data_dir / "history" / f"{kernel_id}.git"
    assert git("fsck", "--strict", "--no-dangling", cwd=repository).stdout == ""
    assert git("rev-list", "--count", "main", cwd=repository).stdout == f"{count + 1}\n"


def test_log_draws_it(server, told):
    kernel_id, _ = told
    binary = server.argv[0]
    done = subprocess.run([binary, "log", kernel_id, "--data-dir", str(server.data_dir)],
                          capture_output=True, text=True, timeout=within(30), check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[1].startswith("* ") and "(main)" in lines[1] and "[4]" in lines[1]
    assert any("error: 1/0" in line for line in lines)
