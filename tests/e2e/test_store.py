"""Histories as things that take room: packed, collected, removed, indexed anew, backed up."""

import json
import os
import subprocess
import tarfile

import pytest

from gateway import ALICE, BOB, READER, Server, wait, within
from test_history import clone_url, executions, git, recorded
from test_survival import again

pytestmark = pytest.mark.timeout(300)


def coppice(server, *words, check=0):
    """A command beside that gateway, or on the folder that it had."""
    done = subprocess.run([server.argv[0], *words, "--data-dir", str(server.data_dir)],
                          env=server.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=within(60), check=False)
    assert done.returncode == check, done
    return done


def run_cells(server, kernel_id, n, first=0):
    with server.open(kernel_id) as c:
        c.info()
        for i in range(first, first + n):
            assert c.run(f"n = {i}\nprint(n)").status == "ok"
    return recorded(server, kernel_id, first + n)


def run_alone(server, kernel_id, n, first=0):
    """Each is recorded before the next one runs: as files of its own, where a burst is a pack."""
    for i in range(first, first + n):
        run_cells(server, kernel_id, 1, i)


def repository(server, kernel_id):
    return server.data_dir / "history" / f"{kernel_id}.git"


def packs(server, kernel_id):
    return list((repository(server, kernel_id) / "objects" / "pack").glob("*.idx"))


@pytest.fixture
def server(docker_server):
    return docker_server("store", "--pack-every", "20")


def test_packed_while_it_is_worked_in(server, tmp_path):
    kernel_id = server.start_kernel("python3")
    run_cells(server, kernel_id, 25)
    wait(lambda: packs(server, kernel_id), bool, within(20))
    history = run_cells(server, kernel_id, 5, 25)
    node = server.json(f"/history/{kernel_id}/nodes/{executions(history)[3]['id']}")
    assert node["code"] == "n = 3\nprint(n)"
    git("clone", "-q", clone_url(server, kernel_id), tmp_path / "story")
    assert git("rev-list", "--count", "HEAD", cwd=tmp_path / "story").stdout == "31\n"
    git("fsck", "--strict", cwd=repository(server, kernel_id))


def test_gc(server):
    kernel_id = server.start_kernel("python3")
    run_alone(server, kernel_id, 4)
    assert server.post(f"/history/{kernel_id}/gc", token=BOB).status_code == 404
    assert server.post(f"/history/{kernel_id}/gc", token=READER).status_code == 403
    refused = server.post(f"/history/{kernel_id}/gc", json={"keep_bytes": 1})
    assert (refused.status_code, refused.json()["reason"]) == (400, "invalid")
    freed = server.post(f"/history/{kernel_id}/gc")
    assert freed.status_code == 200 and freed.json()["freed_bytes"] > 0, freed.text
    assert "0 bytes freed" in coppice(server, "gc", kernel_id).stdout
    run_alone(server, kernel_id, 3, 4)
    (row,) = [r for r in json.loads(coppice(server, "gc", "--json").stdout) if r["history"] == kernel_id]
    assert row["freed_bytes"] > 0
    assert "no history" in coppice(server, "gc", "nonesuch", check=1).stderr
    git("fsck", "--strict", cwd=repository(server, kernel_id))


def test_a_history_is_removed(server):
    kernel_id = server.start_kernel("python3")
    run_cells(server, kernel_id, 3)
    busy = server.delete(f"/history/{kernel_id}")
    assert (busy.status_code, busy.json()["reason"]) == (409, "busy")
    assert server.delete(f"/history/{kernel_id}", token=BOB).status_code == 404
    assert server.delete(f"/api/kernels/{kernel_id}").status_code == 204
    # What the kernel ran last may be on its way to be recorded: busy until it is.
    gone = wait(lambda: server.delete(f"/history/{kernel_id}"), lambda r: r.status_code != 409,
                within(20))
    assert gone.status_code == 200 and gone.json()["freed_bytes"] > 0, gone.text
    assert server.get(f"/history/{kernel_id}").status_code == 404
    assert kernel_id not in server.get("/history").text
    assert server.delete(f"/history/{kernel_id}").status_code == 404
    assert not repository(server, kernel_id).exists()


def test_reindex(docker_server):
    server = docker_server("reindex")
    with server.kernel("python3") as kernel_id:
        run_cells(server, kernel_id, 4)
    before = server.json(f"/history/{kernel_id}")  # with its container the parks have gone
    done = coppice(server, "reindex", check=1)
    assert "end it first" in done.stderr
    server.process.send_signal(2)
    assert server.process.wait(within(20)) == 0
    for file in (server.data_dir / "history").glob("index.sqlite*"):
        file.unlink()
    assert coppice(server, "reindex").stdout == "1 histories, 4 executions\n"
    again(server)
    after = server.json(f"/history/{kernel_id}")
    assert after == before


def all_nodes(server, kernel_id):
    return [server.json(f"/history/{kernel_id}/nodes/{n['id']}")
            for n in executions(server.json(f"/history/{kernel_id}"))]


def test_backup_and_restore(docker_server, tmp_path):
    server = docker_server("backup", "--pack-every", "20")
    said = server.post("/chat/conversations", json={"title": "Kept"})
    assert said.status_code == 201, said.text
    kernel_id = server.start_kernel("python3")
    run_cells(server, kernel_id, 25)
    # What is learnt of the last one in the pause after it comes a moment later.
    wait(lambda: all_nodes(server, kernel_id)[24]["variables"], lambda v: v is not None, within(20))
    file = tmp_path / "all.tar"
    (server.data_dir / "backup.killed").mkdir()  # of one that was killed
    with server.open(kernel_id) as c:  # a cell runs, and others are recorded, meanwhile
        c.info()
        run = c.execute("import time\nfor i in range(20):\n    time.sleep(0.1)")
        coppice(server, "backup", str(file))
        assert c.collect(run, within(20)).status == "ok"
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert not list(server.data_dir.glob("backup.*")) and os.listdir(tmp_path) == ["all.tar"]
    with tarfile.open(file) as tar:
        names = tar.getnames()
    assert not [n for n in names if "index.sqlite" in n or n.endswith(".lock")]
    assert server.delete(f"/api/kernels/{kernel_id}").status_code == 204  # and its parks
    # The cell that ran meanwhile is not in it: the branch ends one before.
    wait(lambda: len(all_nodes(server, kernel_id)), lambda n: n == 26, within(20))
    before = all_nodes(server, kernel_id)[:25]
    before[-1]["branches"] = ["main"]

    other = Server("restored", "--engine", "docker", "--pool-floor", "0", tokens=None)
    refused = coppice(server, "restore", str(file), check=1)
    assert "nothing is overwritten" in refused.stderr
    done = coppice(other, "restore", str(file))
    assert done.stdout.startswith("1 histories with 25 executions")
    assert not list(other.home.glob("data.*"))
    with other:
        assert all_nodes(other, kernel_id)[:25] == before
        assert other.get("/history", token="wrong").status_code == 401
        assert kernel_id not in other.get("/history", token=BOB).text
        assert [c["title"] for c in other.json("/chat/conversations")["conversations"]] == ["Kept"]
        git("clone", "-q", clone_url(other, kernel_id, ALICE), tmp_path / "story")
        git("fsck", "--strict", cwd=repository(other, kernel_id))


def test_what_is_no_backup_is_not_restored(docker_server, tmp_path):
    other = Server("no-backup", tokens=None)
    (tmp_path / "text").write_text("no tar file")
    with tarfile.open(tmp_path / "other.tar", "w") as tar:
        tar.add(tmp_path / "text", "text")
    (tmp_path / "coppice-backup.json").write_text('{"format": 1}')
    os.symlink("/etc", tmp_path / "link")
    with tarfile.open(tmp_path / "link.tar", "w") as tar:
        tar.add(tmp_path / "coppice-backup.json", "coppice-backup.json")
        tar.add(tmp_path / "link", "history")
    for name, why in (("text", "tar"), ("other.tar", "no backup"), ("link.tar", "no backup"),
                      ("absent", "No such file")):
        assert why in coppice(other, "restore", str(tmp_path / name), check=1).stderr
        assert os.listdir(other.home) == ["data"] and not os.listdir(other.data_dir)
    coppice(other, "restore", check=2)
    failed = coppice(other, "backup", str(tmp_path / "no" / "folder.tar"), check=1)
    assert "No such file" in failed.stderr and not os.listdir(other.data_dir)
    other._remove()
