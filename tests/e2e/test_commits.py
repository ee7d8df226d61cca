"""After every kind of run there is exactly one right commit, and what is read back is what was seen."""

import subprocess
from collections import Counter

import pytest

from conftest import CONFIG
from gateway import Server, wait, within
from test_history import clone_url, executions, git, recorded

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


def text_of(outputs, name):
    return "".join("".join(o["text"]) for o in outputs
                   if o["output_type"] == "stream" and o["name"] == name)


def assert_told_right(server, kernel_id, runs, tmp_path):
    """`runs` is [(code, what the client saw, the node's status)]: each is one node and one commit, and
    they are in that order on their lines."""
    wait(lambda: server.json(f"/history/{kernel_id}?silent=true"),
         lambda h: len(executions(h)) >= len(runs), within(20))
    history = server.json(f"/history/{kernel_id}?silent=true&limit=1000")
    nodes = [server.json(f"/history/{kernel_id}/nodes/{n['id']}") for n in executions(history)]
    assert Counter(n["code"] for n in nodes) == Counter(code for code, _, _ in runs)
    story = tmp_path / "story"
    git("clone", "-q", clone_url(server, kernel_id), story)
    git("fsck", "--strict", cwd=story)
    subjects = git("log", "--format=%s", "--all", cwd=story).stdout.split("\n")[:-1]
    assert Counter(subjects) == Counter([*(code.split("\n")[0] for code, _, _ in runs), "Begin"])
    for node in nodes:
        ((_, run, status),) = [r for r in runs if r[0] == node["code"]]
        assert node["status"] == status, node
        assert text_of(node["outputs"], "stdout") == run.stdout
        if status != "died":  # of which the gateway says why
            assert text_of(node["outputs"], "stderr") == run.stderr
        shown = [o["data"]["text/plain"] for o in node["outputs"] if "data" in o]
        assert ["".join(s) for s in shown] == [
            m.content["data"]["text/plain"] for m in run.iopub("execute_result")]
        assert [o["ename"] for o in node["outputs"] if o["output_type"] == "error"] == [
            m.content["ename"] for m in run.iopub("error")]
        assert node["msg_id"] == run.msg_id
        git("cat-file", "-e", node["id"], cwd=story)
    return nodes


def test_each_kind_of_end(server, kernel, tmp_path):
    runs = []
    with server.open(kernel) as c:
        c.info()

        def run(code, status, **options):
            done = c.run(code, **options)
            runs.append((code, done, status))
            return done

        run("print('fine')\n6 * 7", "ok")
        run("print('bad')\n1 / 0", "error")
        code = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
        msg_id = c.execute(code)
        c.until_text("begun", msg_id)
        assert server.post(f"/api/kernels/{kernel}/interrupt").status_code == 204
        runs.append((code, c.collect(msg_id, within(20)), "error"))
        assert runs[-1][1].iopub("error")[0].content["ename"] == "KeyboardInterrupt"
        first, held = c.execute("print('first')\nraise ValueError('x')"), c.execute("'held'")
        runs.append(("print('first')\nraise ValueError('x')", c.collect(first), "error"))
        runs.append(("'held'", c.collect(held), "aborted"))
        run("print('seen by nobody')", "ok", silent=True)
        run("print('not in the history')\n'so'", "ok", store_history=False)
        code = "import os\nprint('dies', flush=True)\nimport time; time.sleep(.3)\nos.kill(os.getpid(), 9)"
        runs.append((code, c.run(code, within(30)), "died"))
        server.wait_state(kernel, "idle", within(20))
        run("'of the next process'", "ok")
    nodes = assert_told_right(server, kernel, runs, tmp_path)
    by_code = {n["code"]: n for n in nodes}
    assert by_code["print('seen by nobody')"]["silent"] is True
    assert by_code["'of the next process'"]["branches"] == ["main.2"]
    root = server.json(f"/history/{kernel}")["nodes"][-1]["id"]
    assert by_code["'of the next process'"]["parent"] == root
    chain = [n for n in nodes if n["code"] != "'of the next process'"]
    assert all(n["parent"] == b["id"] for n, b in zip(chain[1:], chain))
    assert [n["code"] for n in chain] == [code for code, _, _ in runs[:-1]]


def test_two_clients_at_once(server, kernel, tmp_path):
    with server.open(kernel) as c, server.open(kernel, "v1") as d:
        c.info(), d.info()
        asked = []
        for n in range(10):
            for client, who in ((c, "c"), (d, "d")):
                code = f"print('{who}', {n})\n'{who}{n}'"
                asked.append((client, code, client.execute(code)))
        runs = [(code, client.collect(m, within(30)), "ok") for client, code, m in asked]
    nodes = assert_told_right(server, kernel, runs, tmp_path)
    assert all(n["parent"] == b["id"] for n, b in zip(nodes[1:], nodes))
    assert {b["name"] for b in server.json(f"/history/{kernel}")["branches"]} == {"main"}


def test_subshells(server, tmp_path):
    """Cells that run beside each other are one line, in the order in which they ended."""
    with server.kernel("newest") as kernel_id, server.open(kernel_id, "v1") as c:
        c.info()
        subshell = c.ask("create_subshell_request", channel="control").reply.content["subshell_id"]
        long = "import threading\ngo = threading.Event(); print('on', flush=True)\nprint(go.wait(60))"
        main = c.execute(long)
        c.until_text("on", main)
        beside = "go.set(); print('beside')\n'done'"
        side = c.collect(c.execute(beside, header={"subshell_id": subshell}), within(20))
        runs = [(beside, side, "ok"), (long, c.collect(main, within(20)), "ok")]
        runs.append(("'after'", c.run("'after'"), "ok"))
        nodes = assert_told_right(server, kernel_id, runs, tmp_path)
        assert all(n["parent"] == b["id"] for n, b in zip(nodes[1:], nodes))


class SmallDisk:
    """The folder of a gateway's histories is a file system of its own."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.folder.mkdir(mode=0o700)
        self._mount("-t", "tmpfs", "-o", "size=700k,mode=700", "none")
        return self

    def _mount(self, *argv):
        subprocess.run(["mount", *argv, str(self.folder)], check=True)  # needs root, as the engine does

    def grow(self):
        self._mount("-o", "remount,size=64m")

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


def test_a_full_disk(container_engine, tmp_path):
    """The result is there, the kernel's model says why the commit is not, and it follows when there is
    room: each once, in order."""
    server = Server("commits-full-disk", "--engine", "docker", "--pool-floor", "0", config=CONFIG)
    with SmallDisk(server.data_dir / "history") as disk, server:
        with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
            c.info()
            runs = []
            for n in range(12):
                code = f"import os, base64\nprint({n}, base64.b64encode(os.urandom(60000)).decode())"
                runs.append((code, c.run(code), "ok"))
                assert runs[-1][1].status == "ok" and len(runs[-1][1].stdout) > 80000
            why = wait(lambda: server.model(kernel_id).get("not_recorded"), bool, within(20))
            assert "space" in why or "full" in why, why
            assert len(executions(server.json(f"/history/{kernel_id}"))) < len(runs)
            disk.grow()
            runs.append(("'after'", c.run("'after'"), "ok"))
            wait(lambda: server.model(kernel_id).get("not_recorded"), lambda w: not w, within(30))
            nodes = assert_told_right(server, kernel_id, runs, tmp_path)
            assert all(n["parent"] == b["id"] for n, b in zip(nodes[1:], nodes))
            assert [n["code"] for n in nodes] == [code for code, _, _ in runs]
