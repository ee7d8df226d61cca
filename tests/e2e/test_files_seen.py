"""Working files of a node as people see them: in the answers, on the command line, in a clone. The
node is made by stock git, beside the gateway, as one that was restored would be."""

import json
import signal
import subprocess

import pytest

from test_history import clone_url
from test_interchange import coppice, imported
from test_openapi import check

pytestmark = pytest.mark.timeout(120)

NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
    {"id": "a", "cell_type": "code", "source": "x = 1", "metadata": {}, "outputs": [],
     "execution_count": 1}]}
LOST = "coppice-lost 1\n100644 99\nnot kept: over the budget of 256 MiB"


def git(repository, *argv, stdin=None):
    return subprocess.run(["git", "-C", str(repository), *argv], input=stdin, check=True,
                          capture_output=True, text=True).stdout.strip()


def tree(repository, entries):
    """{name: text or {...}} as a tree."""
    lines = []
    for name, what in entries.items():
        if isinstance(what, dict):
            lines.append(f"040000 tree {tree(repository, what)}\t{name}")
        else:
            blob = git(repository, "hash-object", "-w", "--stdin", stdin=what)
            lines.append(f"100644 blob {blob}\t{name}")
    return git(repository, "mktree", stdin="\n".join(lines) + "\n")


def add_node(repository):
    """A change of files on top of main, whose run is the second."""
    main = git(repository, "rev-parse", "main")
    meta = json.loads(git(repository, "show", "main:runs/00/00/01/meta.json"))
    first = git(repository, "rev-parse", "main:runs/00/00/01")
    meta.update(msg_id="scan-1", kind="files", n=2, files=3, summary="files: a.csv, b\x1b[31m.csv, big",
                memory_of=meta["msg_id"], execution_count=None, displays=[])
    second = tree(repository, {"code.py": "", "outputs.json": "[\n]\n", "meta.json": json.dumps(meta)})
    files = tree(repository, {"a.csv": "1,2\n", "b%1B[31m.csv": "3\n", "big": LOST.ljust(511) + "\n",
                              "sub": {".coppice-folder": ""}})
    runs = git(repository, "mktree", stdin=f"040000 tree {first}\t01\n040000 tree {second}\t02\n")
    for _ in "ab":
        runs = git(repository, "mktree", stdin=f"040000 tree {runs}\t00\n")
    whole = git(repository, "mktree", stdin=f"040000 tree {files}\tfiles\n040000 tree {runs}\truns\n")
    node = git(repository, "-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", whole, "-p",
               main, "-m", "files: a.csv\n\nCoppice-Node-Count: 2\nCoppice-Status: ok")
    git(repository, "update-ref", "refs/heads/main", node)
    return main, node


def test_a_node_shows_its_files(process_server, tmp_path):
    server = process_server("files-seen")
    history = imported(server, json.dumps(NOTEBOOK))["id"]
    server.process.send_signal(signal.SIGINT)
    server.process.wait()
    before, node = add_node(server.data_dir / "history" / f"{history}.git")
    server.start()
    got = server.json(f"/history/{history}/nodes/{node}")
    assert (got["kind"], got["parent"], got["counts"]["files"]) == ("files", before, 3)
    assert [(f["path"], f["change"], f["bytes"]) for f in got["files"]] == [
        ("a.csv", "created", 4), ("b%1B[31m.csv", "created", 2), ("big", "created", 99),
        ("sub", "created", 0)]
    assert got["files"][2]["lost"] == "not kept: over the budget of 256 MiB"
    shown = coppice(server, "show", node[:8], "--history", history).stdout
    assert "--- files\n  created a.csv, 4 bytes\n" in shown
    assert "  created big, 99 bytes: not kept: over the budget of 256 MiB\n" in shown
    assert "\x1b" not in shown
    diff = server.json(f"/history/{history}/diff?from={before}&to={node}")
    assert [(f["path"], f["change"], f["from"]) for f in diff["files"]][0] == ("a.csv", "created", None)
    assert diff["files"][0]["to"]["bytes"] == 4
    document = server.get("/openapi.json", token=None).json()
    check(document, "GET", "/history/{h}/nodes/{n}", "200", got)
    check(document, "GET", "/history/{h}/diff", "200", diff)
    shown = coppice(server, "diff", before, node, "--history", history).stdout
    assert shown == "*** files\n+ a.csv\n+ b%1B[31m.csv\n+ big\n+ sub\n"
    back = coppice(server, "diff", node, before, "--history", history).stdout
    assert back.splitlines()[1] == "- a.csv"
    # It is no cell, and a clone has it as files.
    assert [c["source"] for c in server.json(f"/history/{history}/export?node={node}")["cells"]] == [["x = 1"]]
    subprocess.run(["git", "clone", "-q", clone_url(server, history), tmp_path / "clone"], check=True)
    assert (tmp_path / "clone/files/a.csv").read_text() == "1,2\n"
