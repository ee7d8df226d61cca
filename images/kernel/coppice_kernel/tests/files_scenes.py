"""Working files of real kernels, told, fetched and laid down again. Each scene takes `ground`
(ground.Ground, with `keeper`): outside a container (test_files.py), and in the image
(images/kernel/smoke/test_files.py). What lies in the folder is asked of cells."""

import base64
import hashlib
import json
import os

import pytest

import pytest

from coppice_kernel.tests.fakegateway import text

LIST = """
import os, stat
def listed():
    found = {}
    for above, folders, files in os.walk(b"."):
        for name in folders + files:
            path = os.path.join(above, name)
            s = os.lstat(path)
            if b".coppice-lay" in path: continue
            kind = "l" + os.fsdecode(os.readlink(path)) if stat.S_ISLNK(s.st_mode) else "d" if stat.S_ISDIR(s.st_mode) \\
                else oct(s.st_mode & 0o777) + " " + str(open(path, "rb").read()[:40])
            found[ascii(path[2:])] = kind
    return found
"""


def cell(ground, client, code):
    """A cell that works: its msg_id, and what its reply said of files."""
    msg_id = ground.run(client, code)
    return msg_id, client.metadata.get("coppice", {}).get("files")


def told(ground, client, code):
    """A cell that changes something: its Change, with all that it lacked."""
    msg_id, word = cell(ground, client, code)
    assert word in ("changed", "later")
    return ground.keeper.take(msg_id)


def ask(ground, client, code):
    """What the cell printed; its Change, if there is one, is taken."""
    reply, seen = client.execute(code)
    assert reply["status"] == "ok", reply
    if client.metadata.get("coppice", {}).get("files") in ("changed", "later"):
        ground.keeper.take(client.asked)
    return text(seen, "stdout")


def paths(change):
    return sorted(e["path"] for e in change["changed"])


def parked(ground, client, code):
    """A cell that changes something and is parked: (park, the state of the folder)."""
    msg_id, word = cell(ground, client, code)
    if word != "same":
        ground.keeper.take(msg_id)
    found = ground.fate(msg_id)
    assert found["type"] == "parked", found
    return {**found, **json.loads(found["data"])}, dict(ground.keeper.now)


def go_back(ground, client, park, state, keep=True):
    """As the gateway moves: what is there is recorded, the state is laid down, the park revived."""
    ground.keeper.scan(client.line)
    answer = ground.keeper.lay(ground.cwd, state)
    assert answer["ready"], answer
    second = ground.revive(park)
    ground.keeper.end(f"lay-{ground.keeper.lays}", keep)
    return second


# ---- Changes ----


def test_changes_are_told_and_their_contents_fetched(ground):
    client = ground.start()
    first = told(ground, client, "import os")
    assert first == {"full": True, "changed": [], "removed": [], "lost": []}
    msg_id, word = cell(ground, client, "x = 1")
    if word == "later":  # on a busy machine the look before took more than 1 ms
        assert ground.keeper.take(msg_id)["changed"] == []
    else:
        assert word == "same"
    change = told(
        ground,
        client,
        "open('a', 'w').write('hello'); os.makedirs('d/e'); os.symlink('/etc/passwd', 'l'); os.mkfifo('p')\n"
        "open('run', 'w').write('#!'); os.chmod('run', 0o755)",
    )
    assert paths(change) == ["a", "d/e", "l", "run"] and not change["full"]
    assert change["lost"] == [{"path": "p", "reason": "a FIFO is not kept"}]
    assert ground.keeper.contents[ground.keeper.now["a"]["blob"]] == b"hello"
    assert ground.keeper.contents[ground.keeper.now["l"]["blob"]] == b"/etc/passwd"
    change = told(ground, client, "os.remove('a'); os.rename('run', 'd/run')")
    assert paths(change) == ["d/run"] and change["removed"] == ["a", "run"]


def test_large_files_in_chunks(ground):
    """One that the kernel copies, one that the supervisor reads, one that is not kept."""
    client = ground.start()
    change = told(
        ground,
        client,
        "import os, hashlib\nfor n, size in enumerate([3 << 20, (20 << 20) + 1, (64 << 20) + 1]):\n"
        "    open(f'big{n}', 'wb').write(os.urandom(1 << 20) * (size >> 20) + b'x' * (size & 0xfffff))",
    )
    sizes = {e["path"]: (len(e.get("chunks", ())), e.get("lost")) for e in change["changed"]}
    assert sizes == {"big0": (3, None), "big1": (21, None), "big2": (0, "not kept: it is larger than 64 MiB")}
    ours = b"".join(ground.keeper.contents[n] for n in ground.keeper.now["big1"]["chunks"])
    theirs = ask(ground, client, "print(hashlib.sha256(open('big1', 'rb').read()).hexdigest())")
    assert theirs.strip() == hashlib.sha256(ours).hexdigest()


def test_each_cell_of_a_burst_has_its_own_content(ground):
    """The next cell writes over it before anybody asked for it."""
    client = ground.start()
    sent = [
        client.send("shell", "execute_request", {"code": f"open('f', 'w').write('{n}' * 100000)"})
        for n in range(6)
    ]
    for msg_id in sent:
        client.finish(msg_id)
    for n, msg_id in enumerate(sent):
        change = ground.keeper.take(msg_id)
        assert paths(change) == ["f"]
        assert ground.keeper.contents[ground.keeper.now["f"]["blob"]] == str(n).encode() * 100000


def test_a_burst_without_anybody_who_asks(ground):
    """The kernel goes on: what has no room is read later, or is lost, and everything is told in the end."""
    client = ground.start()
    sent = [
        client.send("shell", "execute_request", {"code": f"open('f{n}', 'wb').write(b'{n % 10}' * (3 << 20)); None"})
        for n in range(20)
    ]
    for msg_id in sent:
        assert client.finish(msg_id)[0]["status"] == "ok"
    for msg_id in sent:
        ground.keeper.take(msg_id)
    assert len([e for e in ground.keeper.now.values() if "chunks" in e]) == 20


def test_what_changed_while_no_cell_ran(ground):
    """By another line of this folder: a scan sees it, and this one's next cell has nothing to tell of it."""
    client, other = ground.start(), ground.start()
    told(ground, client, "import os")
    msg_id = ground.run(other, "open('late', 'w').write('late')")
    ground.keeper.apply(ground.keeper.hear(msg_id))
    ground.keeper.want(msg_id, [])
    assert ground.keeper.now.keys() == {"late"}
    msg_id, _ = cell(ground, client, "x = 1")
    assert paths(ground.keeper.take(msg_id)) == []


def test_a_scan_sees_what_no_cell_told(ground):
    """Something writes while no cell runs."""
    client = ground.start()
    told(
        ground,
        client,
        "import signal; x = signal.signal(signal.SIGUSR1, lambda *_: open('late', 'w').write('late'))",
    )
    ground.gateway.send("signal", line=client.line, signal=10)
    assert ground.gateway.expect("signalled")["ok"]
    while not paths(ground.keeper.scan(client.line)):
        pass
    assert "late" in ground.keeper.now


def test_a_scan_of_a_line_that_is_not_there(ground):
    change = ground.keeper.scan(4242, "nobody")
    assert change == {"full": False, "changed": [], "removed": [], "lost": []}


def test_hostile_names_come_and_go(ground):
    client = ground.start()
    told(ground, client, LIST)
    park, state = parked(
        ground,
        client,
        "for n in (b'\\xff\\n', b'%41', b'n' * 255, b'.git', 'ü\\u202e'.encode(), b' ', b'-rf', b'\\\\', b'git~1'):\n"
        "    open(n, 'wb').write(n)\nos.mkdir('.GIT'); open('.GIT/config', 'w').close()\nwas = listed()",
    )
    assert "%FF%0A" in state and "%2Egit" in state and "%2EGIT/config" in state
    told(ground, client, "for n in os.listdir(b'.'):\n    if n != b'.GIT': os.remove(n)\nos.remove('.GIT/config')")
    second = go_back(ground, client, park, state)
    assert ask(ground, second, "print(listed() == was, len(was))") == "True 11\n"


def test_names_asked_for_that_are_none(ground):
    client = ground.start()
    msg_id, _ = cell(ground, client, "open('a', 'w').write('hello')")
    ground.keeper.apply(ground.keeper.hear(msg_id))
    odd = ["0" * 40, "", "x" * 64, "../../etc/passwd"]
    assert ground.keeper.want(msg_id, odd, last=False) == dict.fromkeys(odd)
    name = ground.keeper.now["a"]["blob"]
    assert ground.keeper.want(msg_id, [name], last=True) == {name: b"hello"}
    # It is over: nothing is to be had of it, and the next is told.
    assert ground.keeper.want(msg_id, [name]) == {name: None}
    assert paths(told(ground, client, "open('b', 'w').close()")) == ["b"]


def test_a_gateway_that_does_not_ask_for_files(ground):
    client = ground.start()
    told(ground, client, "open('a', 'w').write('hello'); None")
    ground.gateway.hang_up()
    ground.gateway.accept(reports=True)
    ground.settle()
    assert cell(ground, client, "open('b', 'w').close()")[1] is None
    ground.settle()
    assert [m["type"] for m in ground.gateway.seen if m["type"] in ("files", "content")] == []


def test_a_gateway_that_comes_back(ground):
    """Its first Change is a full one, and the last cell's is told again."""
    client = ground.start()
    told(ground, client, "open('a', 'w').write('hello'); None")
    msg_id, _ = cell(ground, client, "open('b', 'w').write('there'); None")
    ground.keeper.hear(msg_id)  # and nothing is asked for
    ground.gateway.hang_up()
    ground.keeper.contents.clear()
    ground.gateway.accept(reports=True, parks_max=16, files=True)
    change = ground.keeper.take(msg_id)
    assert change["full"] and paths(change) == ["a", "b"]
    assert paths(told(ground, client, "open('c', 'w').close()")) == ["c"]


def test_a_change_that_nobody_heard(ground):
    """The gateway went before the cell ended."""
    client = ground.start()
    told(ground, client, "import os")
    ground.gateway.hang_up()
    msg_id, word = cell(ground, client, "open('b', 'w').write('there'); None")
    assert word in ("changed", "later")
    ground.gateway.accept(reports=True, parks_max=16, files=True)
    # (What was told before may be told again first: the kernel hands over after the idle.)
    changes = ground.keeper.take_until(msg_id)
    assert [c["full"] for c in changes] == [True, False][: len(changes)]
    assert ground.keeper.now.keys() == {"b"}


# ---- going back ----

STATE = """
open("over", "w").write("first")
open("gone", "w").write("only in the first")
os.makedirs("deep/er"); open("deep/er/f", "w").write("deep")
os.makedirs("hollow"); os.symlink("over", "l")
open("tool", "w").write("#!"); os.chmod("tool", 0o755)
big = os.urandom(1 << 20) * 3; open("big", "wb").write(big)
os.chdir("deep/er")
def all_of_it():
    here = os.getcwd(); os.chdir(root)
    try: return listed()
    finally: os.chdir(here)
was = all_of_it()
"""

CHANGE = """
os.chdir(root)
import shutil
open("over", "w").write("second"); os.remove("gone"); shutil.rmtree("deep"); os.rmdir("hollow"); os.remove("l")
open("deep", "w").write("a file now"); os.chmod("tool", 0o644); open("more", "w").write("only in the second")
open("big", "r+b").write(b"changed")
"""


def test_a_folder_goes_back_with_its_node(ground):
    """A file that was written over two cells later is there again; so is the folder that it stood in."""
    first = ground.start()
    told(ground, first, LIST + "root = os.getcwd()")
    park, state = parked(ground, first, STATE)
    told(ground, first, CHANGE)
    told(ground, first, "open('over', 'a').write(' and third')")
    second = go_back(ground, first, park, state)
    assert second.told["lost"] == []
    assert ask(ground, second, "print(all_of_it() == was, open('f').read(), os.path.relpath(os.getcwd(), root))") == (
        "True deep deep/er\n"
    )
    change = told(ground, second, "open('next', 'w').write('1')")
    assert paths(change) == ["deep/er/next"] and change["removed"] == []


def test_two_states_again_and_again(ground):
    """Each way brings its own; the next cell after each has a Change to that node."""
    line = ground.start()
    told(ground, line, "import os")
    nodes = [parked(ground, line, f"n = {n}; open('f', 'w').write('{n}'); open('f{n}', 'w').close()") for n in range(3)]
    for turn, n in enumerate((0, 2, 1, 1, 0)):
        park, state = nodes[n]
        after = go_back(ground, line, park, state)
        ground.kill(line)
        line = after
        assert ask(ground, line, "print(n, open('f').read(), sorted(n for n in os.listdir() if n[0] == 'f'))") == (
            f"{n} {n} {['f', *[f'f{i}' for i in range(n + 1)]]}\n"
        )
        change = told(ground, line, f"open('f', 'a').write('+{turn}')")
        assert paths(change) == ["f"] and change["removed"] == []


def test_a_move_that_fails_puts_everything_back(ground):
    first = ground.start()
    told(ground, first, LIST + "root = os.getcwd()")
    park, state = parked(ground, first, STATE)
    told(ground, first, CHANGE + "was = all_of_it()")
    second = go_back(ground, first, park, state, keep=False)
    ground.kill(second)
    ground.keeper.scan(first.line)
    assert ask(ground, first, "print(all_of_it() == was)") == "True\n"
    change = told(ground, first, "open('x', 'w').close()")
    assert paths(change) == ["x"] and change["removed"] == []


def test_a_gateway_that_goes_while_files_are_laid(ground):
    """Whether it was ready or not: where the next one knows nothing of it, everything is as it was when that
    one asks."""
    first = ground.start()
    told(ground, first, LIST + "root = os.getcwd()")
    told(ground, first, STATE)
    state = dict(ground.keeper.now)
    told(ground, first, CHANGE + "was = all_of_it()")
    for waits in (True, False):
        ground.keeper.scan(first.line)
        if waits:
            begin_lay(ground, state, "half")
            assert ground.gateway.expect("laid", id="half")["names"]
        else:
            assert ground.keeper.lay(ground.cwd, state)["ready"]
        ground.gateway.hang_up()
        ground.gateway.accept(reports=True, parks_max=16, files=True)
        ground.keeper.take(last_cell(ground))
        assert ask(ground, first, "print(all_of_it() == was)") == "True\n"
        ground.keeper.scan(first.line)


def test_a_look_tells_all_of_it_where_that_is_wanted(ground):
    """As for a gateway that does not know what was told: to an earlier one, or of a line that has gone."""
    first = ground.start()
    told(ground, first, "open('f', 'w').write('one'); open('g', 'w').close()")
    for more, full in ({}, False), ({"full": True}, True), ({"full": False}, False):
        change = ground.keeper.scan(first.line, **more)
        assert change["full"] is full and paths(change) == (["f", "g"] if full else [])
    change = told(ground, first, "open('g', 'w').write('two')")  # it follows on that
    assert not change["full"] and paths(change) == ["g"]


def test_the_next_gateway_says_whether_a_lay_counts(ground):
    """It is ready when the gateway goes, and stands as it is until one comes that speaks."""
    client = ground.start()
    told(ground, client, "import os\nopen('f', 'w').write('one')")
    one = dict(ground.keeper.now)
    for keep in (True, False, True):
        told(ground, client, "open('f', 'w').write('two'); open('g', 'w').close()")
        two = dict(ground.keeper.now)
        ground.keeper.scan(client.line)
        assert ground.keeper.lay(ground.cwd, one)["ready"]
        ground.gateway.hang_up()
        ground.gateway.connection, _ = ground.gateway.listener.accept()  # killed before its first word
        ground.gateway.connection.settimeout(ground.gateway.timeout_s)
        ground.gateway.expect("hello")
        ground.gateway.hang_up()
        name = f"lay-{ground.keeper.lays}"
        ground.gateway.accept(reports=True, parks_max=16, files=True, lays_kept=["lay-0", name] if keep else ["lay-0"])
        change = ground.keeper.take(last_cell(ground))
        assert change["full"] and ground.keeper.now == (one if keep else two)
        assert ask(ground, client, "print(open('f').read(), sorted(os.listdir()))") == (
            "one ['f']\n" if keep else "two ['f', 'g']\n"
        )
        # It is over: another one can be laid, and this one's end is a word about nothing.
        ground.gateway.send("lay_end", id=name, keep=not keep)
        ground.keeper.scan(client.line)
        assert ground.keeper.lay(ground.cwd, one, keep=True)["ready"]
        ground.keeper.scan(client.line)


def test_a_cell_waits_until_a_move_is_over(ground):
    """Its request is read before the gateway's word: it sees the one state or the other, and nothing of ours."""
    client = ground.start()
    told(ground, client, "import os\nfor n in range(300): open(f'one{n}', 'w').close()")
    one = dict(ground.keeper.now)
    told(ground, client, "for n in range(300): os.rename(f'one{n}', f'two{n}')")
    for keep in (False, True):
        ground.keeper.scan(client.line)
        answer = ground.keeper.lay(ground.cwd, one)
        assert answer["ready"], answer
        msg_id = client.send("shell", "execute_request", {"code": "print({n[:3] for n in os.listdir()}, len(os.listdir()))"})
        while client.receive("iopub")["content"].get("execution_state") != "busy":
            pass
        ground.keeper.end(f"lay-{ground.keeper.lays}", keep)
        reply, seen = client.finish(msg_id)
        assert text(seen, "stdout") == ("{'one'} 300\n" if keep else "{'two'} 300\n")
        if client.metadata["coppice"]["files"] != "same":
            ground.keeper.take(msg_id)


MEDDLERS = {
    "takes rights": "chmod 0 .coppice-lay; chmod 700 .coppice-lay",
    "removes": "rm -rf .coppice-lay",
    "moves": "mv .coppice-lay elsewhere; rm -rf elsewhere",
    "puts in": "mkdir .coppice-lay/journal .coppice-lay/new/0; ln -s /etc .coppice-lay/stash/1",
    "writes": "echo now > f1; rm -f f2; mkdir f2",
}


CLEARED = """
import shutil
for n in os.listdir():
    if os.path.islink(n):
        os.remove(n)
    elif os.path.isdir(n):
        shutil.rmtree(n)
"""


@pytest.mark.parametrize("what", MEDDLERS)
def test_a_guest_that_meddles(ground, what):
    """With our place, or with what is laid, all the time: it harms itself alone. Every lay is answered, and
    once it is over files can be laid down again."""
    client = ground.start()
    script = f"while [ ! -e stop ]; do {MEDDLERS[what]}; done 2>/dev/null"
    told(ground, client, "import os, subprocess\nfor n in range(9): open(f'f{n}', 'w').write('one')")
    one = dict(ground.keeper.now)
    told(ground, client, "for n in range(9): open(f'f{n}', 'w').write('two')")
    msg_id, word = cell(ground, client, f"p = subprocess.Popen(['sh', '-c', {script!r}])")
    if word != "same":
        ground.keeper.take_all(msg_id)
    for keep in (True, False, True):
        ground.gateway.send("scan", line=client.line, id="look")
        ground.keeper.take_all("look")
        answer = ground.keeper.lay(ground.cwd, one, keep)
        assert answer["ready"] or answer["reason"]
    ask(ground, client, "open('stop', 'w').close(); p.wait(); None")
    ground.settle()
    ask(ground, client, CLEARED)  # a link that it put into the stash may bear a file's name now
    ground.keeper.scan(client.line, "again")
    answer = ground.keeper.lay(ground.cwd, one, True)
    assert answer["ready"], answer
    assert ask(ground, client, "print(sorted((n, open(n).read()) for n in os.listdir() if n[0] == 'f'))") == (
        f"{[(f'f{n}', 'one') for n in range(9)]}\n"
    )


def begin_lay(ground, state, name):
    entries = json.dumps({"entries": list(state.values())}).encode()
    data = base64.b64encode(entries).decode()
    ground.gateway.send("lay", id=name, folder=ground.cwd, offset=0, size=len(entries), data=data)


def last_cell(ground):
    """The msg_id under which the last Change is told again."""
    first = ground.gateway.expect("files")
    ground.gateway.seen.insert(0, first)
    return first["msg_id"]


def test_lays_that_cannot_be(ground):
    client = ground.start()
    told(ground, client, "open('a', 'w').write('one')")
    state = dict(ground.keeper.now)
    told(ground, client, "open('a', 'w').write('two')")
    for folder in ("/", "/etc", "/branches/../work", "/branches/", f"{ground.cwd}/../x", "work"):
        assert "no folder" in ground.keeper.lay(folder, state)["reason"]
    begin_lay(ground, state, "one")
    assert ground.gateway.expect("laid", id="one")["names"]
    assert "already" in ground.keeper.lay(ground.cwd, state)["reason"]
    ground.gateway.send("lay_end", id="one", keep=False)
    assert ground.gateway.expect("laid", id="one")["reason"] == "it was given up"
    begin_lay(ground, {"x": {"path": "../x", "mode": "100644", "bytes": 0, "blob": "0" * 40}}, "two")
    assert "no path below" in ground.gateway.expect("laid", id="two")["reason"]
    assert ask(ground, client, "print(open('a').read())") == "two\n"


# ---- open files ----

OPENED = """
import os, mmap, sqlite3
open("lines", "w").write("line 1\\nline 2\\nline 3\\n")
reader = open("lines"); reader.readline()
raw = open("lines", "rb", buffering=0); raw.read(3)
writer = open("written", "w"); writer.write("flushed "); writer.flush(); writer.write("unflushed ")
log = open("log", "a"); log.write("one\\n"); log.flush()
both = open("both", "w+"); both.write("0123456789"); both.seek(4)
open("page", "wb").write(b"A" * 5000)
page_file = open("page", "rb"); page = mmap.mmap(page_file.fileno(), 0, prot=mmap.PROT_READ)
db = sqlite3.connect("x.db"); db.execute("create table t (n)"); db.execute("insert into t values (1)"); db.commit()
kept = sqlite3.connect("kept.db"); kept.execute("create table t (n)"); kept.commit()
"""

GONE_ON = """
reader.read(); raw.read(5); writer.write("of the other line " * 1000); writer.close(); log.write("two\\n" * 9); log.close()
both.seek(0); both.write("xxxxxxxxxxxxxxxxxxx"); both.close()
os.remove("lines"); open("lines", "w").write("others\\n"); os.remove("page"); open("page", "wb").write(b"B" * 9000)
db.execute("insert into t values (2)"); db.commit()
"""

ASK = """
print(reader.readline(), reader.read(), raw.read(4), page[:2], page[4999:5000], len(page))
writer.write("end"); writer.flush(); log.write("three\\n"); log.flush(); both.write("_"); both.flush()
print(open("written").read(), open("log").read().split(), open("both").read(), os.path.getsize("written"))
print(db.execute("select n from t").fetchall())
kept.execute("insert into t values (7)"); kept.commit(); print(sqlite3.connect("kept.db").execute("select * from t").fetchall())
"""

WANTED = """line 2
 line 3
 b'e 1\\n' b'AA' b'A' 5000
flushed unflushed end ['one', 'three'] 0123_56789 21
[(1,)]
[(7,)]
"""


def test_open_files_go_on_in_their_own_folder(ground):
    """Reader in the middle, unflushed writer, append, both, a map, a database."""
    first = ground.start()
    told(ground, first, "import os")
    park, state = parked(ground, first, OPENED)
    told(ground, first, GONE_ON)
    second = go_back(ground, first, park, state)
    # Declared, by name and by file.
    assert {os.path.basename(name) for name, _ in ground.lost(second)} == {"db", "kept", "x.db", "kept.db"}
    assert {kind for _, kind in ground.lost(second)} == {"database"}
    assert ask(ground, second, ASK) == WANTED
    # A database whose file was another one meanwhile can be read; it says itself that it was moved.
    out = ask(ground, second, "try: db.execute('insert into t values (3)')\nexcept sqlite3.OperationalError as e: print(e)")
    assert out == "attempt to write a readonly database\n"
    change = told(ground, second, "pass; open('z', 'w').close()")
    assert {"log", "both", "written", "kept.db", "z"} <= {*paths(change), *changed_before(ground, state)}


def changed_before(ground, state):
    return [p for p, e in ground.keeper.now.items() if state.get(p) != e]


def test_open_files_without_a_lay_are_as_before(ground):
    """0025: what was replaced or written to is declared."""
    first = ground.start()
    told(ground, first, "import os")
    park, _ = parked(ground, first, "open('f', 'w').write('123456'); f = open('f'); f.read(2); None")
    told(ground, first, "os.remove('f'); open('f', 'w').write('abcdef'); None")
    second = ground.revive(park)
    assert ("no name" in second.told["lost"][0]["reason"]) and len(second.told["lost"]) == 1
    assert ask(ground, second, "print(f.read())") == "3456\n"


def test_a_file_that_was_not_kept_is_still_declared(ground):
    """It is no part of the state; the descriptor leads to the one that is left."""
    first = ground.start()
    told(ground, first, "import os")
    park, state = parked(
        ground, first, "f = open('gone', 'w+'); f.write('12345'); f.flush(); f.seek(2); os.remove('gone')"
    )
    second = go_back(ground, first, park, state)
    assert [(loss["kind"], "no name" in loss["reason"]) for loss in second.told["lost"]] == [("file", True)]
    assert ask(ground, second, "print(f.read())") == "345\n"


def test_a_write_through_a_map_is_told(ground):
    """It leaves no trace in stat; the kernel is not parked then, and says so."""
    client = ground.start()
    told(ground, client, "import mmap; open('f', 'wb').write(b'x' * 100); None")
    msg_id, word = cell(ground, client, "f = open('f', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[3]")
    ground.keeper.take(msg_id) if word != "same" else None
    for n in range(3):
        change = told(ground, client, f"m[3] = {n}")
        assert paths(change) == ["f"]
        assert ground.keeper.contents[ground.keeper.now["f"]["blob"]][3] == n
    assert "writable and shared" in ground.refusal(client, "pass")


def test_a_subshell_and_a_fork_tell_nothing(ground):
    client = ground.start()
    told(ground, client, "import os")
    msg_id, word = cell(
        ground, client, "pid = os.fork()\nif pid == 0: open('child', 'w').write('c')\nelse: os.waitpid(pid, 0)"
    )
    assert word in ("changed", "later") and paths(ground.keeper.take(msg_id)) == ["child"]
