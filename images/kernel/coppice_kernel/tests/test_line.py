"""Lines without a kernel: what is forked is a plain function."""

import os
import signal
import socket
import subprocess
import time

import pytest

from coppice_kernel import ctl, line, oom, process, start


class Running:
    """A line whose `kernel` runs a function."""

    def __init__(self, monkeypatch, kernel):
        def become(spec, listeners, outbox):
            os.setsid()
            kernel()
            os._exit(0)

        monkeypatch.setattr(start, "_become_kernel", become)
        fds = [os.open(os.devnull, os.O_RDONLY) for _ in range(5)]
        self.warden, self.link, self.outbox = start.start({"line": 7}, fds)
        for fd in fds:
            os.close(fd)
        self.spare = []
        self.link.setblocking(True)
        self.link.settimeout(20)
        self.pid = self.hear("started")["pid"]

    def hear(self, name):
        message = ctl.decode(self.link.recv(ctl.PACKET_MAX), ctl.UP)
        assert message["type"] == name and message["line"] == 7, message
        return message

    def say(self, name, **fields):
        self.link.send(ctl.encode(name, line=7, **fields))

    def ended(self):
        message = self.hear("exited")
        if message.get("waits"):  # it asks what is to be left alone
            self.say("kill", spare=self.spare)
            message = self.hear("exited")
        assert os.waitpid(self.warden, 0) == (self.warden, 0)
        return message


class Held:
    """A named pipe: its reader sees the end once no process holds it any more. (A kernel gets no
    descriptors from here, so it opens the name.)"""

    def __init__(self, folder):
        self.path = str(folder / "held")
        os.mkfifo(self.path)

    def hold(self):
        os.write(os.open(self.path, os.O_WRONLY), b"x")

    def wait_held(self):
        self.reader = os.open(self.path, os.O_RDONLY)
        assert os.read(self.reader, 1) == b"x"

    def wait_released(self):
        while os.read(self.reader, 100):
            pass
        os.close(self.reader)


@pytest.fixture
def held(tmp_path):
    return Held(tmp_path)


@pytest.fixture
def run(monkeypatch):
    return lambda kernel: Running(monkeypatch, kernel)


def forever():
    while True:
        time.sleep(60)


def test_exit_code(run):
    assert run(lambda: os._exit(5)).ended() == {
        "type": "exited",
        "line": 7,
        "code": 5,
        "signal": None,
        "oom": False,
        "left": 0,
    }


def test_death_by_signal(run):
    end = run(lambda: os.kill(os.getpid(), signal.SIGSEGV)).ended()
    assert (end["code"], end["signal"], end["oom"]) == (None, signal.SIGSEGV, False)


def test_signal_is_sent_and_answered(run):
    running = run(forever)
    running.say("signal", signal=int(signal.SIGTERM))
    assert running.hear("signalled")["ok"] is True
    assert running.ended()["signal"] == signal.SIGTERM


def test_signal_that_does_not_exist(run):
    running = run(forever)
    running.say("signal", signal=1000)
    answer = running.hear("signalled")
    assert (answer["ok"], answer["reason"]) == (False, "no such signal")
    running.say("kill")
    running.ended()


def flee():
    """A process in a session of its own whose parent is gone."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            forever()
        os._exit(0)
    os.waitpid(child, 0)


def flee_named(path):
    """The same; it writes its pid."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            with open(path + ".new", "w", encoding="ascii") as f:
                f.write(str(os.getpid()))
            os.rename(path + ".new", path)
            forever()
        os._exit(0)
    os.waitpid(child, 0)


def test_kill_takes_double_forks(run, held):
    def kernel():
        for _ in range(4):
            flee()
        held.hold()
        flee()
        forever()

    running = run(kernel)
    held.wait_held()
    running.say("kill")
    assert running.ended()["signal"] == signal.SIGKILL
    held.wait_released()


def test_what_is_left_is_counted(run):
    def kernel():
        flee()
        subprocess.Popen(["sleep", "1000"])
        os._exit(0)

    assert run(kernel).ended()["left"] == 2


def test_what_is_to_be_spared_is_named_by_its_start_too(run, tmp_path):
    """Of two that are left one is spared; a pid with another start time is somebody else."""

    def kernel():
        for name in ("spared", "other"):
            flee_named(str(tmp_path / name))
        while not all((tmp_path / n).exists() for n in ("spared", "other")):
            time.sleep(0.01)
        os._exit(0)

    running = run(kernel)
    running.link.recv(ctl.PACKET_MAX, socket.MSG_PEEK)  # the kernel has ended
    spared, other = (int((tmp_path / n).read_text()) for n in ("spared", "other"))
    running.spare = [f"{spared}:{process.started(spared)}", f"{other}:1", "x", "1:", f"{os.getpid()}:0"]
    assert running.ended()["left"] == 1
    assert process.started(other) is None and process.started(spared)
    os.kill(spared, signal.SIGKILL)


def test_line_dies_with_the_supervisor(run, held):
    def kernel():
        held.hold()
        forever()

    running = run(kernel)
    held.wait_held()
    running.link.close()
    held.wait_released()
    os.waitpid(running.warden, 0)


def test_garbage_from_the_supervisor_is_ignored(run):
    running = run(forever)
    running.link.send(b"\xff")
    running.link.send(ctl.encode("welcome", version=1))
    running.say("kill")
    running.ended()


def test_oom_is_a_kill_that_was_not_ours_and_a_count_that_rose(run, monkeypatch):
    counts = iter((3, 4))
    monkeypatch.setattr(oom, "count", lambda: next(counts))
    assert run(lambda: os.kill(os.getpid(), signal.SIGKILL)).ended()["oom"] is True


def test_kill_of_ours_is_no_oom(run, monkeypatch):
    counts = iter((3, 4))
    monkeypatch.setattr(oom, "count", lambda: next(counts))
    running = run(forever)
    running.say("kill")
    assert running.ended()["oom"] is False


def test_oom_count_of_both_cgroup_versions(tmp_path):
    v2, v1 = tmp_path / "v2", tmp_path / "v1"
    v2.write_text("low 0\noom 7\noom_kill 5\noom_group_kill 0\n")
    v1.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 9\n")
    absent = tmp_path / "absent"
    assert oom.count((v2, v1)) == 5
    assert oom.count((absent, v1)) == 9
    assert oom.count((absent,)) == 0


def test_descendants_see_through_odd_names(tmp_path):
    odd = tmp_path / ") S 1 1"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([str(odd), "1000"]) as child:
        assert child.pid in process.descendants([os.getpid()])
        child.kill()


def test_link_keeps_packets_apart():
    a, b = line.open_link()
    a.send(b"1")
    a.send(b"2")
    assert (b.recv(9), b.recv(9)) == (b"1", b"2")
    a.close()
    b.close()
