"""%coppice in a cell: the kernel's own history, drawn as text and as HTML."""

import re
import signal
import uuid

import pytest

from gateway import wait, within
from test_forget import SECRET, found
from test_history import executions, recorded
from test_survival import again, cut, reconnected

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


@pytest.fixture(params=["python3", "newest"])
def talk(request, server):
    """(kernel, client) of either ipykernel."""
    with server.kernel(request.param) as kernel_id, server.open(kernel_id) as c:
        c.info()
        yield kernel_id, c


def drawn(run):
    """The one display of a run, and that it was fine."""
    assert run.status == "ok", run
    (shown,) = run.iopub("display_data")
    return shown.content["data"]


def test_log_show_and_status(server, talk):
    kernel_id, c = talk
    assert c.run("x = 6 * 7\nprint('<b>')\nx").status == "ok"
    assert c.run("1/0").status == "error"
    log = drawn(c.run("%coppice log"))
    lines = log["text/plain"].split("\n")
    assert lines[0].startswith("History ") and len(lines) == 4
    assert "[2] (main) error: 1/0" in lines[1] and "[1] x = 6 * 7" in lines[2]
    assert lines[3].endswith("begin")
    assert "<table" in log["text/html"] and "1/0" in log["text/html"]
    wait(lambda: server.get(f"/history/{kernel_id}/nodes/HEAD").json(),
         lambda n: n.get("variables") is not None, within(20))
    last = drawn(c.run("%coppice show 3"))["text/plain"]
    assert "%coppice log" in last and "x: int" in last
    first = drawn(c.run("%coppice show 1"))
    assert "    x = 6 * 7" in first["text/plain"] and "42" in first["text/plain"]
    assert "&lt;b&gt;" in first["text/html"] and "<b>" not in first["text/html"].replace("<br>", "")
    named = re.search("node +([0-9a-f]{40})", first["text/plain"])[1]
    # Whole: eight digits of it may be digits alone, which is a count.
    assert named in drawn(c.run(f"%coppice show {named}"))["text/plain"]
    status = drawn(c.run("%coppice status"))["text/plain"]
    assert kernel_id in status and re.search("branch +main", status)


@pytest.mark.parametrize(("line", "words"), [
    ("%coppice shwo 4", "there is log, show, status, use, checkout, undo, branch, release and forget"),
    ("%coppice show", "takes one node"),
    ("%coppice show nowhere", "nowhere"),
    ("%coppice show 99", "99"),
    ("%coppice log 7", "takes nothing more"),
    ("%coppice forget", "takes one node"),
    ("%coppice forget 99", "99"),
    ("%coppice show 'a", "quotation"),
])
def test_wrong_words_are_a_clear_error(client, line, words):
    assert client.run("1").status == "ok"
    run = client.run(line)
    assert run.status == "error"
    assert run.reply.content["ename"] == "UsageError"
    said = run.stderr + "".join(m.content["evalue"] for m in run.iopub("error"))
    assert words.lower() in said.lower() and "Traceback" not in said


def test_before_anything_is_recorded(client):
    run = client.run("%coppice log")
    assert run.status == "error" and "in this history yet: run a cell first" in run.stderr
    assert client.run("%coppice log").status == "ok"  # now that cell is


def test_use_goes_on_in_another_history(server, talk):
    kernel_id, c = talk
    name = f"walk {uuid.uuid4()}"
    assert c.run("before = 1").status == "ok"
    run = c.execute(f"%coppice use '{name}'")
    after = c.execute("after = before")  # held meanwhile
    assert c.collect(run, within(30)).status == "ok" and c.collect(after, within(30)).status == "ok"
    assert [n["summary"] for n in executions(recorded(server, name, 1))] == ["after = before"]
    assert "after = before" in drawn(c.run("%coppice log"))["text/plain"]
    # The one that it left has a HEAD, as whoever looks there expects.
    left = server.json(f"/history/{kernel_id}/nodes/HEAD")
    assert left["summary"] == f"%coppice use '{name}'"
    assert server.get(f"/history/{kernel_id}/export").status_code == 200
    (row,) = [h for h in server.json("/history")["histories"] if h["id"] == kernel_id]
    assert row["head"] == left["id"]


@pytest.mark.parametrize("name", ["python3", "newest"])
def test_forget(docker_server, name):
    """Carried out while the cell runs, and before the next one, which is held."""
    server = docker_server(f"magic-forget-{name}")
    kernel_id = server.start_kernel(name)
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("a = 1").status == "ok"
        assert c.run(f"key = '{SECRET}'\nprint(key)").status == "ok"
        assert c.run("b = 2").status == "ok"
        before = executions(recorded(server, kernel_id, 3))
        assert found(server.data_dir)
        run = c.execute("%coppice forget 2")
        after = c.execute("c = a + b")
        shown = drawn(c.collect(run, within(60)))
        assert c.collect(after, within(30)).status == "ok"
        assert found(server.data_dir) == []
        now = executions(recorded(server, kernel_id, 5))
        assert [n["summary"] for n in now] == [
            "a = 1", "(forgotten)", "b = 2", "%coppice forget 2", "c = a + b"]
        assert all(n["parent"] == b["id"] for n, b in zip(now[1:], now))
        for old, new in zip(before[1:], now[1:]):
            assert f"{old['id'][:8]} -> {new['id'][:8]}" in shown["text/plain"]
            assert old["id"][:8] in shown["text/html"]
        assert SECRET not in shown["text/plain"] + shown["text/html"]
        assert "change it" in shown["text/plain"]
        twice = c.run("%coppice forget 2")
        assert twice.status == "error" and "forgotten before" in twice.stderr
        # The cell itself is not there yet: it can be forgotten by a later one.
        itself = c.run("%coppice forget 7")
        assert itself.status == "error" and "7" in itself.stderr
        assert "(forgotten)" in drawn(c.run("%coppice log"))["text/plain"]


def test_of_a_large_output_the_rest_is_shown(server, client, kernel):
    assert client.run("print('x' * 2_000_000)").status == "ok"
    recorded(server, kernel, 1)
    assert "too large to be shown" in drawn(client.run("%coppice show 1"))["text/plain"]


# Over the kernel's own link: whatever a guest finds there.
FORGED = """
import gc
from coppice_kernel import deliver
mine = [d for d in gc.get_objects() if type(d) is deliver.Delivery][0]
for n in range(2000):
    mine.ask("log", "x" * 500, 0)
    mine.ask("show", "../../etc", 0)
print(mine.ask("forget", "", 30)[0])
"""


def test_a_hostile_kernel_asks_in_vain(server, kernel):
    with server.kernel("python3") as other, server.open(kernel) as c, server.open(other) as d:
        c.info()
        d.info()
        run = c.execute(FORGED)
        assert d.run("mine = 1").status == "ok"
        assert "mine = 1" in drawn(d.run("%coppice log"))["text/plain"]
        assert c.collect(run, within(60)).status == "ok"
        assert drawn(c.run("%coppice status"))


def test_without_recording_it_says_so(docker_server):
    server = docker_server("magics-off", "--record=false")
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        run = c.run("%coppice log")
        assert run.status == "error" and "record" in run.stderr


def test_through_a_kill(docker_server):
    server = docker_server("magics")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("kept = 1").status == "ok"
        recorded(server, kernel_id, 1)
        cut(server, signal.SIGKILL)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert "kept = 1" in drawn(c.run("%coppice log"))["text/plain"]
