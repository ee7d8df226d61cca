"""What docs/HISTORY.md says to type works, in the order in which it stands there."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from gateway import ALICE, ROOT, within

pytestmark = pytest.mark.timeout(300)

# Before each command: a person types slowly enough for the cell before it to be a commit.
PRELUDE = """set -eu -o pipefail
recorded() {
  until curl -sf -H "Authorization: token $T" $SERVER/admin/show/counters |
      grep -Eq '"unrecorded": *0[,}]'
  do sleep 0.05; done
}
trap recorded DEBUG
"""


def blocks(page):
    return re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)


def test_history_as_it_is_written(docker_server, tmp_path):
    server = docker_server("as written")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "coppice").symlink_to(Path(server.argv[0]).resolve())
    first, *rest = blocks("HISTORY.md")
    was = "U=http://127.0.0.1:8899 TOKEN=SECRET "
    assert first.startswith(was)
    first = first.replace(was, f"U={server.url} TOKEN={ALICE} ").replace(
        "http://any:$TOKEN@127.0.0.1:8899/", f"http://any:$TOKEN@{server.url[7:]}/")
    lines = [line for line in "".join([first, *rest]).splitlines(keepends=True)
             if "no gateway may run" not in line]
    done = subprocess.run(
        ["bash", "-c", PRELUDE + "".join(lines)], cwd=tmp_path, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=within(100),
        env=os.environ | {"COPPICE_DATA_DIR": str(server.data_dir), "HOME": str(tmp_path),
                          "T": ALICE, "SERVER": server.url})
    assert done.returncode == 0, done
    assert "x * 6" in done.stdout and "main.2" in done.stdout, done
    assert "a kernel is on this history" in done.stdout, done  # what DELETE says
    assert {"all.tar", "restored", "story", "walk.ipynb", "walk.py"} <= set(os.listdir(tmp_path))
