"""Folders of branches: made and removed as the gateway names them, and nothing else."""

import os

import pytest

from coppice_kernel import branch_folder, losses
from coppice_kernel.descriptors import Table


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


@pytest.mark.parametrize(("path", "there"), [("/work", "/branches/b"), ("/work/a/c", "/branches/b/a/c"),
                                             ("/workers", None), ("/", None), ("/tmp/x", None)])
def test_the_same_place(path, there):
    assert branch_folder.moved(path, "/work", "/branches/b") == there


def test_names_that_hold_paths():
    import pathlib
    names = {"a": "/work/x.csv", "b": pathlib.Path("/work"), "c": b"/work/y", "d": "/workers", "e": 5,
             "f": ["/work/z"], "_g": "/work/x"}
    assert [one["name"] for one in losses.paths_below(names, "/work")] == ["a", "b", "c"]


class Ours:
    def has(self, _o):
        return True


@pytest.fixture
def pair(tmp_path):
    """Files of one name in two folders; that of the first is open, with its first byte read."""
    for folder, text in (("one", "abc"), ("two", "xyz")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(text)
    with open(tmp_path / "one" / "f", "rb+", buffering=0) as f:
        assert f.read(1) == b"a"
        yield tmp_path, f


def reopened(path):
    table = Table(Ours())
    table.files = [f for f in table.files if f.path.startswith(str(path))]
    return table.reopen(str(path / "one"), str(path / "two"))


def test_an_open_file_is_the_one_of_its_own_folder(pair):
    path, f = pair
    assert reopened(path) == []
    assert f.read(1) == b"y"
    f.write(b"!")
    assert (path / "two" / "f").read_text() == "xy!" and (path / "one" / "f").read_text() == "abc"


def test_one_that_is_not_there_leads_nowhere(pair):
    path, f = pair
    (path / "two" / "f").unlink()
    lost, = reopened(path)
    assert lost["kind"] == "file" and lost["name"] == str(path / "one" / "f")
    with pytest.raises(OSError):
        f.write(b"!")
    assert (path / "one" / "f").read_text() == "abc"
