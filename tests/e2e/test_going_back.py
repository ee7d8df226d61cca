"""Going back to a parked fork, in real containers: memory as it was, the second line in the history,
what is told, and through kills."""

import signal
import time

import pytest

from gateway import Server, wait, within
from test_constant import descriptors, heap
from test_history import clone_url, executions, git, recorded
from test_survival import again, cut, reconnected

pytestmark = pytest.mark.timeout(600)

STATE = """
import random, tempfile
random.seed(7)
double = lambda n: n * factor
factor = 2
def count():
    n = 0
    while True:
        yield n
        n += 1
numbers = count()
first = [next(numbers) for _ in range(3)]
with open("/work/lines", "w") as f:
    f.write("one\\ntwo\\nthree\\n")
lines = open("/work/lines")
lines.readline()
"""
LATER = """
factor = 100
[next(numbers) for _ in range(5)]
lines.readline(); lines.readline()
random.random()
del first
new = 1
"""
LOOK = ("print(double(21), next(numbers), lines.readline().strip(), round(random.random(), 6), "
        "first, 'new' in globals())")


@pytest.fixture(scope="module")
def server(container_engine):
    from conftest import CONFIG

    server = Server("goback", "--engine", "docker", "--pool-floor", "0", config=CONFIG).start()
    yield server
    server.stop()


def parked(server, kernel_id, n, node="HEAD"):
    """Waits until that many cells are recorded and the node is parked; its JSON."""
    recorded(server, kernel_id, n)
    return wait(lambda: server.json(f"/history/{kernel_id}/nodes/{node}"),
                lambda found: "parked" in found["restorable_by"], within(20))


@pytest.fixture
def walk(server):
    """(kernel, client, node of STATE); LATER has run since."""
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        assert c.run(STATE).status == "ok"
        node = parked(server, kernel_id, 1, "In[1]")
        assert c.run(LATER).status == "ok"
        recorded(server, kernel_id, 2)
        yield kernel_id, c, node


def checkout(server, kernel_id, status=200, **body):
    answer = server.post(f"/api/kernels/{kernel_id}/checkout", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_memory_is_as_it_was_and_a_second_line_begins(server, walk, tmp_path):
    kernel_id, c, node = walk
    assert node["fidelity"] == "exact"
    told = checkout(server, kernel_id, node="In[1]")
    assert told["node"] == node["id"] and told["branch"] == "main.2"
    assert told["restored_by"] == "parked" and told["report"]["fidelity"] == "exact"
    assert told["kernel"]["execution_state"] == "idle" and told["kernel"]["id"] == kernel_id
    said = c.until(lambda m: m.type == "stream" and "Gone back to In[1]" in m.content["text"])
    assert "The next cell is In[2], on branch main.2" in said.content["text"]
    assert "In[2]." in said.content["text"]  # is left behind
    run = c.run(LOOK)
    assert run.stdout == "42 3 two 0.323833 [0, 1, 2] False\n", run.text()
    assert run.reply.content["execution_count"] == 2
    history = recorded(server, kernel_id, 3)
    assert {b["name"] for b in history["branches"]} == {"main", "main.2"}
    git("clone", "-q", clone_url(server, kernel_id), tmp_path / "story")
    graph = git("log", "--graph", "--format=%s", "origin/main", "origin/main.2",
                cwd=tmp_path / "story").stdout
    assert "|/" in graph
    assert git("fsck", "--strict", cwd=tmp_path / "story").returncode == 0
    first, second, third = executions(history)
    assert second["parent"] == third["parent"] == first["id"]


def test_back_and_forth(server, walk):
    kernel_id, c, node = walk
    later = parked(server, kernel_id, 2)
    for _ in range(2):
        checkout(server, kernel_id, node=node["id"])
        assert c.run(LOOK, silent=True).stdout.startswith("42 3 two")
        checkout(server, kernel_id, node=later["id"])
        assert c.run("print(double(1), new)", silent=True).stdout == "100 1\n"


def test_the_working_directory_is_where_it_was(server):
    """It was the top of the folder whatever the node stood in, and nothing said so."""
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        assert c.run("import os; os.mkdir('deep'); os.chdir('deep')").status == "ok"
        parked(server, kernel_id, 1)
        assert c.run("os.chdir('/')").status == "ok"
        recorded(server, kernel_id, 2)
        told = checkout(server, kernel_id, node="In[1]")
        assert told["report"]["fidelity"] == "exact"
        assert c.run("print(os.getcwd())").stdout == "/work/deep\n"


def test_undo(server, walk):
    kernel_id, c, node = walk
    answer = server.post(f"/api/kernels/{kernel_id}/undo", json={})
    assert answer.status_code == 200, answer.text
    assert answer.json()["node"] == node["id"]
    assert c.run("print(factor)").stdout == "2\n"


def test_in_a_cell(server, walk):
    kernel_id, c, node = walk
    asks = c.execute("%coppice checkout 1\nprint('still here', factor)")
    held = c.execute("print(factor)")
    run, after = c.collect(asks), c.collect(held)
    assert "Once this cell has ended" in run.stdout and "still here 100" in run.stdout
    assert after.stdout == "2\n" and after.reply.content["execution_count"] == 2
    c.until(lambda m: m.parent_id == asks and m.type == "stream" and
            "Gone back to In[1]" in m.content["text"])
    assert server.model(kernel_id)["branch"] == "main.2"


def test_changed_files_are_told(server, walk):
    kernel_id, c, _node = walk
    assert c.run("open('/work/other', 'w').write('x')").status == "ok"
    recorded(server, kernel_id, 3)
    told = checkout(server, kernel_id, 409, node="In[1]")
    assert told["reason"] == "partial"
    assert any("working folder" in note for note in told["report"]["notes"])
    assert c.run("print(factor)").stdout == "100\n"
    told = checkout(server, kernel_id, node="In[1]", accept="partial")
    assert told["report"]["fidelity"] == "partial"
    assert c.run("print(factor)").stdout == "2\n"


def test_after_a_death(server, walk):
    kernel_id, c, node = walk
    c.execute("import os; os._exit(3)")
    c.until_state("restarting")
    server.wait_state(kernel_id, "idle")
    told = checkout(server, kernel_id, node=node["id"])
    assert told["report"]["fidelity"] == "exact"
    assert c.run("print(factor)").stdout == "2\n"


def test_killed_gateways_know_the_parks_and_where_it_stands(docker_server):
    server = docker_server("goback-killed")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("x = 1").status == "ok"
        node = parked(server, kernel_id, 1)
        assert c.run("x = 2").status == "ok"
        recorded(server, kernel_id, 2)
        cut(server, signal.SIGKILL)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        c.info()
        parked(server, kernel_id, 2, node["id"])  # told anew
        checkout(server, kernel_id, node=node["id"])
        cut(server, signal.SIGKILL)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert c.run("print(x)").stdout == "1\n"
    history = recorded(server, kernel_id, 3)
    first, second, third = executions(history)
    assert second["parent"] == third["parent"] == first["id"]


NOISE_BYTES = 64 << 10  # less than a KB each


def count(server):
    return sum(descriptors(server.process.pid).values())


def test_a_hundred_keep_memory_and_descriptors_constant(docker_server):
    """What is told each time is in the journal, whose memory is full after the first twenty."""
    server = docker_server("goback-hundred", "--journal-memory", "64K")
    kernel_id = server.start_kernel("python3")
    figures = []
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("factor = 2").status == "ok"
        node = parked(server, kernel_id, 1)
        assert c.run("factor = 3").status == "ok"
        recorded(server, kernel_id, 2)
        began = time.monotonic()
        for i in range(120):
            checkout(server, kernel_id, node=node["id"])
            if i in (19, 119):
                assert c.run("print(factor)").stdout == "2\n"
                recorded(server, kernel_id, 3 if i == 19 else 4)
                figures.append((heap(server), count(server)))
    print(f"100 checkouts: {time.monotonic() - began:.1f} s, {figures}")
    (memory, fds), (memory_after, fds_after) = figures
    assert fds_after <= fds + 2
    assert memory_after - memory <= NOISE_BYTES
