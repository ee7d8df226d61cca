"""A look at a real folder, on a tmpfs, where a write through a map leaves no trace."""

import mmap
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from coppice_kernel import files, look, maps, names


@pytest.fixture
def folder():
    path = tempfile.mkdtemp(prefix="coppice-look-", dir="/dev/shm")
    yield path
    for above, _, _ in os.walk(path):
        os.chmod(above, 0o700)
    shutil.rmtree(path)


def write(path, content=b"x", settle=True):
    with open(path, "wb") as f:
        f.write(content)
    if settle:
        calm(path)


def calm(path):
    """Until a look at it is not within the moment in which a change leaves no trace."""
    while time.time_ns() - os.lstat(path).st_ctime_ns <= 2 * look.RACY_NS:
        os.sched_yield()


def test_rewrites_of_the_same_size_are_seen(folder):
    """Also where the time of modification is put back: 300 of 300."""
    path = f"{folder}/f"
    write(path)
    seen = 0
    for n in range(300):
        before = look.now(folder)
        s = os.stat(path)
        with open(path, "r+b") as f:
            f.write(bytes([n % 256]))
        os.utime(path, ns=(s.st_atime_ns, s.st_mtime_ns))
        after = look.now(folder)
        seen += after.changed_since(before) == ["f"] and not after.is_as(before)
    assert seen == 300


def test_nothing_changed(folder):
    write(f"{folder}/f")
    os.mkdir(f"{folder}/d")
    before = look.now(folder)
    after = look.now(folder)
    assert after.is_as(before) and after.changed_since(before) == []


def test_what_counts_as_changed(folder):
    for name in ("kept", "gone", "moved", "made", "linked"):
        write(f"{folder}/{name}")
    before = look.now(folder)
    os.remove(f"{folder}/gone")
    os.rename(f"{folder}/moved", f"{folder}/to")
    os.chmod(f"{folder}/made", 0o755)
    os.remove(f"{folder}/linked")
    os.symlink("kept", f"{folder}/linked")
    os.mkdir(f"{folder}/d")
    after = look.now(folder)
    assert sorted(after.changed_since(before)) == ["d", "linked", "made", "to"]
    assert not after.is_as(before)


def test_a_folder_that_is_a_link_is_not_entered(folder):
    os.mkdir(f"{folder}/elsewhere")
    write(f"{folder}/elsewhere/secret")
    os.symlink(f"{folder}/elsewhere", f"{folder}/work")
    assert not look.now(f"{folder}/work").rows and look.now(f"{folder}/work").beyond[""]
    assert not look.now(f"{folder}/none").rows and not look.now(f"{folder}/none").beyond


def test_links_are_not_followed(folder):
    os.symlink("/etc", f"{folder}/etc")
    os.symlink(".", f"{folder}/round")
    assert sorted(look.now(folder).rows) == ["etc", "round"]


def test_depth_names_and_what_is_no_file(folder):
    fd = os.open(folder, look.DIR)
    for _ in range(names.DEPTH_MAX + 40):
        os.mkdir("d", dir_fd=fd)
        sub = os.open("d", look.DIR, dir_fd=fd)
        os.close(fd)
        fd = sub
    os.close(fd)
    odd = [b"\xff\n", b"%", b"n" * 255, b".git"]
    for name in odd:
        write(os.fsencode(folder) + b"/" + name, settle=False)
    os.mkfifo(f"{folder}/fifo")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(f"{folder}/sock")
    os.mkdir(f"{folder}/closed", 0o000)
    found = look.now(folder)
    assert {os.fsdecode(n) for n in odd} | {"fifo", "sock", "closed"} <= set(found.rows)
    assert look.TOO_DEEP in found.beyond.values()
    assert ("closed" in found.beyond) == (os.getuid() != 0)


def test_more_than_can_be_looked_at(folder, monkeypatch):
    monkeypatch.setattr(look, "ENTRIES_MAX", 50)
    for n in range(60):
        write(f"{folder}/{n}", settle=False)
    found = look.now(folder)
    assert len(found.rows) == 50 and found.beyond[""] == look.TOO_MANY


def test_our_own_place_is_not_looked_at(folder):
    os.makedirs(f"{folder}/{names.LAY}/new")
    os.makedirs(f"{folder}/d/{names.LAY}")
    assert sorted(look.now(folder).rows) == ["d", f"d/{names.LAY}"]


def test_a_folder_that_becomes_a_link_meanwhile(folder):
    """Between a look and what is opened by it."""
    os.makedirs(f"{folder}/work/d")
    write(f"{folder}/work/d/f")
    os.makedirs(f"{folder}/secret")
    write(f"{folder}/secret/f")
    root = look.open_folder(f"{folder}/work")
    os.close(look.open_file(root, "d/f"))
    os.rename(f"{folder}/work/d", f"{folder}/was")
    os.symlink(f"{folder}/secret", f"{folder}/work/d")
    for ask in (look.open_file, look.stat_below, look.read_link):
        with pytest.raises(OSError):
            ask(root, "d/f")
    os.close(root)


def test_a_write_through_a_map(folder):
    """Leaves no trace in stat: whatever is mapped so counts as changed."""
    write(f"{folder}/f", b"x" * 5000)
    write(f"{folder}/other")
    own = maps.Own(folder)
    assert own.look() == frozenset()
    with open(f"{folder}/f", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        assert m[7] == ord("x")  # (the first touch of a page, if it is a write, is seen)
        before = look.now(folder)
        m[7] = 1
        after = look.now(folder)
        assert after.is_as(before)
        assert own.look() == {os.stat(f"{folder}/f").st_ino}
        assert after.changed_since(before, own.look()) == ["f"]
        assert own.look() == maps.Own(folder).look()
    assert own.look() == frozenset()
    with open(f"{folder}/f", "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        assert m[7] == 1 and maps.Own(folder).look() == frozenset()


MAPS = """
import mmap, sys
f = open(sys.argv[1], "r+b"); m = mmap.mmap(f.fileno(), 0); m[0]
print("mapped", flush=True); sys.stdin.read()
"""


def test_a_map_of_another_process(folder):
    write(f"{folder}/f", b"xyz")
    other = subprocess.Popen([sys.executable, "-c", MAPS, f"{folder}/f"], stdin=-1, stdout=-1)
    assert other.stdout.readline() == b"mapped\n"
    kernel = files.Files(folder, FakeDelivery())
    kernel.reply("1")
    kernel.hand()
    assert kernel.reply("2") == "same"
    kernel.look_at_others()
    assert kernel.reply("3") == "later"
    other.communicate()
    kernel.hand()
    kernel.look_at_others()
    assert kernel.reply("4") == "same"


class FakeDelivery:
    files = True

    def __init__(self):
        self.handed = []

    def hand_files(self, fds, **fields):
        self.handed.append((os.dup(fds[0]), fields["msg_id"]))
        return True

    def files_under_way(self):
        return 0


def test_what_a_reply_says(folder):
    delivery = FakeDelivery()
    kernel = files.Files(folder, delivery)
    assert kernel.reply("1") == "changed"  # nothing is known yet
    kernel.hand()
    assert kernel.reply("2") == "same"
    kernel.hand()
    write(f"{folder}/f")
    assert kernel.reply("3") == "changed"
    kernel.hand()
    assert [msg_id for _, msg_id in delivery.handed] == ["1", "3"]
    os.remove(f"{folder}/f")
    assert kernel.reply("4") == "changed"
    kernel.hand()
    delivery.files = False
    assert kernel.reply("5") is None
    delivery.files = True
    assert kernel.reply("6") == "changed"


def test_a_long_look_is_made_after_the_idle(folder):
    delivery = FakeDelivery()
    kernel = files.Files(folder, delivery)
    kernel.reply("1")
    kernel.hand()
    kernel._seconds = 2 * files.IN_REPLY_S
    assert kernel.reply("2") == "later"
    kernel.hand()
    assert [msg_id for _, msg_id in delivery.handed] == ["1", "2"]
    assert kernel.reply("3") == "same"  # it was short again


def test_what_could_not_be_handed_over_is_whole_the_next_time(folder):
    delivery = FakeDelivery()
    kernel = files.Files(folder, delivery)
    kernel.reply("1")
    kernel.hand()
    delivery.hand_files = lambda *_, **__: False
    write(f"{folder}/f")
    kernel.reply("2")
    kernel.hand()
    assert kernel.reply("3") == "changed"
