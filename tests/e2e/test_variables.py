"""One can look without going: what variables a node had is kept, as a user of the page would see it."""

import os
import signal

import pytest

import engine
from gateway import wait, within
from test_history import clone_url, executions, git, recorded
from test_survival import again, cut, reconnected

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


def looked_at(server, kernel_id, node="HEAD"):
    """The node once its variables are there."""
    return wait(lambda: server.get(f"/history/{kernel_id}/nodes/{node}").json(),
                lambda n: n.get("variables") is not None, within(20))


def by_name(node):
    return {v["name"]: v for v in node["variables"]}


CELL = """
import numpy as np, pandas as pd
n, s = 7, "höchst"
a = np.zeros((30, 4))
t = pd.DataFrame({"x": [1, 2, 3], "y": [1., 2., 3.]})
dated = pd.Series([1., 2.], index=pd.date_range("2024-01-01", periods=2))
words = pd.DataFrame({"w": ["a", "b"]}, index=["k", "l"])
empty, deep = pd.DataFrame(), np.zeros((1,) * 20)
class Odd:
    def __repr__(self): raise SystemExit("ran")
    __len__ = __sizeof__ = __repr__
    shape = property(__repr__)
odd = Odd()
_private = 1
"""


def test_names_types_shapes_and_bytes(server, kernel):
    with server.open(kernel) as c:
        c.info()
        assert c.run(CELL).status == "ok"
        recorded(server, kernel, 1)
        node = looked_at(server, kernel)
        found = by_name(node)
        assert node["variables_complete"] is True
        assert set(found) == {
            "np", "pd", "n", "s", "a", "t", "dated", "words", "empty", "deep", "Odd", "odd"}
        assert found["n"]["type"] == "int" and found["n"]["shape"] == []
        assert found["s"]["shape"] == [6]
        assert found["a"] == {"name": "a", "type": "ndarray", "shape": [30, 4], "bytes": 960}
        assert found["t"] == {"name": "t", "type": "DataFrame", "shape": [3, 2], "bytes": 48}
        assert (found["dated"]["type"], found["dated"]["shape"]) == ("Series", [2])
        assert found["words"]["shape"] == [2, 1] and found["empty"]["shape"] == [0, 0]
        assert found["deep"]["shape"] is None and found["deep"]["bytes"] == 8
        assert found["odd"] == {"name": "odd", "type": "Odd", "shape": None, "bytes": None}
        # No client heard of it, and the next cell is as ever.
        assert c.run("del a, t; n + 1").status == "ok"
        recorded(server, kernel, 2)
        assert "a" not in by_name(looked_at(server, kernel))
        assert not [m for m in c.messages if "coppice" in m.type]


def test_of_a_run_all_the_last_cell_is_looked_at(server, kernel):
    with server.open(kernel) as c:
        c.info()
        runs = [c.execute(f"v{i} = {i}") for i in range(30)]
        assert all(c.collect(r, within(30)).status == "ok" for r in runs)
    nodes = executions(recorded(server, kernel, 30))
    assert len(by_name(looked_at(server, kernel))) == 30
    # What they cost is told with their replies.
    for n in nodes:
        node = server.json(f"/history/{kernel}/nodes/{n['id']}")
        assert node["peak_memory_bytes"] > 20 << 20


def test_a_newer_ipykernel(server):
    with server.kernel("newest") as kernel_id, server.open(kernel_id) as c:
        c.info()
        assert c.run("x = [1, 2]").status == "ok"
        recorded(server, kernel_id, 1)
        assert by_name(looked_at(server, kernel_id))["x"]["shape"] == [2]


def test_a_foreign_kernel_has_none(server):
    with server.kernel("foreign") as kernel_id, server.open(kernel_id) as c:
        c.info()
        assert c.run("x = 1").status == "ok"
        recorded(server, kernel_id, 1)
        node = server.json(f"/history/{kernel_id}/nodes/HEAD")
        assert node["variables"] is None and node["status"] == "ok"


# Over the kernel's own descriptor to its supervisor: whatever a guest finds there.
FORGED = """
import gc, json, socket
from coppice_kernel import deliver
mine = [d for d in gc.get_objects() if type(d) is deliver.Delivery][0]
for n in range(5000):
    mine.report("never-%d" % n, json.dumps({"variables": [{"name": "x" * 500, "type": "t"}] * 50}))
    mine.report("other", "[" * 20000)
"""


def test_a_hostile_kernel_harms_nobody(server, kernel):
    with server.kernel("python3") as other, server.open(kernel) as c, server.open(other) as d:
        c.info()
        d.info()
        run = c.execute(FORGED)
        assert d.run("mine = 1").status == "ok"
        recorded(server, other, 1)
        assert set(by_name(looked_at(server, other))) == {"mine"}
        assert c.collect(run, within(60)).status == "ok"
        assert c.run("after = 1").status == "ok"
        recorded(server, kernel, 2)
        assert "after" in by_name(looked_at(server, kernel))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_through_a_gateway_s_end(docker_server, how):
    server = docker_server(f"variables-{how.name}")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        # A gateway that is asked to end waits 2 s for this page's close: the cell ends in it, the
        # pause after the cell is the next one's.
        run = c.execute("import time\nprint('a', flush=True)\ntime.sleep(2)\nkept = 1")
        c.until_text("a", run)
        cut(server, how)
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert c.collect(run, within(20)).status == "ok"
    recorded(server, kernel_id, 1)
    assert "kept" in by_name(looked_at(server, kernel_id))


def test_what_a_cell_ran_in_and_what_it_cost(server, kernel, tmp_path):
    with server.open(kernel) as c:
        c.info()
        first = c.execute("import time; time.sleep(0.5)")
        second = c.execute("block = bytearray(b'x' * (200 << 20)); del block")
        assert c.collect(first, within(30)).status == c.collect(second, within(30)).status == "ok"
        recorded(server, kernel, 2)
        heavy = looked_at(server, kernel)
        assert c.run("1").status == "ok"
        recorded(server, kernel, 3)
        light = looked_at(server, kernel)
    assert heavy["queue_position"] == 1 and heavy["wait_ms"] > 400
    assert light["queue_position"] == 0
    assert heavy["peak_memory_bytes"] > light["peak_memory_bytes"] + (150 << 20)
    image = engine.inspect(server.container_of(kernel))["Image"]
    assert image.startswith("sha256:") and heavy["environment"] == image
    git("clone", "-q", clone_url(server, kernel), tmp_path / "story")
    assert f"Coppice-Environment: {image}" in git("log", "-1", cwd=tmp_path / "story").stdout


def test_environments_of_foreign_kernels_and_processes(server, process_gateway):
    found = []
    for gateway, name in ((server, "foreign"), (process_gateway, "fake")):
        with gateway.kernel(name) as kernel_id, gateway.open(kernel_id) as c:
            c.info()
            assert c.run("x = 1").status == "ok"
            recorded(gateway, kernel_id, 1)
            found.append(gateway.json(f"/history/{kernel_id}/nodes/HEAD")["environment"])
    assert found[0].startswith("sha256:") and len(found[0]) == 71
    assert found[1].startswith("process:") and len(found[1]) == 72
