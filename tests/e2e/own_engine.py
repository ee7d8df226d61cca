"""A container engine of a test's own: a second dockerd, which can be killed and restarted.

It has its own folders, its own containerd (or, where the machine runs one, a namespace in it) and
its own network namespace: a dockerd without a bridge deletes `docker0`, which is another's."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import engine
from gateway import LOGS, wait, within

ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


def _as_root(*argv):
    return subprocess.run([*ROOT, *argv], check=False, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)


class OwnEngine:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ce.", dir="/tmp"))
        self.socket = str(self.folder / "sock")
        self.process = None
        # In memory: an image is soon there and soon gone.
        (self.folder / "data").mkdir()
        _as_root("mount", "-t", "tmpfs", "-o", "size=3g,mode=711", "tmpfs",
                 str(self.folder / "data"))

    def start(self, live_restore):
        (self.folder / "daemon.json").write_text(json.dumps({
            "hosts": [f"unix://{self.socket}"], "group": str(os.getegid()),
            "data-root": str(self.folder / "data"), "exec-root": str(self.folder / "exec"),
            "pidfile": str(self.folder / "pid"), "live-restore": live_restore,
            "bridge": "none", "iptables": False, "ip-forward": False, "ip-masq": False}))
        LOGS.mkdir(parents=True, exist_ok=True)
        with open(LOGS / "own-engine.log", "ab") as log:
            self.process = subprocess.Popen(
                [*ROOT, "unshare", "--net", "dockerd", "--config-file",
                 str(self.folder / "daemon.json"), "--containerd-namespace", self.folder.name,
                 "--containerd-plugins-namespace", f"{self.folder.name}-plugins"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait(self._answers, bool, within(30))

    def _answers(self):
        assert self.process.poll() is None, (LOGS / "own-engine.log").read_text()[-3000:]
        connection = engine.Connection(self.socket)
        try:
            connection.request("GET", "/_ping")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self, how=signal.SIGTERM):
        """Waits for its end."""
        process, self.process = self.process, None
        if process.poll() is None:
            _as_root("kill", f"-{int(how)}", (self.folder / "pid").read_text())
        process.wait(within(30))
        # Its containerd goes with it; where nobody reaps that, dockerd would take it for alive.
        _as_root("rm", "-f", str(self.folder / "exec/containerd/containerd.pid"))

    def has_image(self, name):
        connection = engine.Connection(self.socket)
        connection.request("GET", f"/images/{name}/json")
        status = connection.getresponse().status
        connection.close()
        return status == 200

    def take_image(self, name):
        """From the engine that all others use."""
        if self.has_image(name):
            return
        source, target = engine.Connection(engine.SOCKET), engine.Connection(self.socket)
        source.request("GET", f"/images/{name}/get")
        target.request("POST", "/images/load", source.getresponse(), encode_chunked=True,
                       headers={"Content-Type": "application/x-tar", "Transfer-Encoding": "chunked"})
        answer = target.getresponse()
        text = answer.read()
        source.close()
        target.close()
        assert answer.status == 200 and self.has_image(name), text[-1000:]

    # ---- what is left of it ----

    def _below(self):
        """Its own processes, shims among them: each was given a path in its folder."""
        mine = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and self._is_mine(entry):
                mine.append(entry.name)
        return mine

    def _is_mine(self, entry):
        try:
            return str(self.folder).encode() in (entry / "cmdline").read_bytes()
        except OSError:
            return False

    def _mounts(self):
        points = [line.split()[4] for line in open("/proc/self/mountinfo", encoding="utf-8")]
        return sorted((p for p in points if p.startswith(f"{self.folder}/")), reverse=True)

    def close(self):
        if self.process:
            self.stop()
        for pid in self._below():
            _as_root("kill", "-9", pid)
        for point in self._mounts():
            _as_root("umount", "--lazy", point)
        _as_root("rm", "-rf", "--one-file-system", str(self.folder))
        shutil.rmtree(self.folder, ignore_errors=True)
