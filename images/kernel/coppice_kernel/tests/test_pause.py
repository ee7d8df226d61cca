"""When the look at the variables is taken: in a pause, once, and never in anybody's way."""

import asyncio
import json
import os

import pytest

from coppice_kernel import pause


class Shell:
    def __init__(self, **variables):
        self.user_ns = variables
        self.user_ns_hidden = {}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(pause, "PAUSE_S", 0.001)


def request(msg_id="m-1"):
    return {"header": {"msg_id": msg_id}}


def played(play, shell=None, answers=()):
    """What was told while `play(pause)` ran and for a while after it."""
    told, answers = [], list(answers)

    def tell(msg_id, text):
        told.append((msg_id, json.loads(text)))
        return answers.pop(0) if answers else True

    async def run():
        p = pause.Pause(shell or Shell(x=1), tell)
        await play(p)
        await asyncio.sleep(0.05)

    asyncio.run(run())
    return told


def test_after_a_cell():
    async def play(p):
        p.executed(request())
        p.begins()

    ((msg_id, found),) = played(play)
    assert msg_id == "m-1" and found["complete"]
    assert [v["name"] for v in found["variables"]] == ["x"]


def test_a_burst_is_told_of_once():
    async def play(p):
        for n in range(5):
            p.over()
            p.executed(request(f"m-{n}"))
            p.begins()

    assert [m for m, _ in played(play)] == ["m-4"]


def test_another_request_puts_it_off():
    async def play(p):
        p.executed(request())
        p.begins()
        p.over()
        await asyncio.sleep(0.01)
        p.begins()

    assert len(played(play)) == 1


def test_nothing_without_a_cell():
    async def play(p):
        p.over()
        p.begins()

    assert played(play) == []


def test_what_waits_goes_first():
    async def play(p):
        reader, writer = os.pipe()
        os.write(writer, b"x")
        loop = asyncio.get_running_loop()
        seen = []
        loop.add_reader(reader, lambda: seen.append(os.read(reader, 1)))
        p.executed(request())
        p._owed = "m-1"
        assert p._report() is False  # the reader has not run
        assert not seen
        await asyncio.sleep(0.01)
        assert seen
        loop.remove_reader(reader)
        p.begins()

    shell = Shell(**{f"v{n}": n for n in range(100)})
    assert len(played(play, shell)) == 1


def test_a_supervisor_that_does_not_read_is_told_later():
    async def play(p):
        p.executed(request())
        p.begins()

    assert len(played(play, answers=[False, False, True])) == 3


def test_a_link_that_is_broken_breaks_no_kernel():
    async def play(p):
        def tell(*_):
            raise OSError("closed by the guest")

        p._tell = tell
        p.executed(request())
        p.begins()
        await asyncio.sleep(0.01)
        assert p._owed is None

    assert played(play) == []


def test_not_in_a_fork():
    async def play(p):
        p._pid = os.getpid() + 1
        p.executed(request())
        p.begins()

    assert played(play) == []


def test_the_most_memory_of_a_cell():
    peak = pause.Peak()
    assert peak.bytes() is None  # nothing began
    peak.begin()
    if not peak.known:
        pytest.skip("this system has no clear_refs")
    before = peak.bytes()
    block = bytearray(b"x" * (64 << 20))
    del block
    assert peak.bytes() >= before + (60 << 20)
    peak.begin()
    assert peak.bytes() < before + (60 << 20)


def test_each_cell_of_a_burst_has_its_peak():
    async def play(p):
        for n in range(3):
            p.over()
            p.executes()
            p.executed(request(f"m-{n}"))
            assert (p.peak_bytes(request(f"m-{n}")) is not None) == p._peak.known
            assert p.peak_bytes(request("another")) is None
            p.begins()
        p._pid = os.getpid() + 1  # a fork of the cell's
        assert p.peak_bytes(request("m-2")) is None

    played(play)
