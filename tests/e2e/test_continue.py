"""A history outlives its kernel, and another kernel goes on in it."""

import signal
import uuid

import pytest

from gateway import ALICE, BOB, wait, within
from test_history import clone_url, executions, git, recorded
from test_survival import again, cut, reconnected

pytestmark = pytest.mark.timeout(300)
NAME = "KERNEL_COPPICE_HISTORY"


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


def run_in(server, history, code, token=True, **options):
    """Runs a cell in a kernel of its own; the id of the history that it went to."""
    with server.kernel("python3", env={NAME: history}, token=token) as kernel_id:
        with server.open(kernel_id, token=token) as c:
            c.info()
            assert c.run(code).status == "ok"
        return wait(lambda: server.json(f"/api/kernels/{kernel_id}", token=token),
                    lambda m: m["node"], within(20))["history_id"]


def test_by_name_and_by_id(server, tmp_path):
    name = f"walk {uuid.uuid4()}"
    first = run_in(server, name, "one = 1")
    assert run_in(server, name, "two = 2") == first
    assert run_in(server, first, "three = 3") == first
    history = server.json(f"/history/{first}")
    assert history["name"] == name
    assert [n["summary"] for n in executions(history)] == ["one = 1", "two = 2", "three = 3"]
    # Each kernel's memory was empty: a line of its own from the root.
    assert {b["name"] for b in history["branches"]} == {"main", "main.2", "main.3"}
    root = history["nodes"][-1]["id"]
    assert all(n["parent"] == root for n in executions(history))
    git("clone", "-q", clone_url(server, first), tmp_path / "story")


def test_a_kernel_s_id_leads_to_where_it_is(server, tmp_path):
    """It has no history of its own id: its cells are in another."""
    name = f"walk {uuid.uuid4()}"
    first = run_in(server, name, "one = 1")
    with server.kernel("python3", env={NAME: name}) as kernel_id:
        with server.open(kernel_id) as c:
            c.info()
            assert c.run("two = 2").status == "ok"
        recorded(server, first, 2)
        assert server.json(f"/history/{kernel_id}")["id"] == first
        assert server.json(f"/history/{kernel_id}/nodes/HEAD")["code"] == "two = 2"
        git("clone", "-q", clone_url(server, kernel_id), tmp_path / "story")
        assert server.get(f"/history/{kernel_id}", token=BOB).status_code == 404
    # What is to go is named itself.
    assert server.delete(f"/history/{kernel_id}").status_code == 404
    assert len(executions(server.json(f"/history/{first}"))) == 2


def test_another_owner_s_is_not_found(server):
    name = f"walk {uuid.uuid4()}"
    mine = run_in(server, name, "mine = 1", token=ALICE)
    for called in (name, mine):
        assert run_in(server, called, "theirs = 1", token=BOB) != mine
    assert len(executions(server.json(f"/history/{mine}"))) == 1


@pytest.mark.parametrize("name", ["a\nb", "x" * 300])
def test_a_name_that_is_none(server, name):
    r = server.post("/api/kernels", json={"name": "python3", "env": {NAME: name}})
    assert r.status_code == 400 and "history" in r.json()["message"]


def test_it_is_not_removed_under_a_kernel_that_goes_on_in_it(server):
    first = run_in(server, "", "one = 1")
    wait(lambda: server.get(f"/api/kernels/{first}").status_code, lambda s: s == 404, within(20))
    with server.kernel("python3", env={NAME: first}) as kernel_id:
        with server.open(kernel_id) as c:
            c.info()
            for code in ("two = 2", "three = two"):
                busy = server.delete(f"/history/{first}")
                assert (busy.status_code, busy.json()["reason"]) == (409, "busy"), busy.text
                assert c.run(code).status == "ok"
        assert [n["summary"] for n in executions(recorded(server, first, 3))] == [
            "one = 1", "two = 2", "three = two"]
    gone = wait(lambda: server.delete(f"/history/{first}"), lambda r: r.status_code != 409,
                within(20))
    assert gone.status_code == 200, gone.text


def test_through_a_kill(docker_server):
    server = docker_server("continue")
    kernel_id = server.start_kernel("python3", env={NAME: "walk"})
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("a = 1").status == "ok"
        cut(server, signal.SIGKILL)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert c.run("b = a").status == "ok"
    history = recorded(server, "walk", 2)
    assert [n["summary"] for n in executions(history)] == ["a = 1", "b = a"]
    assert [b["name"] for b in history["branches"]] == ["main"]


@pytest.mark.parametrize("there", [False, True], ids=["new", "existing"])
def test_case_52_two_lines_of_one_history_at_once(server, tmp_path, there):
    """20 commits, 10 on each branch, each in its order, no run without one."""
    name = f"walk {uuid.uuid4()}"
    if there:
        run_in(server, name, "zero = 0")
    with server.kernel("python3", env={NAME: name}) as one, \
            server.kernel("python3", env={NAME: name}) as two, \
            server.open(one) as a, server.open(two) as b:
        a.info(), b.info()
        runs = [(c, c.execute(f"{letter}{i} = {i}")) for i in range(10)
                for letter, c in (("a", a), ("b", b))]
        assert all(c.collect(r, within(60)).status == "ok" for c, r in runs)
        history = recorded(server, name, 20 + there)
        for k in (one, two):  # the kernel hears of it a moment later
            wait(lambda k=k: server.model(k)["history_id"], lambda h: h == history["id"], within(20))
    assert len(executions(history)) == 20 + there
    for node in executions(history):  # what says that it is a commit is one, of that code
        whole = server.json(f"/history/{history['id']}/nodes/{node['id']}")
        assert whole["code"].startswith(node["summary"])
    story = tmp_path / "story"
    git("clone", "-q", clone_url(server, history["id"]), story)
    git("fsck", "--strict", cwd=story)
    lines = [git("log", "--reverse", "--format=%s", f"origin/{b['name']}", cwd=story).stdout
             for b in history["branches"]]
    found = sorted([w for w in text.split() if w[:1] in "ab" and w[1:].isdigit()] for text in lines)
    expected = [[f"{letter}{i}" for i in range(10)] for letter in "ab"]
    assert found == ([[]] if there else []) + expected, lines
