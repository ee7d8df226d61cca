"""Clients of the field, unchanged: their own code where it installs, else their calls in their
order (clients.md, wire-contract 1.1)."""

import asyncio
import importlib
import importlib.util
import json
import re
import subprocess
import sys
import types
import uuid
from pathlib import Path

import nbformat
import pytest
import websocket

from gateway import ALICE, BUILD, wait, within

HERE = Path(__file__).resolve().parent


@pytest.fixture
def lone(docker_gateway):
    """Says afterwards that the client left no kernel behind."""
    before = {m["id"] for m in docker_gateway.json("/api/kernels")}
    yield docker_gateway
    wait(lambda: {m["id"] for m in docker_gateway.json("/api/kernels")} - before,
         lambda more: not more, within(5))


# ---- nbclient through Jupyter Server's gateway classes ----

def test_nbclient_through_gateway_manager(lone):
    script = HERE / "client_nbclient.py"
    result = subprocess.run([sys.executable, script, lone.url, ALICE], capture_output=True,
                            text=True, timeout=within(60))
    assert result.returncode == 0, result.stdout + result.stderr
    notebook = nbformat.reads(result.stdout, 4)
    cells = [c.outputs for c in notebook.cells]
    assert cells[0][0].text == "hello\n"
    assert "<table" in cells[1][0].data["text/html"]
    assert cells[2][0].data["image/png"]
    assert cells[3][0].ename == "ZeroDivisionError"
    assert cells[4][0].data["text/plain"] == "42"


# ---- jupyter-kernel-client: v1 frames only ----

def test_jupyter_kernel_client(lone):
    from jupyter_kernel_client import JupyterKernelClient
    with JupyterKernelClient(server_url=lone.url, token=ALICE) as kernel:
        reply = kernel.execute("import os; print('v1 only'); 6 * 7")
        assert reply["status"] == "ok"
        assert [o["output_type"] for o in reply["outputs"]] == ["stream", "execute_result"]
        assert reply["outputs"][1]["data"]["text/plain"] == "42"
        assert kernel.execute("1/0")["status"] == "error"
        kernel.execute("value = [1, 2]")
        assert "value" in [v["name"] for v in kernel.list_variables()]
        kernel.restart()
        assert kernel.execute("'value' in dir()")["outputs"][0]["data"]["text/plain"] == "False"


# ---- @jupyterlab/services from npm ----

def node(script, *args, timeout=60):
    result = subprocess.run(["node", str(HERE / script), *args], capture_output=True, text=True,
                            timeout=within(timeout), cwd=BUILD / "node",
                            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp",
                                 "COPPICE_NODE_MODULES": str(BUILD / "node" / "node_modules")})
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return json.loads(result.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("framing", ["v1", "legacy"])
def test_jupyterlab_services(lone, framing):
    got = node("client_services.mjs", lone.url, ALICE, framing)
    assert got["protocol"] == ("v1.kernel.websocket.jupyter.org" if framing == "v1" else "")
    assert got["specs"]["default"] == "python3"
    assert got["stdout"] == "hello\n" and got["result"] == "42"
    assert got["input"] == "answer: yes\n"
    assert got["comm"] == {"echo": {"n": 1}, "buffer": [0, 1, 254, 255]}
    assert got["interrupted"] == "KeyboardInterrupt"
    assert got["afterRestart"] == "False"
    assert got["sessionPath"] == "renamed.ipynb"
    assert got["statuses"][-1] in ("idle", "dead")


# ---- AutoGen, both lines: their own client modules ----

def autogen_02():
    """autogen/coding/jupyter without the framework that its package imports."""
    home = Path(importlib.util.find_spec("autogen").origin).parent / "coding" / "jupyter"
    package = sys.modules.setdefault("autogen_jupyter", types.ModuleType("autogen_jupyter"))
    package.__path__ = [str(home)]
    return importlib.import_module("autogen_jupyter.jupyter_client")


def autogen_04():
    """autogen_ext's client; its module also holds a server that wants docker's package."""
    for name in ("docker", "docker.errors"):
        sys.modules.setdefault(name, types.ModuleType(name))
    home = Path(list(importlib.util.find_spec("autogen_ext").submodule_search_locations)[0])
    path = home / "code_executors" / "docker_jupyter" / "_jupyter_server.py"
    spec = importlib.util.spec_from_file_location("autogen_ext_jupyter", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_autogen_02(lone):
    module = autogen_02()
    client = module.JupyterClient(module.JupyterConnectionInfo(
        host="127.0.0.1", use_https=False, port=lone.port, token=ALICE))
    assert "python3" in client.list_kernel_specs()["kernelspecs"]
    kernel_id = client.start_kernel("python3")
    try:
        use_autogen_02(lone, client, kernel_id)
    finally:
        client.delete_kernel(kernel_id)


def use_autogen_02(gateway, client, kernel_id):
    with client.get_kernel_client(kernel_id) as kernel:
        assert kernel.wait_for_ready(within(15))
        result = kernel.execute("print('hi'); 1 + 1", within(10))
        assert result.is_ok and "hi" in result.output and "2" in result.output
        # It stops reading at the error, before idle; the next run must not mind.
        assert "ZeroDivisionError" in kernel.execute("1/0", within(10)).output
        # What it sent before that cell's end would be aborted with it, by any kernel.
        gateway.wait_state(kernel_id, "idle")
        plot = kernel.execute("import matplotlib.pyplot as p; p.plot([1]); p.show()", within(30))
        assert [d.mime_type for d in plot.data_items] == ["image/png"]
        client.restart_kernel(kernel_id)
    with client.get_kernel_client(kernel_id) as kernel:
        assert kernel.wait_for_ready(within(15))
        assert kernel.execute("print('again')", within(10)).output == "again\n"


def test_autogen_04(lone):
    module = autogen_04()

    async def use():
        client = module.JupyterClient(module.JupyterConnectionInfo(
            host="127.0.0.1", use_https=False, port=lone.port, token=ALICE))
        assert "python3" in (await client.list_kernel_specs())["kernelspecs"]
        kernel_id = await client.start_kernel("python3")
        async with await client.get_kernel_client(kernel_id) as kernel:
            assert await kernel.wait_for_ready(within(15))
            result = await kernel.execute("print('hi')", within(10))
            assert result.is_ok and result.output == "hi\n"
            assert not (await kernel.execute("1/0", within(10))).is_ok
        await client.restart_kernel(kernel_id)
        await client.delete_kernel(kernel_id)
        await client.close()

    asyncio.run(use())


# ---- Open WebUI: a kernel for every run, token in the query ----

def openwebui_request(code):
    return {"header": {"msg_id": "1", "username": "user", "session": uuid.uuid4().hex, "date": "",
                       "msg_type": "execute_request", "version": "5.3"},
            "parent_header": {}, "metadata": {},
            "content": {"code": code, "silent": False, "store_history": True,
                        "user_expressions": {}, "allow_stdin": False, "stop_on_error": True},
            "channel": "shell"}


def test_open_webui(lone):
    import websockets
    r = lone.post(f"/api/kernels?token={ALICE}", token=None)  # no body
    assert r.status_code == 201
    kernel_id = r.json()["id"]

    async def run():
        stdout, stderr, result = "", "", []
        async with websockets.connect(lone.channels_url(kernel_id, f"?token={ALICE}")) as ws:
            await ws.send(json.dumps(openwebui_request(
                "import sys; print('out'); print('err', file=sys.stderr); 40 + 2")))
            while True:
                m = json.loads(await asyncio.wait_for(ws.recv(), within(20)))
                if m.get("parent_header", {}).get("msg_id") != "1":
                    continue
                if m["msg_type"] == "stream":
                    if m["content"]["name"] == "stdout":
                        stdout += m["content"]["text"]
                    else:
                        stderr += m["content"]["text"]
                elif m["msg_type"] in ("execute_result", "display_data"):
                    result.append(m["content"]["data"]["text/plain"])
                elif m["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
                    return stdout, stderr, result

    assert asyncio.run(run()) == ("out\n", "err\n", ["42"])
    assert lone.delete(f"/api/kernels/{kernel_id}?token={ALICE}", token=None).status_code == 204


# ---- smolagents ----

def test_smolagents(lone):
    assert lone.get(f"/api/kernelspecs?token={ALICE}", token=None).status_code == 200
    r = lone.post(f"/api/kernels?token={ALICE}", token=None)
    assert r.status_code == 201
    kernel_id = r.json()["id"]
    url = lone.channels_url(kernel_id, f"?token={ALICE}")
    for code, expected in (("x = 20; print('first')", "first\n"), ("print(x + 22)", "42\n")):
        # A socket of its own for each run; no date, no channel in the message.
        ws = websocket.create_connection(url, timeout=within(20))
        msg_id = str(uuid.uuid4())
        ws.send(json.dumps({
            "header": {"msg_id": msg_id, "username": "anonymous", "session": str(uuid.uuid4()),
                       "msg_type": "execute_request", "version": "5.0"},
            "parent_header": {}, "metadata": {},
            "content": {"code": code, "silent": False, "store_history": True,
                        "user_expressions": {}, "allow_stdin": False}}))
        text, reply, idle = "", False, False
        while not (reply and idle):
            m = json.loads(ws.recv())
            if m.get("parent_header", {}).get("msg_id") != msg_id:
                continue
            kind = m.get("msg_type", "")
            if kind == "stream":
                text += m["content"]["text"]
            reply = reply or kind == "execute_reply"
            idle = idle or (kind == "status" and m["content"]["execution_state"] == "idle")
        ws.close()
        assert text == expected
    assert lone.delete(f"/api/kernels/{kernel_id}?token={ALICE}", token=None).status_code == 204


# ---- OpenHands: execute_reply is the end ----

def test_openhands(lone):
    r = lone.post("/api/kernels", json={"name": "python"})
    assert r.status_code == 201
    kernel_id = r.json()["id"]
    ws = websocket.create_connection(lone.channels_url(kernel_id), timeout=within(20),
                                     header={"Authorization": f"token {ALICE}"})

    def execute(code, interrupt_after=None):
        msg_id = uuid.uuid4().hex
        ws.send(json.dumps({
            "header": {"username": "", "version": "5.0", "session": "", "msg_id": msg_id,
                       "msg_type": "execute_request"},
            "parent_header": {}, "channel": "shell",
            "content": {"code": code, "silent": False, "store_history": False,
                        "user_expressions": {}, "allow_stdin": False},
            "metadata": {}, "buffers": {}}))
        out = []
        while True:
            m = json.loads(ws.recv())
            if m["parent_header"].get("msg_id") != msg_id:
                continue
            if m["msg_type"] == "stream":
                out.append(m["content"]["text"])
                if interrupt_after and interrupt_after in "".join(out):
                    r = lone.post(f"/api/kernels/{kernel_id}/interrupt",
                                  json={"kernel_id": kernel_id})
                    assert r.status_code == 204
                    interrupt_after = None
            elif m["msg_type"] in ("execute_result", "display_data"):
                out.append(m["content"]["data"]["text/plain"])
            elif m["msg_type"] == "error":
                out.append("\n".join(m["content"]["traceback"]))
            elif m["msg_type"] == "execute_reply":
                return "".join(out)

    # All output is there when the reply comes, ten times out of ten.
    for k in range(10):
        assert execute(f"for i in range(200): print({k}, i)\n{k}") == \
            "".join(f"{k} {i}\n" for i in range(200)) + f"{k}"
    ws.ping()
    text = execute("import time; print('on', flush=True); time.sleep(60)", interrupt_after="on")
    assert "KeyboardInterrupt" in text
    assert "image" not in execute("import matplotlib.pyplot as p; p.plot([1]); p.show()")
    ws.close()
    assert lone.delete(f"/api/kernels/{kernel_id}").status_code == 204


# ---- E2B's bridge ----

def test_e2b_bridge(lone):
    r = lone.post("/api/sessions", json={
        "path": str(uuid.uuid4()), "kernel": {"name": "python"}, "type": "notebook",
        "name": str(uuid.uuid4())})
    assert r.status_code == 201
    session_id, kernel_id = r.json()["id"], r.json()["kernel"]["id"]
    ws = websocket.create_connection(lone.channels_url(kernel_id), timeout=within(20),
                                     header={"Authorization": f"token {ALICE}"})

    def request(code):
        msg_id = str(uuid.uuid4())
        ws.send(json.dumps({
            "header": {"msg_id": msg_id, "username": "e2b", "session": session_id,
                       "msg_type": "execute_request", "version": "5.3"},
            "parent_header": {}, "metadata": {},
            "content": {"code": code, "silent": False, "store_history": True,
                        "user_expressions": {}, "stop_on_error": True, "allow_stdin": False}}))
        return msg_id

    def finish(msg_id, out=""):
        while True:
            m = json.loads(ws.recv())
            if m["parent_header"].get("msg_id") != msg_id:
                continue
            if m["msg_type"] == "stream":
                out += m["content"]["text"]
            if m["msg_type"] == "error":
                out += m["content"]["ename"]
            if m["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
                return out

    assert finish(request("print('e2b')")) == "e2b\n"
    long = request("import time; time.sleep(60)")
    docker_state = lone.wait_state(kernel_id, "busy")
    assert docker_state["id"] == kernel_id
    assert lone.post(f"/api/kernels/{kernel_id}/interrupt").status_code == 204
    assert finish(long) == "KeyboardInterrupt"
    assert lone.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
    ws.close()
    ws = websocket.create_connection(lone.channels_url(kernel_id), timeout=within(20),
                                     header={"Authorization": f"token {ALICE}"})
    assert finish(request("print('back')")) == "back\n"
    ws.close()
    assert lone.delete(f"/api/kernels/{kernel_id}").status_code == 204


# ---- VS Code, "existing server" ----

def test_vs_code_calls(lone):
    for path in ("/", "/tree?"):
        assert lone.get(f"{path}{'' if '?' in path else '?'}token={ALICE}",
                        token=None).status_code in (200, 302, 404)
    assert lone.get("/hub/api", token=None).status_code == 404
    assert lone.get("/api/kernels?1700000000000").status_code == 200
    specs = lone.json("/api/kernelspecs?1700000000001")
    assert specs["kernelspecs"][specs["default"]]["spec"]["language"] == "python"
    path = f"nb-{uuid.uuid4()}.ipynb"
    session = lone.post("/api/sessions?1700000000002", json={
        "kernel": {"name": "python3"}, "name": "nb.ipynb", "path": path, "type": "notebook"}).json()
    kernel_id = session["kernel"]["id"]
    assert session["id"] in [s["id"] for s in lone.json("/api/sessions?1700000000003")]
    r = lone.http("PATCH", f"/api/sessions/{session['id']}", json={
        "id": session["id"], "path": path, "name": "nb.ipynb", "type": "notebook",
        "kernel": {"id": kernel_id}})
    assert r.status_code == 200
    with lone.open(kernel_id, "v1", in_query=True) as c:
        c.ws.ping()
        assert c.run("print('code')").stdout == "code\n"
        completion = c.ask("complete_request", {"code": "prin", "cursor_pos": 4})
        assert "print" in completion.reply.content["matches"]
        msg_id = c.execute("import time; print('on', flush=True); time.sleep(60)")
        c.until_text("on", msg_id)
        assert lone.post(f"/api/kernels/{kernel_id}/interrupt").status_code == 204
        c.collect(msg_id)
        assert lone.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
        assert c.run("print('again')").stdout == "again\n"
    assert lone.delete(f"/api/sessions/{session['id']}").status_code == 204


# ---- JupyterLab's server, without its page: nine calls and no more ----

def test_jupyter_server_as_proxy(lone):
    from lab_server import LabServer
    with LabServer(lone.url, ALICE, name="proxy") as lab:
        assert "python3" in lab.json("/api/kernelspecs")["kernelspecs"]
        session = lab.post("/api/sessions", json={
            "path": "p.ipynb", "type": "notebook", "name": "",
            "kernel": {"name": "python3"}}).json()
        kernel_id = session["kernel"]["id"]
        assert kernel_id in [m["id"] for m in lone.json("/api/kernels")]
        assert kernel_id in [m["id"] for m in lab.json("/api/kernels")]
        with lab.open(kernel_id) as c:
            c.info()
            assert c.run("print('through')").stdout == "through\n"
            agents = re.findall(r'agent="?([^" ]+)', lone.log())
            assert any(a.startswith("Tornado/") for a in agents)
            # Buffers from the kernel break the proxy's socket if they come as binary frames.
            run = c.run("from comm import create_comm\n"
                        "create_comm('b').send({}, buffers=[b'\\xff\\x00'])")
            assert run.status == "ok"
            assert c.run("print('still')").stdout == "still\n"
            # An 11 MiB message is over the proxy's own limit: said, and the proxy's socket stays.
            attached = lone.log().count("client_attached")
            run = c.run("from IPython.display import display\n"
                        "display({'text/plain': 'z' * (11 << 20)}, raw=True)", timeout=within(20))
            assert run.status == "ok"
            assert run.stderr.count("was kept back") == 1 and not run.iopub("display_data")
            assert c.run("print('after')").stdout == "after\n"
            assert lone.log().count("client_attached") == attached
            assert lab.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
            assert c.run("print('again')").stdout == "again\n"
        assert lab.delete(f"/api/sessions/{session['id']}").status_code == 204


@pytest.mark.parametrize("framing", ["legacy", "v1"])
def test_what_the_bound_cut_has_its_outcome(docker_server, framing):
    """A page that was away while more was said than the journal holds: its cells end all the same."""
    server = docker_server(f"gap-{framing}", "--journal-memory", "1M", "--journal-disk", "1M")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id, framing) as c:
        c.info()
        good, bad = c.execute("21 * 2"), c.execute("1 / 0", stop_on_error=False)
        after = c.execute("pass")
    with server.open(kernel_id) as d:
        d.run("for i in range(2000):\n    print('x' * 8000, flush=True)", timeout=within(60))
    with server.open(kernel_id, framing, session=c.session) as back:
        back.runs = c.runs
        notice = back.until(lambda m: m.type == "stream" and "missing here" in m.content["text"])
        assert not notice.parent_id
        for run in (good, bad, after):
            back.collect(run)
        assert back.run("print('on')").stdout == "on\n"
        for run, status in ((good, "ok"), (bad, "error"), (after, "ok")):
            types = [m.type for m in back.runs[run].messages]
            assert types.count("execute_reply") == 1 and back.runs[run].status == status
            assert back.runs[run].states.count("idle") == 1
