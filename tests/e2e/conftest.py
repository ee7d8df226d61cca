"""Fixtures: the gateways, and kernels on them. COPPICE_E2E_URL and COPPICE_E2E_TOKEN point the
tests at another server instead, to try a test itself against Jupyter Server."""

import os
import shutil
import subprocess
import tempfile

import pytest

import engine
import specs
from gateway import LOGS, OUT, ROOT, Gateway, Server

# Images under other names may be tried with these: the first by COPPICE_E2E_ARGS="--image NAME".
NEWEST = os.environ.get("COPPICE_E2E_NEWEST", "coppice-kernel-newest")
CONFIG = f"""
[kernelspec newest]
image = {NEWEST}
display_name = Python 3 (newest ipykernel)
language = python

[kernelspec foreign]
image = {NEWEST}
argv = ["python3", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]
display_name = Python 3 (as anybody's image)
language = python
interrupt_mode = signal
"""


_skipped = []


def pytest_sessionstart(session):
    is_worker = hasattr(session.config, "workerinput")
    if not session.config.option.collectonly and not is_worker:
        shutil.rmtree(LOGS, ignore_errors=True)


def pytest_runtest_logreport(report):
    if report.skipped:
        _skipped.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """A skipped test is a failed one."""
    if _skipped and exitstatus == 0:
        session.exitstatus = 1
    for nodeid in _skipped:
        print(f"\nskipped, which counts as failed: {nodeid}")


@pytest.fixture(scope="session")
def external():
    url = os.environ.get("COPPICE_E2E_URL")
    return Gateway(url, os.environ.get("COPPICE_E2E_TOKEN", "")) if url else None


@pytest.fixture(scope="session")
def container_engine():
    """The engine runs and has the images; a missing one is an error, never a skip."""
    subprocess.run([str(ROOT / ".ci" / "engine"), "start"], check=True, stdin=subprocess.DEVNULL)
    assert engine.has_image("coppice-kernel"), "no image coppice-kernel: run `make image`"
    return engine


@pytest.fixture(scope="session")
def spec_path():
    folder = tempfile.mkdtemp(prefix="coppice-specs-", dir="/tmp")
    yield specs.write(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def docker_gateway(external, request):
    """The gateway that most tests use: kernels in containers."""
    if external:
        yield external
        return
    request.getfixturevalue("container_engine")
    server = Server("docker", "--engine", "docker", config=CONFIG).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def process_gateway(external, spec_path):
    """Kernels as processes: scripted ones, and the newest ipykernel with CURVE."""
    if external:
        yield external
        return
    server = Server("process", "--engine", "process", env=process_env(spec_path)).start()
    yield server
    server.stop()


def process_env(spec_path):
    return {"JUPYTER_PATH": spec_path, "IPYTHONDIR": spec_path + "/ipython"}


@pytest.fixture
def process_server(spec_path):
    """Makes a gateway with options of its own, kernels as processes."""
    made = []

    def make(name, *args, **options):
        options.setdefault("env", {}).update(process_env(spec_path))
        server = Server(name, "--engine", "process", *args, **options).start()
        made.append(server)
        return server

    yield make
    for server in made:
        if server.exit_code is None:
            server.stop()


@pytest.fixture
def docker_server(container_engine):
    """Makes a gateway with options of its own, kernels in containers; containers are those of its
    kernels alone, unless it asks for a pool."""
    made = []

    def make(name, *args, **options):
        options.setdefault("config", CONFIG)
        pool = () if "--pool-floor" in args else ("--pool-floor", "0")
        server = Server(name, "--engine", "docker", *pool, *args, **options).start()
        made.append(server)
        return server

    yield make
    for server in made:
        if server.exit_code is None:
            server.stop()


@pytest.fixture
def kernel(docker_gateway):
    """A kernel in a container, ended after the test."""
    with docker_gateway.kernel("python3") as kernel_id:
        yield kernel_id


@pytest.fixture
def client(docker_gateway, kernel):
    """A legacy client of `kernel`, which is up."""
    with docker_gateway.open(kernel) as c:
        c.info()
        yield c


@pytest.fixture
def v1_client(docker_gateway, kernel):
    with docker_gateway.open(kernel, "v1") as c:
        c.info()
        yield c


@pytest.fixture(params=["legacy", "v1"])
def any_client(request, docker_gateway, kernel):
    """Once by each framing."""
    with docker_gateway.open(kernel, request.param) as c:
        c.info()
        yield c


@pytest.fixture
def fake_kernel(process_gateway):
    with process_gateway.kernel("fake") as kernel_id:
        yield kernel_id


@pytest.fixture(params=["legacy", "v1"])
def fake_client(request, process_gateway, fake_kernel):
    """A client of the scripted kernel, once by each framing."""
    with process_gateway.open(fake_kernel, request.param) as c:
        c.info()
        yield c


@pytest.fixture(scope="session")
def shots():
    folder = OUT / "shots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
