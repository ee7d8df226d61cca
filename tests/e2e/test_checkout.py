"""Going back where nothing is parked: refused with a report, whoever asks, and nothing has moved."""

import os
import subprocess

import pytest

from gateway import ROOT, wait, within
from test_history import executions, recorded

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(container_engine):
    from conftest import CONFIG
    from gateway import Server

    server = Server("checkout", "--engine", "docker", "--pool-floor", "0", "--parks", "0",
                    config=CONFIG).start()
    yield server
    server.stop()


@pytest.fixture
def walk(server):
    """(kernel, client) after three cells."""
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        for code in ("x = 1", "x = 2", "x = 3"):
            assert c.run(code).status == "ok"
        recorded(server, kernel_id, 3)
        yield kernel_id, c


def refused(answer, reason, status=409):
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert told["reason"] == reason and told["message"]
    return told


def test_nothing_parked_is_told_with_what_to_run_again(server, walk):
    kernel_id, c = walk
    before = server.model(kernel_id)
    told = refused(server.post(f"/api/kernels/{kernel_id}/checkout", json={"node": "In[2]"}),
                   "partial")
    report = told["report"]
    assert report["fidelity"] == "code-only" and report["approximate"] == []
    first, second, _third = executions(server.json(f"/history/{kernel_id}"))
    assert report["lost"][0]["rebuild"] == [first["id"], second["id"]]
    assert any("In[1] to In[2]" in note for note in report["notes"])
    assert second["restorable_by"] == [] and second["fidelity"] == "code-only"
    refused(server.post(f"/api/kernels/{kernel_id}/undo", json={"accept": "partial"}), "partial")
    after = server.model(kernel_id)
    assert {k: after[k] for k in ("node", "branch", "state_version", "execution_state")} == \
        {k: before[k] for k in ("node", "branch", "state_version", "execution_state")}
    assert c.run("print(x)").stdout == "3\n"
    assert server.json(f"/history/{kernel_id}")["branches"][0]["name"] == "main"


def test_what_makes_no_sense(server, walk):
    kernel_id, _c = walk
    url = f"/api/kernels/{kernel_id}/checkout"
    version = server.model(kernel_id)["state_version"]
    for body in ({}, {"node": ""}, {"node": 4}, {"node": "In[1]", "accept": "all"},
                 {"node": "In[1]", "state_version": "x"}, {"node": "In[1]", "state_version": 1.5},
                 {"node": "In[1]", "interrupt": 1}, {"node": "In[1]", "branch": "a/b"}):
        refused(server.post(url, json=body), "invalid", 400)
    refused(server.post(url, json={"node": "In[9]"}), "not_found", 404)
    refused(server.post("/api/kernels/none/checkout", json={"node": "In[1]"}), "not_found", 404)
    told = refused(server.post(url, json={"node": "In[1]", "state_version": version + 1}), "stale")
    assert told["state_version"] == version


def test_while_a_cell_runs_or_waits(server, walk):
    kernel_id, c = walk
    asked = c.execute("input()", allow_stdin=True)
    c.until_type("input_request", asked)
    refused(server.post(f"/api/kernels/{kernel_id}/checkout", json={"node": "In[1]"}), "busy")
    # Ended first; then it turns out that there is no way.
    refused(server.post(f"/api/kernels/{kernel_id}/undo", json={"interrupt": True}), "partial")
    assert c.collect(asked).status == "error"
    assert c.run("print(x)").stdout == "3\n"


def test_the_command_line_says_why(server, walk):
    kernel_id, _c = walk
    done = subprocess.run(
        [os.environ.get("COPPICE_BIN", str(ROOT / "build" / "coppice")), "checkout", "In[1]",
         "--kernel", kernel_id, "--url", server.url, "--token", server.token],
        capture_output=True, text=True, timeout=within(60), check=False)
    assert done.returncode == 1 and "cannot be gone back to" in done.stderr
    assert "To be run again, in this order: In[1]." in done.stderr


def test_conversations_and_lists_say_it_too(server, walk):
    kernel_id, _c = walk
    node = wait(lambda: server.json(f"/history/{kernel_id}/nodes/HEAD"),
                lambda n: n["summary"] == "x = 3", within(20))
    assert node["report"]["fidelity"] == "code-only" and node["restorable_by"] == []
