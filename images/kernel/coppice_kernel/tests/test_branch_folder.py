"""Folders of branches: made and removed as the gateway names them, and nothing else."""

import os

import pytest

from coppice_kernel import branch_folder, filing, supervise


@pytest.fixture
def above(tmp_path):
    (tmp_path / "branches").mkdir()
    return str(tmp_path / "branches")


def test_made_once_and_gone_with_what_is_in_it(above):
    path = f"{above}/main.2"
    branch_folder.make(path, above)
    os.mkdir(f"{path}/deep")
    os.symlink("/", f"{path}/deep/away")
    branch_folder.make(path, above)
    assert os.listdir(path) == ["deep"]
    branch_folder.drop(path, above)
    assert os.listdir(above) == [] and os.path.isdir("/")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x"])
def test_no_other_path(above, name):
    os.mkdir(f"{above}/a")
    branch_folder.make(f"{above}/{name}", above)
    branch_folder.drop(f"{above}/{name}", above)
    assert os.listdir(above) == ["a"] and os.listdir(f"{above}/a") == []


def test_a_link_goes_alone(above, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    os.symlink(tmp_path / "kept", f"{above}/b")
    branch_folder.drop(f"{above}/b", above)
    assert os.listdir(above) == [] and (tmp_path / "kept" / "file").read_text() == "x"


def test_one_of_the_same_name_is_told_whole(monkeypatch):
    """What was told of a folder that went says nothing of the next one there."""
    files = filing.Filing(lambda *_, **__: None, lambda: True, {})
    files.ledger_of("/branches/x").told = {"a": None}
    files.ledger_of("/work").told = {"a": None}
    monkeypatch.setattr(branch_folder, "drop", lambda path: None)
    holder = type("Holder", (), {"filing": files})()
    supervise.Supervisor.on_drop_folder(holder, {"folder": "/branches/x"})
    assert files.ledger_of("/branches/x").told is None
    assert files.ledger_of("/work").told == {"a": None}
