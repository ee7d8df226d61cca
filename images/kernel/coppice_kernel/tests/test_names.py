"""Escaped names: what git takes, with its inverse."""

import os
import random
import subprocess

import pytest

from coppice_kernel import names

CASES = {
    b"plain.txt": "plain.txt",
    b"dir/with space/x": "dir/with space/x",
    "zürich/データ".encode(): "zürich/データ",
    b"100%": "100%25",
    b"a\nb": "a%0Ab",
    b"\x7f": "%7F",
    "\u0085".encode(): "%C2%85",
    b"\xff\xfe": "%FF%FE",
    b"\xc3(": "%C3(",
    b".git": "%2Egit",
    b"x/.GIT/config": "x/%2EGIT/config",
    b".git. .": "%2Egit. .",
    b".git::$INDEX_ALLOCATION": "%2Egit::$INDEX_ALLOCATION",
    b"git~1": "%67it~1",
    b"git~10": "git~10",
    b".gitignore": ".gitignore",
    b".gitmodules": "%2Egitmodules",
    ".g\u200cit".encode(): "%2Eg\u200cit",
    "\u200c.git".encode(): "%E2%80%8C.git",
    b".coppice-folder": "%2Ecoppice-folder",
    b"x.coppice-folder": "%78.coppice-folder",
    b"%2Egit": "%252Egit",
}


@pytest.mark.parametrize("raw", CASES)
def test_escaped_and_back(raw):
    path = os.fsdecode(raw)
    assert names.escaped(path) == CASES[raw]
    assert names.unescaped(CASES[raw]) == path


def test_any_bytes_come_back():
    drawn = random.Random(1)
    for _ in range(2000):
        raw = bytes(drawn.randrange(256) for _ in range(drawn.randrange(1, 30)))
        raw = b"/".join(c.replace(b"\0", b"x") for c in raw.split(b"/") if c not in (b"", b".", b".."))
        if raw:
            path = os.fsdecode(raw)
            escaped = names.escaped(path)
            escaped.encode()  # UTF-8
            assert names.unescaped(escaped) == path


def test_git_takes_them(tmp_path):
    """A real git, as strict as it can be made, refuses some of these names and takes all escaped ones."""
    def git(*arguments, **more):
        strict = ["-c", "core.protectNTFS=true", "-c", "core.protectHFS=true"]
        return subprocess.run(["git", *strict, *arguments], cwd=tmp_path, capture_output=True, **more)

    git("init", "-q", check=True)
    blob = git("hash-object", "-w", "--stdin", input=b"x", check=True).stdout.strip()
    git("update-index", "--add", "--cacheinfo", b"100644,%s,.git" % blob)
    refused = [
        raw for raw in CASES
        if git("update-index", "--add", "--cacheinfo", b"100644,%s,%s" % (blob, raw)).returncode
    ]
    assert b".git" in refused and b"git~1" in refused and "\u200c.git".encode() in refused
    for number, escaped in enumerate(CASES.values()):
        entry = b"100644,%s,%d/%s" % (blob, number, escaped.encode())
        git("update-index", "--add", "--cacheinfo", entry, check=True)
    git("write-tree", check=True)
    assert git("fsck", "--strict", "--full").returncode == 0


BAD = ["", "/", "a//b", "../x", "a/..", ".", "%2E%2E/x", "a/%2e", "a%2Fb", "a%00", "x" * 256,
       ".coppice-lay", ".coppice-lay/new", "%2Ecoppice-lay", "d/" * 70 + "x"]


@pytest.mark.parametrize("path", BAD)
def test_what_is_no_path_below_a_folder(path):
    with pytest.raises(names.BadPath):
        names.unescaped(path)
