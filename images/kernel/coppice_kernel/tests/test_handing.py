"""What a kernel hands over, and what a guest could hand over in its place."""

import fcntl
import json
import os
import random

import pytest

from coppice_kernel import handing, look

NAMES = [b"a", b"d/b", b"\xff\n%", b"n" * 255]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "d").mkdir()
    for name in NAMES:
        with open(os.fsencode(tmp_path) + b"/" + name, "wb") as f:
            f.write(b"of " + name)
    os.symlink("a", tmp_path / "l")
    return str(tmp_path)


def test_there_and_back(folder):
    seen = look.now(folder)
    carrier = handing.pack(folder, seen, None)
    found = handing.Handed(carrier)
    assert found.look.rows == seen.rows and not found.based and not found.read
    for name in NAMES:
        at, size = found.given[os.fsdecode(name)]
        assert os.pread(carrier, size, at) == b"of " + name
    at, size = found.given["l"]
    assert os.pread(carrier, size, at) == b"a"
    os.close(carrier)


def test_what_has_no_room_is_to_be_read(folder):
    seen = look.now(folder)
    carrier = handing.pack(folder, seen, ["a", "n" * 255], room=50)
    found = handing.Handed(carrier)
    assert found.based and list(found.given) == ["a"] and found.read == {"n" * 255}
    os.close(carrier)


def test_what_changed_since_the_look_is_not_copied(folder):
    seen = look.now(folder)
    with open(f"{folder}/a", "ab") as f:
        f.write(b"more")
    os.remove(f"{folder}/d/b")
    carrier = handing.pack(folder, seen, ["a", "d/b", "l"])
    found = handing.Handed(carrier)
    assert list(found.given) == ["l"] and found.read == {"a", "d/b"}
    os.close(carrier)


def sealed(content):
    fd = os.memfd_create("x", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, content)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, handing.SEALS)
    return fd


def refused(fd):
    with pytest.raises(handing.Unfit):
        handing.Handed(fd)
    os.close(fd)


def test_what_is_not_sealed_is_refused(folder):
    carrier = handing.pack(folder, look.now(folder), None)
    content = os.pread(carrier, 1 << 20, 0)
    os.close(carrier)
    handing.Handed(fd := sealed(content))
    os.close(fd)
    open_one = os.memfd_create("x", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(open_one, content)
    refused(open_one)
    refused(os.open(folder, os.O_RDONLY))


def test_garbage_is_refused(folder):
    carrier = handing.pack(folder, look.now(folder), None)
    content = os.pread(carrier, 1 << 20, 0)
    os.close(carrier)
    drawn = random.Random(2)
    for n in range(300):
        cut = bytearray(content[: drawn.randrange(len(content))] if n % 2 else content)
        for _ in range(drawn.randrange(1, 6)):
            if cut:
                cut[drawn.randrange(len(cut))] = drawn.randrange(256)
        fd = sealed(bytes(cut))
        try:
            found = handing.Handed(fd)
        except handing.Unfit:
            pass
        else:
            for at, size in found.given.values():
                assert len(os.pread(fd, size, at)) == size
        os.close(fd)


@pytest.mark.parametrize("path", [b"../x", b"a//b", b"/etc/passwd", b"a/.", b".coppice-lay/new/1", b"d/" * 80 + b"x"])
def test_paths_that_lead_elsewhere_are_refused(path):
    header = {"at": 0, "based": True, "beyond": [], "count": 1, "given": [], "read": [],
              "paths": len(path) + 1}
    text = json.dumps(header).encode()
    refused(sealed(path + b"\0" + bytes(40) + text + len(text).to_bytes(8, "big")))
