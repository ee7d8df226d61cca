"""Parked forks outside a container: a real supervisor, and kernels of the ipykernel that is installed."""

import os
import pathlib
import subprocess
import sys

import pytest

from coppice_kernel.tests.fakegateway import FakeGateway
from coppice_kernel.tests.ground import Ground
from coppice_kernel.tests.park_hazards import *  # noqa: F403
from coppice_kernel.tests.park_kills import *  # noqa: F403
from coppice_kernel.tests.park_scenes import *  # noqa: F403

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def ground(tmp_path):
    run, work = tmp_path / "run", tmp_path / "work"
    run.mkdir()
    work.mkdir()
    gateway = FakeGateway(run, guest_folder=str(run))
    environment = {
        **os.environ,
        "COPPICE_CTL": f"{run}/ctl",
        "COPPICE_PREIMPORT": "coppice_kernel.kernel",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("PYTEST_CURRENT_TEST", None)  # or ipykernel captures no descriptors
    supervisor = subprocess.Popen([sys.executable, "-m", "coppice_kernel.supervise"], env=environment)
    gateway.accept(reports=True, parks_max=16)
    found = Ground(gateway, supervisor.pid, str(work))
    yield found
    for client in found.clients:
        client.close()
    gateway.close()
    supervisor.terminate()
    assert supervisor.wait(20) == 0
