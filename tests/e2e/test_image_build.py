"""images/kernel/build against an engine that has no image yet: a stub on a socket of its own."""

import contextlib
import json
import os
import re
import socketserver
import subprocess
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from gateway import ROOT, within

BASE = re.compile(r"/images/coppice-kernel-base:([0-9a-f]+)/json")
BROKEN = "no space left on device"


class _Engine(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path, cache, refuses_import=False):
        super().__init__(path, _Handler)
        self.cache, self.refuses_import, self.asked = cache, refuses_import, []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "stub"  # a unix socket's peer has no address

    def log_message(self, format, *args):
        """What was asked is in `asked`."""

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.server.asked.append(self.path)
        if found := BASE.fullmatch(self.path):
            # Spares the test a real root filesystem: the next step finds it made.
            (self.server.cache / f"rootfs-{found[1]}.tar").write_bytes(bytes(10240))
        self.answer(404, {"message": "No such image"})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(self.path)
        if self.path.startswith("/images/create") and self.server.refuses_import:
            self.answer(500, {"message": BROKEN})
        else:
            self.answer(200, {"stream": "fine"})


@contextlib.contextmanager
def stub(folder, **options):
    cache = folder / "cache"
    cache.mkdir()
    engine = _Engine(str(folder / "engine"), cache, **options)
    thread = threading.Thread(target=engine.serve_forever)
    thread.start()
    try:
        yield engine
    finally:
        engine.shutdown()
        thread.join()
        engine.server_close()


def build(engine):
    env = {**os.environ, "COPPICE_ENGINE_SOCKET": engine.server_address,
           "COPPICE_IMAGE_CACHE": str(engine.cache)}
    return subprocess.run([str(ROOT / "images/kernel/build")], env=env, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=within(30))


@pytest.mark.timeout(120)
def test_a_machine_without_any_image(tmp_path):
    with stub(tmp_path) as engine:
        done = build(engine)
    assert done.returncode == 0, done.stderr
    assert "coppice-kernel is ready" in done.stdout
    made = [path.split("?")[0] for path in engine.asked if "?" in path]
    assert made == ["/images/create", "/build"]


@pytest.mark.timeout(120)
def test_an_import_that_fails_is_explained(tmp_path):
    with stub(tmp_path, refuses_import=True) as engine:
        done = build(engine)
    assert done.returncode != 0
    assert BROKEN in done.stderr
    assert "/build" not in {path.split("?")[0] for path in engine.asked}
