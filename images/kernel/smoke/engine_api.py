"""As much of the container engine's HTTP API as the smoke test needs."""

import http.client
import json
import os
import socket
import struct

# A folder that is laid over the image's coppice_kernel, to try a change without a new image.
OVERLAY = os.environ.get("COPPICE_SMOKE_OVERLAY")
INSTALLED = "/usr/lib/python3/dist-packages/coppice_kernel"
SOCKET = os.environ.get("COPPICE_ENGINE_SOCKET", "/var/run/docker.sock")


class _UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(120)
        self.sock.connect(SOCKET)


def call(method, path, body=None):
    connection = _UnixConnection("engine")
    headers = {"Content-Type": "application/json"} if body is not None else {}
    data = json.dumps(body) if body is not None else None
    connection.request(method, path, data, headers)
    answer = connection.getresponse()
    raw = answer.read()
    connection.close()
    if answer.status >= 300 and answer.status != 304:
        raise RuntimeError(f"{method} {path}: {answer.status} {raw[:300]!r}")
    return json.loads(raw) if raw[:1] in b"{[" and raw else raw


class Container:
    """A container with the limits that the gateway sets."""

    def __init__(self, image, run_folder, seccomp, memory=1 << 30, pids=152, command=None,
                 environment=(), tmpfs=()):
        options = "rw,nosuid,nodev,uid=1000,gid=1000,mode=0700"
        body = {
            "Image": image,
            "NetworkDisabled": True,
            "Env": list(environment),
            "HostConfig": {
                "NetworkMode": "none",
                "ReadonlyRootfs": True,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp}"],
                "Memory": memory,
                "MemorySwap": memory,
                "PidsLimit": pids,
                "Tmpfs": {
                    "/work": f"{options},size=256m",
                    "/tmp": "rw,nosuid,nodev,mode=1777,size=64m",
                    "/home/coppice": f"{options},size=64m",
                    **dict(tmpfs),
                },
                "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
            },
        }
        mounts = [(run_folder, "/run/coppice")] * bool(run_folder) + [(OVERLAY, INSTALLED)] * bool(OVERLAY)
        body["HostConfig"]["Mounts"] = [
            {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": True}
            for source, target in mounts
        ]
        if command:
            body["Entrypoint"] = command
        self.id = call("POST", "/containers/create", body)["Id"]
        call("POST", f"/containers/{self.id}/start")

    def wait(self):
        return call("POST", f"/containers/{self.id}/wait")["StatusCode"]

    def state(self):
        return call("GET", f"/containers/{self.id}/json")["State"]

    def top(self):
        return call("GET", f"/containers/{self.id}/top?ps_args=-eo+pid,ppid,stat,comm")["Processes"]

    def log(self):
        raw, text = call("GET", f"/containers/{self.id}/logs?stdout=1&stderr=1"), b""
        while len(raw) >= 8:
            (size,) = struct.unpack(">I", raw[4:8])
            text += raw[8 : 8 + size]
            raw = raw[8 + size :]
        return text.decode(errors="replace")

    def remove(self):
        call("DELETE", f"/containers/{self.id}?force=1&v=1")
