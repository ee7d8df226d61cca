"""What is compared: each side gives a ready client and ends all that it started."""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import requests
import zmq

from client import Client, Direct, WebSocket
from twin import Twin, container_of

BUILD = Path(__file__).resolve().parents[2] / "build"
SPECS = Path(sys.prefix) / "share" / "jupyter"


def http(method, url, token, **options):
    with requests.Session() as session:
        session.trust_env = False
        r = session.request(method, url, headers={"Authorization": f"token {token}"}, timeout=60,
                            **options)
    if r.status_code >= 400:
        raise RuntimeError(f"{method} {url}: {r.status_code} {r.text[:300]}")
    return r


@contextlib.contextmanager
def ready(way):
    client = Client(way)
    try:
        client.wait_ready()
        yield client
    finally:
        client.close()


@contextlib.contextmanager
def over_http(server, name):
    """A kernel of a server with Jupyter's API, over v1."""
    base = f"http://{server.host}:{server.port}/api/kernels"
    kernel = http("POST", base, server.token, json={"name": name}).json()["id"]
    try:
        path = f"/api/kernels/{kernel}/channels"
        with ready(WebSocket(server.host, server.port, path, server.token)) as client:
            yield client
    finally:
        http("DELETE", f"{base}/{kernel}", server.token)


@contextlib.contextmanager
def direct_process(context, home):
    """The kernelspec that engine `process` runs, started and encrypted as it does, without it."""
    ports = []
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
    for s in held:
        ports.append(s.getsockname()[1])
        s.close()
    key = secrets.token_hex(32)
    curve = zmq.curve_keypair()
    names = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
    path = Path(home) / "connection.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({
        **dict(zip(names, ports)), "ip": "127.0.0.1", "transport": "tcp", "key": key,
        "signature_scheme": "hmac-sha256", "curve_publickey": curve[0].decode(),
        "curve_secretkey": curve[1].decode()}))
    with open(Path(home) / "kernel.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ipykernel_launcher", "-f", str(path)], stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, cwd=home, env={**os.environ, "IPYTHONDIR": f"{home}/direct"})
    try:
        addresses = {"shell": f"tcp://127.0.0.1:{ports[0]}", "iopub": f"tcp://127.0.0.1:{ports[1]}"}
        with ready(Direct(context, addresses, key, curve)) as client:
            yield client
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def direct_docker(context, run_dir):
    """A twin of the container that Coppice has just made."""
    twin = Twin(container_of(run_dir))
    try:
        with ready(Direct(context, twin.addresses, twin.key)) as client:
            yield client
    finally:
        twin.close()


@contextlib.contextmanager
def coppice(engines, home):
    """A gateway of our own: host, port, token, run_dir."""
    token, data = secrets.token_hex(16), Path(home) / "data"
    data.mkdir(mode=0o700)
    (data / "tokens.ini").touch(mode=0o600)
    (data / "tokens.ini").write_text(
        f"[token bench]\nsecret = {token}\ntier = none\nscopes = read run admin\n")
    run_dir = tempfile.mkdtemp(prefix="cp.", dir="/tmp")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("COPPICE_", "JUPYTER"))}
    # Half a processor is the usual limit of a kernel; here it would be a throttle that both sides
    # run into, and hide what is to be measured.
    argv = [os.environ.get("COPPICE_BIN", str(BUILD / "coppice")), "serve",
            "--listen", "127.0.0.1:0", "--data-dir", str(data), "--run-dir", run_dir,
            "--engine", ",".join(engines), "--cpus", str(os.cpu_count())]
    with open(Path(home) / "coppice.log", "wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=home, text=True,
            env={**env, "HOME": home, "IPYTHONDIR": f"{home}/ours", "JUPYTER_PATH": str(SPECS)})
    try:
        for line in process.stdout:
            if found := re.search(r"Coppice is ready: http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            raise RuntimeError(f"no start: {(Path(home) / 'coppice.log').read_text()[-2000:]}")
        yield SimpleNamespace(host="127.0.0.1", port=int(found[1]), token=token, run_dir=run_dir)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        shutil.rmtree(run_dir, ignore_errors=True)


@contextlib.contextmanager
def jupyter_server(home):
    """(host, port, token) of a Jupyter Server with its usual settings."""
    token = secrets.token_hex(16)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    env = {**os.environ, "HOME": home, "IPYTHONDIR": f"{home}/js", "JUPYTER_PATH": str(SPECS),
           "JUPYTER_CONFIG_DIR": f"{home}/jc", "JUPYTER_DATA_DIR": f"{home}/jd",
           "JUPYTER_RUNTIME_DIR": f"{home}/jr"}
    with open(Path(home) / "jupyter-server.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root",
             f"--port={port}", "--ip=127.0.0.1", f"--IdentityProvider.token={token}",
             f"--ServerApp.root_dir={home}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            cwd=home, env=env)
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(requests.ConnectionError):
                http("GET", f"http://127.0.0.1:{port}/api", token)
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Jupyter Server did not start: {home}/jupyter-server.log")
            time.sleep(0.1)
        yield SimpleNamespace(host="127.0.0.1", port=port, token=token)
    finally:
        process.terminate()
        process.wait()
