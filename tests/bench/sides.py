"""The sides that are no server: straight to a kernel, and `bare` between. Each gives a ready client
and ends all that it started."""

import contextlib
import json
import secrets
import subprocess
from pathlib import Path
from types import SimpleNamespace

import zmq

import kit
from client import Direct, WebSocket
from server import ready
from twin import Twin, container_of


@contextlib.contextmanager
def process_kernel(home, kernel):
    """A kernel as engine `process` starts it (encrypted where its kernelspec can), without it."""
    curve = zmq.curve_keypair() if kernel == "python3" else None
    key, channels = secrets.token_hex(32), ("shell", "iopub", "stdin", "control", "hb")
    ports = {f"{c}_port": p for c, p in zip(channels, kit.free_ports(len(channels)))}
    path = Path(home) / "connection.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({
        **ports, "ip": "127.0.0.1", "transport": "tcp", "key": key,
        "signature_scheme": "hmac-sha256", **({} if curve is None else {
            "curve_publickey": curve[0].decode(), "curve_secretkey": curve[1].decode()})}))
    argv = [a.format(connection_file=path) for a in kit.ARGV[kernel]]
    with open(Path(home) / "kernel.log", "ab") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=home,
                                   env=kit.environment(home, "direct"))
    try:
        yield SimpleNamespace(addresses={c: f"tcp://127.0.0.1:{ports[c + '_port']}"
                                         for c in channels}, key=key, curve=curve)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def twin(run_dir):
    """A twin of the container that Coppice has just made, its only one."""
    t = Twin(kit.wait(lambda: container_of(run_dir), 60, "Coppice has one container"))
    t.curve = None
    try:
        yield t
    finally:
        t.close()


@contextlib.contextmanager
def direct(kernel):
    """A ready client of a process_kernel() or twin()."""
    context = zmq.Context()
    try:
        with ready(Direct(context, kernel.addresses, kernel.key, kernel.curve)) as client:
            yield client
    finally:
        context.destroy(linger=0)


@contextlib.contextmanager
def bare(kernel, quick=False):
    """Through tests/bench/bare.c, to a twin."""
    argv = [str(kit.PROGRAMS / "bare"), kernel.addresses["shell"], kernel.addresses["iopub"],
            kernel.key]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        server = SimpleNamespace(host="127.0.0.1", port=port, token="")
        with ready(WebSocket(server, "any", "v1", quick)) as client:
            client.pid = process.pid
            yield client
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
