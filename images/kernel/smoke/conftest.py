"""Run with: python3 -m pytest images/kernel/smoke [--image NAME]. Needs pytest, pyzmq, an engine."""

import pathlib
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

for name in ("ground", "keeper", "files_scenes", "park_scenes", "park_hazards", "park_kills"):
    pytest.register_assert_rewrite(f"coppice_kernel.tests.{name}")

from coppice_kernel.tests.fakegateway import FakeGateway  # noqa: E402
from engine_api import Container  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--image", default="coppice-kernel")


class Place:
    """A container, the gateway's side of its sockets, and numbers for lines."""

    def __init__(self, image, **limits):
        self.folder = tempfile.TemporaryDirectory(prefix="coppice-smoke-")
        self.gateway = FakeGateway(self.folder.name)
        seccomp = (HERE.parent / "seccomp.json").read_text()
        self.container = Container(image, self.folder.name, seccomp, **limits)
        self.hello = self.gateway.accept()
        self.line = 0
        self.clients = []

    def start(self, **start):
        self.line += 1
        pid = self.gateway.start(self.line, **start)
        client = self.gateway.client(self.line)
        client.line, client.pid = self.line, pid
        client.info = client.ready()
        self.clients.append(client)
        return client

    def end_lines(self):
        for client in self.clients:
            client.close()
            self.gateway.send("kill", line=client.line)
        self.clients.clear()
        self.gateway.seen.clear()

    def remove(self):
        self.gateway.close()
        self.container.remove()
        self.folder.cleanup()


@pytest.fixture(scope="session")
def image(request):
    return request.config.getoption("--image")


@pytest.fixture(scope="module")
def shared(image):
    place = Place(image)
    yield place
    print(place.container.log())
    place.remove()


@pytest.fixture
def place(shared):
    """The module's container; what a test started in it is ended after it."""
    yield shared
    shared.end_lines()


@pytest.fixture
def kernel(place):
    return place.start()


@pytest.fixture
def make_place(image):
    """For tests that need limits or a container of their own."""
    made = []

    def make(**limits):
        made.append(Place(image, **limits))
        return made[-1]

    yield make
    for place in made:
        place.remove()
