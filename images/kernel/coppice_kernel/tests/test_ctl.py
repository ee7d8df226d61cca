import json
import pathlib

import pytest

from coppice_kernel import ctl

PROTOCOL = pathlib.Path(__file__).resolve().parents[4] / "docs" / "PROTOCOL-ctl.md"


def documented():
    rows = {}
    for row in PROTOCOL.read_text().splitlines():
        cells = [c.strip() for c in row.strip().strip("|").split("|")]
        if row.startswith("|") and len(cells) == 4 and cells[3].isdigit():
            rows[cells[0]] = (cells[1], cells[2], int(cells[3]))
    return rows


def test_table_is_the_documented_one():
    assert documented() == ctl.TABLE


def test_version_is_the_documented_one():
    assert f"Version {ctl.VERSION}." in PROTOCOL.read_text()


START = {
    "line": 1,
    "kernel": "k",
    "key": "s",
    "cwd": "/work",
    "env": {"A": "b"},
    "endpoints": ["x"] * 5,
    "fresh": False,
}


def test_what_is_encoded_is_decoded():
    packet = ctl.encode("start", **START)
    assert ctl.decode(packet, ctl.DOWN) == {"type": "start", **START}


def test_unknown_fields_are_ignored_and_optional_ones_may_be_null():
    packet = json.dumps({"type": "hello", "version": 1, "pid": 2, "image": None, "new": []}).encode()
    assert ctl.decode(packet, ctl.UP)["pid"] == 2


@pytest.mark.parametrize(
    "change",
    [
        {"line": None},
        {"line": True},
        {"line": "1"},
        {"line": 1.0},
        {"line": 2**60},
        {"env": {"A": 1}},
        {"env": []},
        {"endpoints": "x"},
        {"endpoints": [1]},
        {"fresh": 0},
        {"key": None},
        {"type": "begin"},
        {"type": 7},
        {"type": "started"},
    ],
)
def test_wrong_kinds_are_refused(change):
    packet = json.dumps({"type": "start", **START, **change}).encode()
    with pytest.raises(ctl.Malformed):
        ctl.decode(packet, ctl.DOWN)


@pytest.mark.parametrize("packet", [b"", b"\xff", b"{", b"[]", b"1", b"[" * 60000, b"NaN", b"{}"])
def test_garbage_is_refused(packet):
    with pytest.raises(ctl.Malformed):
        ctl.decode(packet, ctl.DOWN)
