"""A kernel that was nobody's: environment and folder before and after it is somebody's."""

import os

import pytest

from coppice_kernel import kernel


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.delenv("KERNEL_ID", raising=False)
    monkeypatch.setenv("KEPT", "before")
    monkeypatch.chdir("/")
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def test_nobodys_has_no_id(tmp_path):
    kernel.settle_in({"kernel": "", "env": {}, "cwd": str(tmp_path)})
    assert "KERNEL_ID" not in os.environ
    assert os.getcwd() == str(tmp_path)


def test_it_gets_its_owners(tmp_path):
    kernel.settle_in({"kernel": "", "env": {"SPEC": "1"}, "cwd": "/"})
    kernel.settle_in({"kernel": "k-1", "env": {"MINE": "2"}, "cwd": str(tmp_path)})
    wanted = {"KERNEL_ID": "k-1", "MINE": "2", "SPEC": "1", "KEPT": "before"}
    assert {name: os.environ.get(name) for name in wanted} == wanted
    assert os.getcwd() == str(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    kernel.settle_in({"kernel": "k-1", "env": {}, "cwd": str(tmp_path / "none")})
    assert os.getcwd() in ("/work", "/")
