"""The container engine, asked directly: what is left, what was logged, and a kill from outside."""

import http.client
import json
import os
import socket
import urllib.parse

SOCKET = os.environ.get("COPPICE_ENGINE_SOCKET", "/var/run/docker.sock")


class _Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(SOCKET)


def call(method, path, query=None):
    connection = _Connection("engine")
    if query:
        path += "?" + urllib.parse.urlencode(query)
    connection.request(method, path)
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


def has_image(name):
    try:
        call("GET", f"/images/{name}/json")
        return True
    except RuntimeError:
        return False
