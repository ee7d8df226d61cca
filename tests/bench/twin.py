"""The kernel of engine `docker` without a gateway: a second container with the very settings of one
that Coppice made, whose supervisor we speak to ourselves (docs/PROTOCOL-ctl.md). So image, limits,
seccomp profile, fork, descriptors and transport are the same, and only the gateway is missing."""

import http.client
import json
import os
import shutil
import socket
import tempfile
import urllib.parse
import uuid

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
GUEST = "/run/coppice"
ENGINE = os.environ.get("COPPICE_ENGINE_SOCKET", "/var/run/docker.sock")


class _Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(ENGINE)


def call(method, path, body=None, **query):
    if query:
        path += "?" + urllib.parse.urlencode(query)
    connection = _Connection("engine")
    connection.request(method, path, body and json.dumps(body),
                       {"Content-Type": "application/json"})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    if response.status >= 400:
        raise RuntimeError(f"engine: {method} {path}: {response.status} {data[:300]!r}")
    return json.loads(data) if data[:1] in (b"{", b"[") else data


def container_of(run_dir):
    """The one container of a gateway with that run folder, as the engine describes it; None while
    an earlier one is still being removed. The gateway's kernel must be ready."""
    rows = call("GET", "/containers/json", all="1",
                filters=json.dumps({"label": ["coppice.run"]}))
    rows = [r for r in rows if run_dir in r["Labels"].get("coppice.run", "")]
    return call("GET", f"/containers/{rows[0]['Id']}/json") if len(rows) == 1 else None


class Twin:
    def __init__(self, original):
        self.folder = tempfile.mkdtemp(prefix="cp.", dir="/tmp")
        self.container = self.ctl = None
        os.chmod(self.folder, 0o755)
        try:
            self._run(original)
        except BaseException:
            self.close()
            raise

    def _run(self, original):
        config = dict(original["Config"])
        config["Labels"] = {}
        host = {k: v for k, v in original["HostConfig"].items() if v is not None}
        host["Mounts"] = [{**m, "Source": self.folder} if m["Target"] == GUEST else m
                          for m in host["Mounts"]]
        listener = self._listen("ctl", socket.SOCK_SEQPACKET, 0o666)
        listener.settimeout(60)
        created = call("POST", "/containers/create", {**config, "HostConfig": host})
        self.container = created["Id"]
        call("POST", f"/containers/{self.container}/start")
        with listener:
            self.ctl, _ = listener.accept()
        self.ctl.settimeout(60)
        self._wait("hello")
        self._send({"type": "welcome", "version": 1})
        self._start()

    def _start(self):
        self.key = uuid.uuid4().hex
        sockets = [self._listen(f"{c}-1", socket.SOCK_STREAM, 0o700) for c in CHANNELS]
        self._send({"type": "start", "line": 1, "kernel": str(uuid.uuid4()), "key": self.key,
                    "cwd": "/work", "env": {}, "fresh": False,
                    "endpoints": [f"ipc://{GUEST}/{c}-1" for c in CHANNELS]},
                   [s.fileno() for s in sockets])
        for s in sockets:
            s.close()
        self._wait("started")
        self.addresses = {c: f"ipc://{self.folder}/{c}-1" for c in CHANNELS}

    def _listen(self, name, kind, mode):
        s = socket.socket(socket.AF_UNIX, kind)
        path = f"{self.folder}/{name}"
        s.bind(path)
        os.chmod(path, mode)
        s.listen(16)
        return s

    def _send(self, message, fds=()):
        socket.send_fds(self.ctl, [json.dumps(message).encode()], list(fds))

    def _wait(self, wanted):
        while True:
            packet = self.ctl.recv(65536)
            if not packet:
                raise RuntimeError(f"the supervisor has gone before its {wanted}")
            message = json.loads(packet)
            if message["type"] == wanted:
                return message
            if message["type"] in ("start_failed", "exited", "error"):
                raise RuntimeError(f"the supervisor says {message}")

    def close(self):
        if self.ctl:
            self.ctl.close()
        if self.container:
            call("DELETE", f"/containers/{self.container}", force="1", v="1")
        shutil.rmtree(self.folder, ignore_errors=True)
