"""Streams of a kernel over a loop and a clock that are not real."""

import threading

import pytest
from ipykernel import iostream

from coppice_kernel import streams


class Fake:
    """Stands for the io loop and the module `time`."""

    def __init__(self):
        self.now = 100.0
        self.timers = []

    def call_later(self, delay, call, *args):
        self.timers.append((self.now + delay, call, args))

    def monotonic(self):
        return self.now

    def fire(self):
        """Moves to the earliest timer and fires it."""
        self.timers.sort(key=lambda timer: timer[0])
        at, call, args = self.timers.pop(0)
        self.now = max(self.now, at)
        call(*args)


class Thread(iostream.IOPubThread):
    """Never started: it does at once what it is asked."""

    def __init__(self, loop):
        self.io_loop = loop
        self.thread = threading.Thread()


class Session:
    def __init__(self):
        self.texts = []

    def msg(self, kind, content, parent):
        return content

    def send(self, stream, content, ident):
        self.texts.append(content["text"])


@pytest.fixture
def fake(monkeypatch):
    fake = Fake()
    monkeypatch.setattr(streams, "time", fake)
    return fake


@pytest.fixture
def stream(fake):
    session = Session()
    stream = streams.CoppiceStream(session, Thread(fake), "stdout", watchfd=False)
    stream.texts = session.texts
    return stream


def test_a_line_whose_end_comes_after_the_timer_is_one_message(stream, fake):
    stream.write("first")
    fake.now += stream.flush_interval - 0.001
    stream.write(" word")
    fake.fire()
    assert stream.texts == []
    stream.write("\n")
    fake.fire()
    assert stream.texts == ["first word\n"]
    assert not fake.timers


def test_a_timer_of_an_earlier_write_leaves_a_later_one_alone(stream, fake):
    stream.write("a\n")
    stream.flush()
    fake.now += stream.flush_interval - 0.001
    stream.write("b\n")
    fake.fire()
    assert stream.texts == ["a\n"]
    fake.fire()
    assert stream.texts == ["a\n", "b\n"]


def test_text_without_an_end_leaves_soon(stream, fake):
    """A progress bar that is written to all the time."""
    began = fake.now
    stream.write(".")
    while not stream.texts:
        stream.write(".")
        fake.fire()
    assert fake.now - began < stream.flush_interval + 0.15
    assert set(stream.texts[0]) == {"."}


def test_old_text_without_an_end_leaves_with_the_timer(stream, fake):
    stream.write("name? ")
    fake.fire()
    assert stream.texts == ["name? "]


def test_flush_sends_at_once(stream):
    stream.write("half")
    stream.flush()
    assert stream.texts == ["half"]


def test_whole_lines_are_not_put_off(stream, fake):
    stream.write("a\n")
    fake.now += stream.flush_interval
    stream.write("b\n")
    fake.fire()
    assert stream.texts == ["a\nb\n"]
