"""Parked forks in the image: what images/kernel/smoke/test_park.py and test_park_matrix.py drive over
`ctl` alone, with the tables of the 25 probes and of the classes. COPPICE_SMOKE_OVERLAY lays a coppice_kernel over the image's."""

import subprocess
import sys

from gateway import ROOT


def test_in_the_image(container_engine, capsys):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--timeout", "300", "images/kernel/smoke/test_park.py",
         "images/kernel/smoke/test_park_matrix.py"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with capsys.disabled():
        print(run.stdout)
    assert run.returncode == 0 and "skipped" not in run.stdout
