"""The start-up probe (branching.md A3): what it says of a library that does not survive a fork."""

import os
import time

from coppice_kernel import probe


def outcome(monkeypatch, work):
    monkeypatch.setattr(probe, "LIMIT_S", 1)
    monkeypatch.setitem(__import__("sys").modules, "numpy", object())
    tried = probe.Probe()
    monkeypatch.setattr(probe, "_try", lambda real=probe._try: real(work))
    tried.begin()
    assert tried.pid and not tried.ended
    pid, status = os.waitpid(tried.pid, 0)
    assert tried.ends(pid, status) and tried.ended
    assert not tried.ends(pid, status)
    return tried.reason


def test_fine(monkeypatch):
    assert outcome(monkeypatch, lambda: 1.5) == ""


def test_it_hangs_in_the_child(monkeypatch):
    me = []

    def work():
        if me and os.getpid() not in me:
            time.sleep(3600)
        me.append(os.getpid())
        return 1

    assert "does not come to an end" in outcome(monkeypatch, work)


def test_it_answers_otherwise(monkeypatch):
    calls = []

    def work():
        calls.append(1)
        return len(calls)

    assert "failed" in outcome(monkeypatch, work)


def test_nothing_to_try(monkeypatch):
    monkeypatch.delitem(__import__("sys").modules, "numpy", raising=False)
    tried = probe.Probe()
    tried.begin()
    assert tried.ended and not tried.reason
