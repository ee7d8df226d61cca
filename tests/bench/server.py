"""A server of kernels with Jupyter's API, as a process of our own: Coppice or a peer."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import requests

import kit
from client import Client, WebSocket

READY_S = 90


@contextlib.contextmanager
def ready(way):
    client = Client(way)
    try:
        client.wait_ready()
        yield client
    finally:
        client.close()


class Server:
    """argv names the port with {port} and the token with {token}; alive is a path that answers."""

    host = "127.0.0.1"
    framings = ("v1", "legacy")
    alive = "/api"
    end = signal.SIGTERM

    def __init__(self, name, argv, home, env=None):
        self.name, self.home, self.port = name, Path(home), kit.free_port()
        self.token = secrets.token_hex(16)
        self.argv = [a.format(port=self.port, token=self.token) for a in argv]
        self.env = {**kit.environment(home, name), **(env or {})}
        self.process, self.left = None, []

    # ---- the process ----
    def start(self):
        with open(self.home / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.home, env=self.env)
        try:
            kit.wait(self._answers, READY_S, f"{self.name} answers")
        except BaseException:
            self.stop()
            raise
        return self

    def _answers(self):
        if self.process.poll() is not None:
            log = (self.home / f"{self.name}.log").read_text(errors="replace").strip()
            raise RuntimeError(f"did not start: {(log.splitlines() or ['it said nothing'])[-1]}")
        with contextlib.suppress(requests.ConnectionError):
            return bool(kit.http("GET", self.url(self.alive), self.token))
        return False

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        """As a crash. The kernels that it started itself are ended by stop()."""
        self.left += kit.children(self.pid)
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.left += kit.children(self.pid)
            self.process.send_signal(self.end)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pid in self.left:
            with contextlib.suppress(ProcessLookupError):
                if self._is_ours(pid):
                    os.kill(pid, signal.SIGKILL)

    def _is_ours(self, pid):
        """That the number has not gone to somebody else since."""
        with contextlib.suppress(OSError):
            return str(self.home).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        return False

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ---- its API ----
    def url(self, path):
        return f"http://{self.host}:{self.port}{path}"

    def spec(self, kernel):
        """What to POST for a kernel of that name of kit.ARGV."""
        return {"name": kernel}

    def post(self, kernel):
        return kit.post(self.host, self.port, "/api/kernels", self.token, self.spec(kernel))["id"]

    def restart(self, kernel_id):
        kit.http("POST", self.url(f"/api/kernels/{kernel_id}/restart"), self.token)

    def delete(self, kernel_id):
        kit.http("DELETE", self.url(f"/api/kernels/{kernel_id}"), self.token)

    @contextlib.contextmanager
    def kernel(self, kernel):
        kernel_id = self.post(kernel)
        try:
            yield kernel_id
        finally:
            self.delete(kernel_id)

    def open(self, kernel_id, framing="v1", quick=False):
        return WebSocket(self, kernel_id, framing, quick)

    @contextlib.contextmanager
    def client(self, kernel, framing="v1", quick=False):
        """A ready client of a new kernel."""
        with self.kernel(kernel) as kernel_id, ready(self.open(kernel_id, framing, quick)) as c:
            yield c


class Coppice(Server):
    alive = "/healthz"
    end = signal.SIGINT  # its kernels end with it

    def __init__(self, home, *args, engines="docker,process", pool=0, cpus=None, name="coppice"):
        """pool: kernels kept ready; a measurement of one kernel wants no others beside it."""
        self.engines = engines.split(",")
        # A socket's path has 107 bytes at most.
        self.run_dir = tempfile.mkdtemp(prefix="cp.", dir="/tmp")
        binary = os.environ.get("COPPICE_BIN", str(kit.BUILD / "coppice"))
        # Half a processor is the usual limit of a kernel; here it would be a throttle that all
        # sides run into, and hide what is to be measured.
        super().__init__(name, [
            binary, "serve", "--listen", "127.0.0.1:{port}", "--data-dir", f"{home}/{name}/d",
            "--run-dir", self.run_dir, "--engine", engines, "--cpus", str(cpus or os.cpu_count()),
            "--pool-floor", str(pool), *args],
            home)
        data = self.home / name / "d"
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        (data / "tokens.ini").touch(mode=0o600)
        (data / "tokens.ini").write_text(
            f"[token bench]\nsecret = {self.token}\ntier = none\nscopes = read run admin\n")

    def spec(self, kernel):
        """python3 is docker's; beside docker the names of engine process say which they are."""
        if kernel == "docker":
            return {"name": "python3"}
        return {"name": f"process-{kernel}" if "docker" in self.engines else kernel}

    def show(self, view):
        return kit.http("GET", self.url(f"/admin/show/{view}"), self.token).json()

    def stop(self):
        super().stop()
        shutil.rmtree(self.run_dir, ignore_errors=True)
