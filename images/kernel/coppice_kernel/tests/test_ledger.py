"""What is told of a folder: entries, budget, what is lost, and Changes that follow each other."""

import hashlib
import json
import os
import shutil
import socket
import tempfile

import pytest

from coppice_kernel import entries, ledger, look


@pytest.fixture
def book():
    path = tempfile.mkdtemp(prefix="coppice-ledger-", dir="/dev/shm")
    yield ledger.Ledger(path)
    shutil.rmtree(path)


def take(book, **more):
    """A look of the supervisor's own, and its Change."""
    seen = finished(book.look())
    finished(book.take(seen, book.may_differ(seen), **more))
    return book.change()


def finished(steps):
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def write(book, name, content=b"x"):
    with open(f"{book.folder}/{name}", "wb") as f:
        f.write(content)


def sparse(book, name, size):
    with open(f"{book.folder}/{name}", "wb") as f:
        f.truncate(size)


def changed(change):
    return {e["path"]: e for e in change["changed"]}


def test_entries(book):
    write(book, "a", b"hello")
    write(book, "empty", b"")
    write(book, "run.sh", b"#!")
    os.chmod(f"{book.folder}/run.sh", 0o755)
    os.symlink("/etc/passwd", f"{book.folder}/l")
    os.makedirs(f"{book.folder}/d/e")
    big = bytes(range(256)) * 5000
    write(book, "big", big)
    write(book, "edge", big[: 1 << 20])
    found = take(book)
    assert (found["full"], found["removed"], found["lost"]) == (True, [], [])
    told = changed(found)
    assert told["a"] == {"path": "a", "mode": "100644", "bytes": 5, "blob": "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"}
    assert told["empty"]["blob"] == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # git's
    assert told["run.sh"]["mode"] == "100755"
    assert told["l"]["mode"] == "120000" and told["l"]["bytes"] == 11
    assert told["d/e"] == {"path": "d/e", "mode": "40000", "bytes": 0} and "d" not in told
    pieces = [big[: 1 << 20], big[1 << 20 :]]
    assert told["big"]["chunks"] == [hashlib.blake2b(p, digest_size=32).hexdigest() for p in pieces]
    assert "blob" in told["edge"]


def test_changes_follow_each_other(book):
    write(book, "a")
    os.mkdir(f"{book.folder}/d")
    take(book)
    assert take(book) == {"full": False, "changed": [], "removed": [], "lost": []}
    write(book, "d/b")
    os.utime(f"{book.folder}/a")  # touched, the same
    found = take(book)
    assert sorted(changed(found)) == ["d/b"] and found["removed"] == ["d"]
    os.remove(f"{book.folder}/d/b")
    found = take(book)
    assert sorted(changed(found)) == ["d"] and found["removed"] == ["d/b"]
    book.told = None
    found = take(book)
    assert found["full"] and sorted(changed(found)) == ["a", "d"]


def test_budget(book, monkeypatch):
    monkeypatch.setattr(entries, "BUDGET_BYTES", 1000)
    monkeypatch.setattr(entries, "BUDGET_FILE", 900)
    sparse(book, "largest", 901)
    sparse(book, "large", 600)
    sparse(book, "medium", 500)
    sparse(book, "small", 400)
    told = changed(take(book))
    assert told["largest"]["lost"] == entries.OVER_FILE and told["large"]["lost"] == entries.OVER_BYTES
    assert "blob" in told["medium"] and "blob" in told["small"]
    os.remove(f"{book.folder}/medium")
    found = take(book)
    assert "blob" in changed(found)["large"]  # there is room now, though it is the same


def test_budget_of_files(book, monkeypatch):
    monkeypatch.setattr(entries, "BUDGET_FILES", 3)
    for n in range(5):
        sparse(book, str(n), n)
    told = changed(take(book))
    assert {p for p, e in told.items() if "lost" in e} == {"3", "4"}


def test_real_budget(book):
    sparse(book, "over", (64 << 20) + 1)
    for n in range(5):
        sparse(book, f"f{n}", (60 << 20) + n)
    told = changed(take(book))
    assert {p: e["lost"] for p, e in told.items() if "lost" in e} == {
        "over": "not kept: it is larger than 64 MiB",
        "f4": "not kept: over the budget of 256 MiB",
    }
    assert len(told["f0"]["chunks"]) == 60


def test_what_is_no_entry(book):
    for n in range(23):
        os.mkfifo(f"{book.folder}/fifo{n:02}")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(f"{book.folder}/a.sock")
    found = take(book)
    assert found["changed"] == []
    assert len(found["lost"]) == 21 and found["lost"][0] == {"path": "a.sock", "reason": "a socket is not kept"}
    assert found["lost"][-1]["reason"] == "and 4 more that are not kept"


def test_a_file_that_changes_while_it_is_read(book):
    write(book, "f", b"y" * (3 << 20))
    seen = finished(book.look())
    steps = book.take(seen, ())
    next(steps)
    with open(f"{book.folder}/f", "r+b") as f:
        f.write(b"z")
    finished(steps)
    assert changed(book.change())["f"]["lost"] == entries.MOVED
    assert "chunks" in changed(take(book))["f"]


def test_a_file_that_becomes_a_link_or_a_fifo_before_it_is_read(book):
    for name in ("l", "f", "d"):
        write(book, name)
    seen = finished(book.look())
    for name in ("l", "f", "d"):
        os.remove(f"{book.folder}/{name}")
    os.symlink("/etc/passwd", f"{book.folder}/l")
    os.mkfifo(f"{book.folder}/f")
    os.mkdir(f"{book.folder}/d")
    finished(book.take(seen, ()))
    assert all("lost" in e for e in book.change()["changed"])


def test_hard_links_are_two_files(book):
    write(book, "a", b"hello")
    os.link(f"{book.folder}/a", f"{book.folder}/b")
    told = changed(take(book))
    assert told["a"]["blob"] == told["b"]["blob"]


def test_what_was_not_looked_at_is_not_told_as_removed(book, monkeypatch):
    for n in range(9):
        write(book, str(n))
    take(book)
    monkeypatch.setattr(look, "ENTRIES_MAX", 4)
    found = take(book)
    assert found["removed"] == [] and found["changed"] == []
    assert found["lost"] == [{"path": "", "reason": look.TOO_MANY}]


def test_what_cannot_be_opened_is_not_told_as_removed(book, monkeypatch):
    os.makedirs(f"{book.folder}/d/e")
    write(book, "d/e/f")
    write(book, "g")
    take(book)
    real = os.open

    def fails(path, *arguments, **more):
        if path == failing:
            raise OSError(24, "Too many open files")
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", fails)
    for failing in ("e", "d", book.folder):
        found = take(book)
        assert found["removed"] == [] and "Too many" in found["lost"][0]["reason"]
    failing = None
    assert take(book) == {"full": False, "changed": [], "removed": [], "lost": []}
    shutil.rmtree(f"{book.folder}/d")
    assert take(book)["removed"] == ["d/e/f"]


def test_contents_are_read_again_only_if_they_are_the_same(book):
    write(book, "a", b"hello")
    write(book, "b", b"there")
    sources = book.sources(take(book))
    name = entries.blob_name(b"hello")
    assert sources[name].read() == b"hello"
    write(book, "a", b"jello")
    assert sources[name].read() is None
    os.remove(f"{book.folder}/b")
    assert sources[entries.blob_name(b"there")].read() is None


def test_a_list_that_is_too_long_is_cut_and_says_so(book, monkeypatch):
    monkeypatch.setattr(ledger, "CHANGE_MAX", 5 * (ledger.ENTRY_BYTES + 2) + 1)
    for n in range(8):
        write(book, f"f{n}")
    found = take(book)
    assert sorted(changed(found)) == [f"f{n}" for n in range(5)]
    assert found["lost"] == [{"path": "", "reason": "3 files more than can be told, by their names"}]
    os.remove(f"{book.folder}/f0")
    assert sorted(changed(take(book))) == ["f5"]


def test_the_longest_entries_fit_into_what_they_are_counted_for(book):
    for n in range(300):
        write(book, os.fsdecode(bytes([n % 255 + 1]).replace(b"/", b"x")) * 80 + str(n))
    sparse(book, "over", (64 << 20) + 1)
    found = take(book)
    counted = sum(len(e["path"].encode()) + ledger.ENTRY_BYTES for e in found["changed"])
    assert len(json.dumps(found["changed"], ensure_ascii=False, separators=(",", ":")).encode()) < counted


def test_a_path_that_is_too_long_is_said(book):
    fd = os.open(book.folder, look.DIR)
    for _ in range(20):
        os.mkdir("\n" * 240, dir_fd=fd)
        sub = os.open("\n" * 240, look.DIR, dir_fd=fd)
        os.close(fd)
        fd = sub
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    found = take(book)
    assert found["changed"] == [] and look.TOO_LONG in [f["reason"] for f in found["lost"]]
