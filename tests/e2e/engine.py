"""The container engine, asked directly: what is left, what was logged, and a kill from outside."""

import http.client
import json
import os
import socket
import time
import urllib.parse

SOCKET = os.environ.get("COPPICE_ENGINE_SOCKET", "/var/run/docker.sock")


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("engine")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


def call(method, path, query=None, body=None):
    connection = Connection(SOCKET)
    if query:
        path += "?" + urllib.parse.urlencode(query)
    headers = {"Content-Type": "application/json"} if body else {}
    connection.request(method, path, json.dumps(body) if body else None, headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status >= 400:
        raise RuntimeError(f"engine: {method} {path}: {response.status} {body[:300]!r}")
    return json.loads(body) if body[:1] in (b"{", b"[") else body


def containers(run_dir):
    """Containers that the gateway of that run folder made, ended ones too."""
    rows = call("GET", "/containers/json",
                {"all": "1", "filters": json.dumps({"label": ["coppice.run"]})})
    return [r for r in rows if run_dir in r["Labels"].get("coppice.run", "")]


def inspect(container):
    return call("GET", f"/containers/{container}/json")


def kill(container):
    call("POST", f"/containers/{container}/kill")


def run(container, *argv):
    """Runs that in a container; its exit code."""
    made = call("POST", f"/containers/{container}/exec", body={"Cmd": argv})
    call("POST", f"/exec/{made['Id']}/start", body={"Detach": False, "Tty": True})
    # Its output ends a little before it does.
    while (state := call("GET", f"/exec/{made['Id']}/json"))["Running"]:
        time.sleep(0.02)  # between two questions, not instead of one
    return state["ExitCode"]


def has_file(container, path):
    """In its tmpfs too, which the engine's archive does not see."""
    return run(container, "test", "-e", path) == 0


def has_image(name):
    try:
        call("GET", f"/images/{name}/json")
        return True
    except RuntimeError:
        return False
