"""Working files in the image: what images/kernel/smoke/test_files.py drives over `ctl` alone. It prints what
a look at the folder costs. COPPICE_SMOKE_OVERLAY lays a coppice_kernel over the image's."""

import subprocess
import sys

from gateway import ROOT


def test_in_the_image(container_engine, capsys):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--timeout", "120", "images/kernel/smoke/test_files.py"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with capsys.disabled():
        print(run.stdout)
    assert run.returncode == 0 and "skipped" not in run.stdout
