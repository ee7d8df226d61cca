"""Working files outside a container: a real supervisor, and kernels of the ipykernel that is installed, in a
folder on a tmpfs as in the image."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from coppice_kernel.tests.fakegateway import FakeGateway
from coppice_kernel.tests.files_scenes import *  # noqa: F403
from coppice_kernel.tests.ground import Ground
from coppice_kernel.tests.keeper import Keeper

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def ground(tmp_path):
    work = tempfile.mkdtemp(prefix="coppice-files-", dir="/dev/shm")
    gateway = FakeGateway(tmp_path, guest_folder=str(tmp_path))
    environment = {
        **os.environ,
        "COPPICE_CTL": f"{tmp_path}/ctl",
        "COPPICE_PREIMPORT": "coppice_kernel.kernel",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("PYTEST_CURRENT_TEST", None)  # or ipykernel captures no descriptors
    supervisor = subprocess.Popen([sys.executable, "-m", "coppice_kernel.supervise"], env=environment)
    assert gateway.accept(reports=True, parks_max=16, files=True)["files"]
    found = Ground(gateway, supervisor.pid, work)
    found.keeper = Keeper(gateway)
    yield found
    for client in found.clients:
        client.close()
    gateway.close()
    supervisor.terminate()
    assert supervisor.wait(20) == 0
    shutil.rmtree(work)
