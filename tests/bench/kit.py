"""What the families share: figures of a process, statistics, HTTP, the kernelspecs."""

import contextlib
import json
import math
import os
import socket
import statistics
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import requests

BUILD = Path(__file__).resolve().parents[2] / "build"
PROGRAMS = BUILD / "tests" / "bench"
OUT = BUILD / "bench"
VENVS = BUILD / "bench-venv"
IPYKERNEL = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
SCRIPTED = [str(PROGRAMS / "scripted"), "{connection_file}"]
ARGV = {"python3": IPYKERNEL, "scripted": SCRIPTED}
median = statistics.median


def p99(values):
    return sorted(values)[max(0, math.ceil(len(values) * 0.99) - 1)]


def cpu_ns(pid):
    """Processor time of all threads of a process."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int(task.joinpath("schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that ended meanwhile
    return total


def pss_kb(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise RuntimeError(f"no Pss of process {pid}")


def children(pid):
    out = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        out += [int(p) for p in task.joinpath("children").read_text().split()]
    return out


def free_ports(n):
    """No two alike: each is held until all are there."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [s.getsockname()[1] for s in held]


def free_port():
    return free_ports(1)[0]


def http(method, url, token, **options):
    with requests.Session() as session:
        session.trust_env = False
        r = session.request(method, url, headers={"Authorization": f"token {token}"}, timeout=120,
                            **options)
    if r.status_code >= 400:
        raise RuntimeError(f"{method} {url}: {r.status_code} {r.text[:300]}")
    return r


def post(host, port, path, token, body):
    """What is timed: building a session of `requests` takes longer than the gateway does."""
    connection = HTTPConnection(host, port, timeout=120)
    try:
        connection.request("POST", path, json.dumps(body), {
            "Authorization": f"token {token}", "Content-Type": "application/json"})
        r = connection.getresponse()
        text = r.read()
    finally:
        connection.close()
    if r.status >= 400:
        raise RuntimeError(f"POST {path}: {r.status} {text[:300]!r}")
    return json.loads(text)


def wait(ask, seconds, what):
    """The first answer of `ask` that is true."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not in {seconds} s: {what}")
        time.sleep(0.02)  # between two questions
    return answer


def write_specs(home):
    """A Jupyter data folder whose kernelspecs every side starts, so that the kernel is the same."""
    for name, argv in ARGV.items():
        folder = Path(home) / "share" / "kernels" / name
        folder.mkdir(parents=True)
        spec = {"argv": argv, "display_name": name, "language": "python"}
        if name == "python3":
            spec["metadata"] = {"supported_encryption": ["curve"]}
        folder.joinpath("kernel.json").write_text(json.dumps(spec))
    return Path(home) / "share"


def environment(home, side):
    """For a server or kernel of its own: nothing of the user's settings gets in."""
    own = Path(home) / side
    own.mkdir(exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("COPPICE_", "JUPYTER"))}
    return {**env, "HOME": str(own), "IPYTHONDIR": f"{own}/ipython",
            "JUPYTER_PATH": f"{home}/share", "JUPYTER_CONFIG_DIR": f"{own}/config",
            "JUPYTER_DATA_DIR": f"{own}/data", "JUPYTER_RUNTIME_DIR": f"{own}/runtime"}
