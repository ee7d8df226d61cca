"""Laying another state down in a real folder: what it holds afterwards, what refuses, and a kill at each
step. A folder is compared by `tree()`: every name with its kind, mode and content."""

import json
import os
import random
import shutil
import signal
import stat
import tempfile

import pytest

from coppice_kernel import entries, laying, ledger, look, names, stage


@pytest.fixture
def folder():
    path = tempfile.mkdtemp(prefix="coppice-lay-", dir="/dev/shm")
    yield path
    shutil.rmtree(path)


def tree(folder):
    found = {}
    for above, folders, files in os.walk(os.fsencode(folder)):
        for name in folders + files:
            path = os.path.join(above, name)
            s = os.lstat(path)
            if stat.S_ISLNK(s.st_mode):
                value = ("link", os.readlink(path))
            elif stat.S_ISREG(s.st_mode):
                with open(path, "rb") as f:
                    value = ("file", bool(s.st_mode & 0o100), f.read())
            else:
                value = (stat.S_IFMT(s.st_mode),)
            found[os.path.relpath(path, os.fsencode(folder))] = value
    return found


def finished(steps, deny=False):
    while True:
        try:
            if next(steps) is laying.WAITS:
                raise AssertionError("it waits for something")
        except StopIteration as end:
            return end.value


class Scene:
    """A folder with its ledger, as the supervisor has it, and contents as the gateway has them."""

    def __init__(self, folder):
        self.folder = folder
        self.book = ledger.Ledger(folder)
        self.contents = {}
        self.told = []
        self.lay = None

    def look(self):
        seen = finished(self.book.look())
        finished(self.book.take(seen, self.book.may_differ(seen), keep=self.contents.__setitem__))
        self.book.change()
        return dict(self.book.told)

    def begin(self, state):
        def no_maps():
            yield
            return frozenset()

        self.told.clear()
        self.lay = laying.Lay("1", self.book, lambda **fields: self.told.append(fields), no_maps)
        return self.lay.run(json.dumps({"entries": list(state.values())}).encode())

    def steps(self, state):
        """Of a whole lay; what is asked for is sent."""
        for step in self.begin(state):
            if step is laying.WAITS:
                wanted = [n for told in self.told for n in told.get("names", ())]
                self.lay.came += [(n, self.contents[n], True) for n in wanted]
            yield

    def run(self, state, keep=True):
        finished(self.steps(state))
        if self.told[-1]["ready"] and keep is not None:
            finished(self.lay.keep() if keep else self.lay.put_back())
        return self.told[-1]


def write(folder, name, content=b"x", mode=0o644):
    path = os.path.join(os.fsencode(folder), os.fsencode(name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, mode)


def one_state(folder):
    write(folder, "same", b"same")
    write(folder, "a", b"one")
    write(folder, "run", b"#!", 0o755)
    write(folder, "d/deep/f", b"deep")
    write(folder, "big", bytes(range(256)) * 5000)
    write(folder, "copy", bytes(range(256)) * 5000)
    write(folder, "kind", b"a file")
    os.symlink("a", f"{folder}/l")
    os.makedirs(f"{folder}/hollow/er")
    write(folder, b"\xff\n.git", b"odd")
    write(folder, ".git/config", b"[core]")
    write(folder, b"n" * 255, b"long")


def another_state(folder):
    for name in ("a", "run", "big", "kind", "l"):
        os.remove(f"{folder}/{name}")
    shutil.rmtree(f"{folder}/d")
    shutil.rmtree(f"{folder}/hollow")
    write(folder, "a", b"two")
    write(folder, "kind/is/a/folder", b"now")
    write(folder, "d", b"a file now")
    write(folder, "hollow", b"too")
    write(folder, "new/x", b"x")
    os.symlink("/etc/passwd", f"{folder}/l")
    os.chmod(f"{folder}/copy", 0o755)


def test_there_and_back(folder):
    scene = Scene(folder)
    one_state(folder)
    first, old = scene.look(), tree(folder)
    another_state(folder)
    second, new = scene.look(), tree(folder)
    inode = os.stat(f"{folder}/same").st_ino
    assert scene.run(first) == {"ready": True, "last": True}
    assert tree(folder) == old and scene.look() == first
    assert scene.run(second)["ready"] and tree(folder) == new
    assert os.stat(f"{folder}/same").st_ino == inode  # it was left alone


def test_put_back(folder):
    scene = Scene(folder)
    one_state(folder)
    first = scene.look()
    another_state(folder)
    scene.look()
    new, told = tree(folder), dict(scene.book.told)
    assert scene.run(first, keep=False)["ready"]
    assert tree(folder) == new and scene.book.told == told
    assert scene.look() == told


def test_what_lies_there_is_not_asked_for(folder):
    scene = Scene(folder)
    write(folder, "a", b"content")
    write(folder, "b", bytes(3 << 20))
    first = scene.look()
    os.rename(f"{folder}/a", f"{folder}/moved")
    os.rename(f"{folder}/b", f"{folder}/moved2")
    scene.look()
    scene.contents.clear()
    assert scene.run(first)["ready"]
    assert not any("names" in told for told in scene.told)


def test_nothing_to_be_done(folder):
    scene = Scene(folder)
    assert scene.run({})["ready"] and tree(folder) == {}
    write(folder, "a")
    now = scene.look()
    assert scene.run(now)["ready"] and scene.run({})["ready"] and tree(folder) == {}


def test_descriptors_keep_their_inodes(folder):
    """What is replaced is not written to."""
    scene = Scene(folder)
    write(folder, "a", b"one")
    first = scene.look()
    write(folder, "a", b"two")
    scene.look()
    with open(f"{folder}/a", "rb") as f:
        assert scene.run(first)["ready"]
        assert f.read() == b"two"
    assert tree(folder)[b"a"][2] == b"one"


# ---- a kill at each step ----


def states(folder):
    scene = Scene(folder)
    one_state(folder)
    first, old = scene.look(), tree(folder)
    another_state(folder)
    scene.look()
    return scene, first, old, tree(folder)


def child_runs(body):
    """In a process that may be killed; whether it was."""
    pid = os.fork()
    if pid == 0:
        try:
            body()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_kill_at_each_step(folder):
    """Old or new, never half: what a process leaves that was killed after so many steps, once the next
    one has started."""
    scene, first, old, new = states(folder)
    found = {"old": 0, "new": 0}
    for count in range(10000):

        def body():
            left = count
            for steps in (scene.steps(first), None):
                for _ in steps or scene.lay.keep():
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)

        killed = child_runs(body)
        finished(stage.recover(folder))
        now = tree(folder)
        assert now in (old, new), count
        found["new" if now == new else "old"] += 1
        if not killed:
            break
        if now == old:  # (that is the state that was laid down)
            shutil.rmtree(folder)
            os.mkdir(folder)
            scene, first, old, new = states(folder)
    assert now == old and found["new"] > 40 and found["old"] > 1, found


def test_kill_while_it_is_put_back(folder):
    """Again and again, each time a step later; in the end it is as it was."""
    scene, first, _, new = states(folder)
    assert scene.run(first, keep=None)["ready"]
    for count in range(10000):

        def body():
            for n, _ in enumerate(stage.recover(folder)):
                if n == count:
                    os.kill(os.getpid(), signal.SIGKILL)

        if not child_runs(body):
            break
    assert tree(folder) == new


@pytest.mark.parametrize("call", ["rename", "mkdir", "open", "symlink", "pwrite", "ftruncate", "_renameat2"])
def test_each_call_fails_in_turn(folder, monkeypatch, call):
    """Whichever call of the system's fails: as before, and said."""
    scene, first, old, new = states(folder)
    refused = 0
    for nth in range(10000):
        count, failed = -1, False

        def fails(*arguments, real, **more):
            nonlocal count, failed
            count += 1
            if count == nth:
                failed = True
                if call == "_renameat2":
                    return -1
                raise OSError(28, "No space left on device")
            return real(*arguments, **more)

        place = stage if call == "_renameat2" else os
        with monkeypatch.context() as m:
            real = getattr(place, call)
            m.setattr(place, call, lambda *a, real=real, **k: fails(*a, real=real, **k))
            answer = scene.run(first, keep=None)
        if not failed:
            break
        if answer["ready"]:  # a look that failed found a folder that is not there: put right below
            finished(scene.lay.put_back())
        else:
            refused += 1
            assert answer["reason"]
        finished(stage.recover(folder))
        assert tree(folder) == new, nth
        scene.look()
    assert answer["ready"] and tree(folder) != new and refused > 0
    finished(scene.lay.keep())
    assert tree(folder) == old


# ---- what refuses ----


def refused(scene, state, word):
    before = tree(scene.folder)
    answer = scene.run(state)
    assert not answer["ready"] and word in answer["reason"], answer
    assert tree(scene.folder) == before
    assert scene.lay.is_over


def test_what_changed_since_it_was_told(folder):
    scene = Scene(folder)
    write(folder, "a", b"one")
    write(folder, "b", b"b")
    first = scene.look()
    write(folder, "a", b"two")
    refused(scene, first, "'a' was changed after it was looked at")
    scene.look()
    write(folder, "fresh", b"of nobody")
    refused(scene, first, "'fresh' was changed after")
    scene.look()
    assert scene.run(first)["ready"]


def test_what_changes_while_it_is_laid(folder):
    """At any step before its move: nothing that was not told is removed."""
    scene = Scene(folder)
    for n in range(4):
        write(folder, f"f{n}", b"one")
    first = scene.look()
    for n in range(4):
        write(folder, f"f{n}", b"two")
    scene.look()
    outcomes = set()
    for count in range(60):
        for n, _ in enumerate(scene.steps(first)):
            if n == count:
                write(folder, "f3", b"meanwhile")
        answer = scene.told[-1]
        if answer["ready"]:
            finished(scene.lay.put_back())
        outcomes.add(answer["ready"])
        write(folder, "f3", b"two")
        assert {p: v[2] for p, v in tree(folder).items()} == {b"f%d" % n: b"two" for n in range(4)}
        scene.look()
    assert outcomes == {True, False}


def test_what_is_not_kept_stays(folder, monkeypatch):
    scene = Scene(folder)
    monkeypatch.setattr(entries, "BUDGET_FILE", 1000)
    write(folder, "a", b"one")
    first = scene.look()
    write(folder, "huge", b"h" * 2000)
    write(folder, "d/huge", b"h" * 2000)
    write(folder, "d/small", b"s")
    os.mkfifo(f"{folder}/e")
    scene.look()
    assert scene.run(first)["ready"]
    assert sorted(tree(folder)) == [b"a", b"d", b"d/huge", b"e", b"huge"]
    assert scene.look().keys() == {"a", "huge", "d/huge"}


def test_what_is_not_kept_is_not_replaced(folder, monkeypatch):
    scene = Scene(folder)
    monkeypatch.setattr(entries, "BUDGET_FILE", 1000)
    write(folder, "data", b"small")
    write(folder, "x/y", b"y")
    write(folder, "z", b"z")
    first = scene.look()
    shutil.rmtree(f"{folder}/x")
    os.remove(f"{folder}/z")
    write(folder, "data", b"h" * 2000)
    scene.look()
    refused(scene, first, "'data' is not kept and would be lost")
    os.remove(f"{folder}/data")
    write(folder, "x", b"h" * 2000)
    scene.look()
    refused(scene, first, "'x' is not kept")
    os.remove(f"{folder}/x")
    os.makedirs(f"{folder}/z")
    write(folder, "z/huge", b"h" * 2000)
    scene.look()
    refused(scene, first, "'z/huge' is not kept")


def test_what_was_lost_is_not_laid(folder, monkeypatch):
    scene = Scene(folder)
    monkeypatch.setattr(entries, "BUDGET_FILE", 1000)
    write(folder, "huge", b"h" * 2000)
    first = scene.look()
    os.remove(f"{folder}/huge")
    scene.look()
    assert scene.run(first)["ready"] and tree(folder) == {}
    assert scene.book.told == first  # the next Change says that it is gone


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "../out"},
        {"path": "a/../../out"},
        {"path": "%2E%2E/out"},
        {"path": ".coppice-lay/new/0"},
        {"path": "a\0b"},
        {"path": "a%00b"},
        {"path": ""},
        {"mode": "100777"},
        {"bytes": -1},
        {"bytes": True},
        {"bytes": 2 << 20},
        {"blob": "b6"},
        {"blob": None},
        {"blob": "../../../../../../../../../../../../out"},
        {"mode": "120000", "bytes": 0},
        {"mode": "120000", "bytes": 5000},
        {"path": "a/b/" + "c" * 256},
    ],
)
def test_lists_that_are_none(folder, entry):
    scene = Scene(folder)
    good = {"path": "f", "mode": "100644", "bytes": 5, "blob": "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"}
    refused(scene, {"x": {**good, **entry}}, "")
    for text in (b"", b"{}", b"[]", b'{"entries":[1]}', b'{"entries":{"a":1}}', b"[" * 99999):
        with pytest.raises(laying.Refused):
            laying.target_of(text)


def test_a_file_that_is_a_folder_too(folder):
    good = {"mode": "100644", "bytes": 5, "blob": "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"}
    refused(Scene(folder), {n: {"path": n, **good} for n in ("a", "a/b")}, "a file and a folder")
    refused(Scene(folder), {n: {"path": n, **good} for n in ("a%41", "aA")}, "twice")


def test_contents_that_are_others(folder):
    scene = Scene(folder)
    write(folder, "a", b"hello")
    first = scene.look()
    os.remove(f"{folder}/a")
    scene.look()
    name = entries.blob_name(b"hello")
    for came in (b"jello", b"", b"x" * (2 << 20), None):
        scene.contents[name] = came
        refused(scene, first, "content")


def test_there_is_no_room(folder, monkeypatch):
    scene = Scene(folder)
    write(folder, "a", b"hello")
    first = scene.look()
    os.remove(f"{folder}/a")
    scene.look()
    real = os.fstatvfs

    class Full:
        f_bavail, f_frsize, f_files, f_favail = 0, 4096, 0, 0

    monkeypatch.setattr(os, "fstatvfs", lambda fd: Full if real(fd) else None)
    refused(scene, first, "there is no room")


def test_folders_that_become_links_meanwhile(folder):
    """At any step: nothing is written outside, nothing is removed there."""
    outside = tempfile.mkdtemp(prefix="coppice-outside-", dir="/dev/shm")
    write(outside, "f", b"theirs")
    scene = Scene(folder)
    write(folder, "d/f", b"one")
    first = scene.look()
    write(folder, "d/f", b"two")
    write(folder, "d/g", b"two")
    scene.look()
    for count in range(60):
        for n, _ in enumerate(scene.steps(first)):
            if n == count:
                os.rename(f"{folder}/d", f"{folder}/was")
                os.symlink(outside, f"{folder}/d")
        assert {p: v[2] for p, v in tree(outside).items()} == {b"f": b"theirs"}, count
        if count >= n:
            break
        if scene.told[-1]["ready"]:
            finished(scene.lay.put_back())
        finished(stage.recover(folder)) if not os.path.islink(f"{folder}/d") else None
        shutil.rmtree(folder)
        os.mkdir(folder)
        scene = Scene(folder)
        write(folder, "d/f", b"one")
        first = scene.look()
        write(folder, "d/f", b"two")
        write(folder, "d/g", b"two")
        scene.look()
    shutil.rmtree(outside)


def test_our_place_is_not_somebody_elses(folder):
    """A link, a file or a folder of that name of the guest's own."""
    outside = tempfile.mkdtemp(prefix="coppice-outside-", dir="/dev/shm")
    write(outside, "f", b"theirs")
    scene = Scene(folder)
    write(folder, "a", b"one")
    first = scene.look()
    write(folder, "a", b"two")
    second = scene.look()
    for make in (
        lambda path: os.symlink(outside, path),
        lambda path: write(folder, names.LAY, b"x"),
        lambda path: write(folder, f"{names.LAY}/journal", b'[["out", 0, "../../../etc/passwd"]]'),
        lambda path: write(folder, f"{names.LAY}/journal", b"nothing"),
    ):
        make(f"{folder}/{names.LAY}")
        assert scene.run(first)["ready"]
        assert scene.run(second)["ready"]
        assert not os.path.lexists(f"{folder}/{names.LAY}")
    assert tree(outside) == {b"f": ("file", False, b"theirs")}
    shutil.rmtree(outside)


def test_any_two_states(folder):
    """Drawn trees with names that are files in one and folders in the other."""
    drawn = random.Random(3)
    scene = Scene(folder)

    def draw():
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        for _ in range(drawn.randrange(12)):
            path = "/".join(drawn.choice("abc") for _ in range(drawn.randrange(1, 4)))
            try:
                if drawn.random() < 0.2:
                    os.makedirs(f"{folder}/{path}")
                elif drawn.random() < 0.2:
                    os.symlink(path, f"{folder}/{path}")
                else:
                    write(folder, path, drawn.choice([b"", b"1", b"2"]), drawn.choice([0o644, 0o755]))
            except OSError:
                continue  # a file is where a folder would be

    kept = []
    for _ in range(40):
        draw()
        kept.append((scene.look(), tree(folder)))
    for _ in range(150):
        state, wanted = drawn.choice(kept)
        before = tree(folder)
        keep = drawn.random() < 0.7
        assert scene.run(state, keep=keep)["ready"]
        assert tree(folder) == (wanted if keep else before)
        assert scene.look() == (state if keep else scene.book.told)
