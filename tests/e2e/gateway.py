"""A gateway under test: its process, its HTTP, its admin view."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import requests

import engine
import wire

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
OUT = Path(os.environ.get("COPPICE_E2E_OUT", BUILD / "e2e"))
LOGS = OUT / "logs" / os.environ.get("PYTEST_XDIST_WORKER", "")
ALICE, BOB, READER = "alice-secret-5f0c2d", "bob-secret-91ab7e", "reader-secret-77d1"
TOKENS = f"""[token alice]
secret = {ALICE}
tier = none
scopes = read run admin

[token bob]
secret = {BOB}
tier = none
scopes = read run

[token reader]
secret = {READER}
tier = none
scopes = read
"""
# A bound in a test says "not a hang"; a slow machine or a sanitized build only takes longer.
SLACK = float(os.environ.get("COPPICE_E2E_SLACK", "3"))


def within(seconds):
    return seconds * SLACK


class Gateway:
    """A running gateway, whoever started it."""

    run_dir = None
    ca = None

    def __init__(self, url, token=ALICE):
        self.url = url.rstrip("/")
        self.token = token
        self.http_session = requests.Session()
        self.http_session.trust_env = False

    # ---- HTTP ----
    def http(self, method, path, *, token=True, headers=None, **options):
        """token: True for the gateway's first, None for none, else the text."""
        head = dict(headers or {})
        if token:
            head.setdefault("Authorization", f"token {self.token if token is True else token}")
        options.setdefault("timeout", 60)
        options.setdefault("allow_redirects", False)
        if self.ca:
            options.setdefault("verify", self.ca)
        r = self.http_session.request(method, self.url + path, headers=head, **options)
        if r.headers.get("Content-Type", "").startswith("application/json") and r.content:
            wire.strict_json(r.content)
        return r

    def get(self, path, **options):
        return self.http("GET", path, **options)

    def post(self, path, **options):
        return self.http("POST", path, **options)

    def delete(self, path, **options):
        return self.http("DELETE", path, **options)

    def json(self, path, **options):
        r = self.get(path, **options)
        assert r.status_code == 200, f"{path}: {r.status_code} {r.text}"
        return r.json()

    # ---- kernels ----
    def start_kernel(self, name=None, *, token=True, env=None):
        body = {}
        if name:
            body["name"] = name
        if env:
            body["env"] = env
        r = self.post("/api/kernels", json=body, token=token)
        assert r.status_code == 201, f"{r.status_code} {r.text}"
        return r.json()["id"]

    @contextlib.contextmanager
    def kernel(self, name=None, **options):
        kernel_id = self.start_kernel(name, **options)
        try:
            yield kernel_id
        finally:
            self.delete(f"/api/kernels/{kernel_id}", token=options.get("token", True))

    def model(self, kernel_id):
        return self.json(f"/api/kernels/{kernel_id}")

    def wait_state(self, kernel_id, state, timeout=30):
        return wait(lambda: self.model(kernel_id), lambda m: m["execution_state"] == state, timeout)

    # ---- WebSockets ----
    def channels_url(self, kernel_id, query=""):
        return f"ws{self.url[4:]}/api/kernels/{kernel_id}/channels{query}"

    def open(self, kernel_id, framing="legacy", *, session=None, token=True, headers=None,
             subprotocols=None, in_query=False, **options):
        """A client of that kernel. session None: one of its own; "": no session_id is sent."""
        client = wire.Client(None, framing, session)
        query = [] if session == "" else [f"session_id={client.session}"]
        head = dict(headers or {})
        secret = self.token if token is True else token
        if secret and in_query:
            query.append(f"token={secret}")
        elif secret:
            head.setdefault("Authorization", f"token {secret}")
        if subprotocols is None and framing == "v1":
            subprotocols = [wire.V1]
        if self.ca:
            options.setdefault("sslopt", {"ca_certs": self.ca})
        client.ws = wire.open_socket(
            self.channels_url(kernel_id, "?" + "&".join(query) if query else ""),
            subprotocols=subprotocols, headers=head, **options)
        expected = wire.V1 if framing == "v1" else None
        assert client.ws.subprotocol == expected, f"agreed on {client.ws.subprotocol}"
        return client

    # ---- the admin view ----
    def show(self, view):
        return self.json(f"/admin/show/{view}")

    def wait_show(self, view, wanted, timeout=30):
        return wait(lambda: self.show(view), wanted, timeout)

    def slot_of(self, kernel_id):
        """Where a kernel runs: pid, frames counted, and its container's name."""
        (row,) = self.rows_of("slots", kernel_id)
        return row

    def container_of(self, kernel_id):
        return self.slot_of(kernel_id)["slot"]["container"]

    def rows_of(self, view, kernel_id):
        """Rows of that view that belong to one kernel."""
        key = "id" if view == "kernels" else "kernel"
        return [r for r in self.show(view) if r.get(key) == kernel_id]


def wait(ask, wanted, timeout=30):
    """Asks until the answer is what is wanted; that answer."""
    deadline = time.monotonic() + timeout
    while True:
        answer = ask()
        if wanted(answer):
            return answer
        assert time.monotonic() < deadline, f"not in {timeout} s; last answer {answer!r}"
        time.sleep(0.02)  # between two questions, not instead of one


class Server(Gateway):
    """A `coppice serve` of our own, with folders of its own."""

    def __init__(self, name, *args, config="", env=None, base_url="/", tokens=TOKENS,
                 scheme="http"):
        self.name, self.exit_code = name, None
        self.run_dir = tempfile.mkdtemp(prefix="cp.", dir="/tmp")
        self.home = Path(tempfile.mkdtemp(prefix="coppice-e2e-", dir="/tmp"))
        self.data_dir = self.home / "data"
        self.data_dir.mkdir(mode=0o700)
        token_file = self.data_dir / "tokens.ini"
        if tokens is not None:
            token_file.touch(mode=0o600)
            token_file.write_text(tokens)
        self.argv = [
            os.environ.get("COPPICE_BIN", str(BUILD / "coppice")), "serve",
            "--listen", "127.0.0.1:0", "--data-dir", str(self.data_dir),
            "--run-dir", self.run_dir, *os.environ.get("COPPICE_E2E_ARGS", "").split(),
        ]
        if base_url != "/":
            self.argv += ["--base-url", base_url]
        if config:
            (self.home / "coppice.ini").write_text(config)
            self.argv += ["--config", str(self.home / "coppice.ini")]
        self.argv += [str(a) for a in args]
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("COPPICE_", "JUPYTER"))}
        self.env |= {"HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home), **(env or {})}
        self.ready_line = re.compile(rf"Coppice is ready: ({scheme}://127\.0\.0\.1:(\d+)(/\S*))")
        super().__init__("http://0")

    def start(self):
        LOGS.mkdir(parents=True, exist_ok=True)
        # One log a server; a second of the same name gets a number, so that none is overwritten.
        self.log_path = LOGS / f"{self.name}.log"
        for n in range(2, 1000):
            if not self.log_path.exists():
                break
            self.log_path = LOGS / f"{self.name}-{n}.log"
        self.log_file = open(self.log_path, "wb")
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log_file, env=self.env, cwd=self.home)
        self.printed = []
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if not self.ready.wait(within(15)) or not self.url_seen:
            self.kill()
            raise RuntimeError(f"{self.name} did not become ready; {self.log_path}:\n{self.log()}")
        self.url, self.port = self.url_seen
        wait(lambda: self._healthy(), bool, within(10))
        return self

    url_seen = None

    def _read(self):
        for line in self.process.stdout:
            text = line.decode("utf-8", "replace")
            found = self.ready_line.search(text)
            if not found:  # the line with the URL may hold the token: that is its purpose
                self.printed.append(text)
            else:
                url = found[1].split("?")[0].rstrip("/")
                self.url_seen = url, int(found[2])
                self.ready.set()
        self.ready.set()

    def _healthy(self):
        assert self.process.poll() is None, f"{self.name} ended: {self.log()}"
        try:
            return self.get("/healthz", token=None, timeout=5).status_code == 200
        except requests.ConnectionError:
            return False

    def log(self):
        return self.log_path.read_text("utf-8", "replace") + "".join(self.printed)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(5)
        self.log_file.close()
        for container in engine_rows(self.run_dir):
            engine.call("DELETE", f"/containers/{container['Id']}", {"force": "1"})
        self._remove()

    def stop(self, signo=signal.SIGINT):
        """An ordered end, and that it was one."""
        try:
            self.process.send_signal(signo)
            self.exit_code = self.process.wait(within(20))
            self.reader.join(5)
            log = self.log()
            left = engine_rows(self.run_dir)
            files = sorted(os.listdir(self.run_dir)) if os.path.isdir(self.run_dir) else []
        finally:
            self.kill()
        assert self.exit_code == 0, f"exit code {self.exit_code}; end of the log:\n{log[-4000:]}"
        assert not left, f"containers left: {[c['Names'] for c in left]}"
        assert not files, f"left in the run folder: {files}"
        for secret in (ALICE, BOB, READER):
            assert secret not in log, "a token is in the log"

    def _remove(self):
        shutil.rmtree(self.run_dir, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        # A failed test may have left anything; its own message is the one to read.
        self.stop() if kind is None else self.kill()


def engine_rows(run_dir):
    return engine.containers(run_dir) if os.path.exists(engine.SOCKET) else []
