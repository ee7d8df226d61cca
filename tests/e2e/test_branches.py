"""A branch beside, in real containers: a second kernel from a parked state in the same container, while
the line that it comes from goes on; each for itself through ends, deaths and kills."""

import os
import random
import signal
import subprocess
import threading
import time

import pytest

import engine
from gateway import BOB, ROOT, Server, wait, within
from test_checkout import refused
from test_going_back import parked
from test_history import clone_url, executions, git, recorded
from test_survival import again, complete, cut, follow, reconnected

pytestmark = pytest.mark.timeout(600)

CELLS = (
    "import random, secrets, uuid\nimport numpy as np\nrandom.seed(11)",
    "k = 2\nscale = lambda n: n * k\ndef count():\n    n = 0\n    while True:\n        yield n\n        n += 1",
    "numbers = count()\nfirst = [next(numbers) for _ in range(3)]",
    "base = np.zeros(6)\nview = base[2:4]\nview[:] = 7",
    "k = 100",
    "later = [next(numbers) for _ in range(5)]",
    "base[:] = -1",
    "_ = random.random()",
    "del first",
    "done = True",
)
LOOK = "print(scale(21), next(numbers), base.tolist(), view.base is base, 'first' in dir(), 'done' in dir())"


@pytest.fixture(scope="module")
def server(container_engine):
    from conftest import CONFIG

    server = Server("branches", "--engine", "docker", "--pool-floor", "0", config=CONFIG).start()
    yield server
    server.stop()


@pytest.fixture
def walk(server):
    """(kernel, client) after ten cells, of which the fourth is parked."""
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        run_cells(server, kernel_id, c)
        yield kernel_id, c


def run_cells(server, kernel_id, c):
    for code in CELLS[:4]:
        assert c.run(code).status == "ok"
    parked(server, kernel_id, 4, "In[4]")
    for code in CELLS[4:]:
        assert c.run(code).status == "ok"
    recorded(server, kernel_id, 10)


def branch(server, kernel_id, status=201, **body):
    body = {"at": "In[4]", **body}
    answer = server.post(f"/history/{server.model(kernel_id)['history_id']}/branches", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


class Beside:
    """A branch with its client; ended with its block, where the test did not."""

    def __init__(self, server, kernel_id, **body):
        self.server = server
        self.told = branch(server, kernel_id, **body)
        self.id = self.told["kernel"]["id"]
        self.client = server.open(self.id).__enter__()
        self.client.info()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        self.server.delete(f"/api/kernels/{self.id}")


def node_of(server, kernel_id, wanted):
    """The id of the last node of that kernel with such a first line."""
    history = server.model(kernel_id)["history_id"]
    return [n for n in executions(server.json(f"/history/{history}")) if n["summary"] == wanted][-1]["id"]


def test_both_go_on_independently(server, walk, tmp_path):
    kernel_id, c = walk
    fourth = server.json(f"/history/{kernel_id}/nodes/In[4]")["id"]
    with Beside(server, kernel_id, name="other") as other:
        told, d = other.told, other.client
        assert (told["name"], told["node"], told["restored_by"]) == ("other", fourth, "parked")
        assert told["report"]["fidelity"] == "exact", told["report"]
        assert told["kernel"]["execution_state"] == "idle" and told["kernel"]["branch"] == "other"
        assert server.container_of(other.id) == server.container_of(kernel_id)
        rows = {b["name"]: b for b in server.json(f"/history/{kernel_id}")["branches"]}
        assert rows["other"]["node"] == fourth and rows["other"]["kernel_id"] == other.id
        assert rows["other"]["restorable_by"] == ["parked"] and rows["other"]["fidelity"] == "exact"
        # Each in its own state, in whatever order.
        was, now = "42 3 [0.0, 0.0, 7.0, 7.0, 0.0, 0.0] True True False", "2100 8 [-1.0"
        run = d.run(LOOK)
        assert run.stdout == was + "\n" and run.reply.content["execution_count"] == 5
        assert c.run(LOOK).stdout.startswith(now)
        for i in range(3):
            assert d.run(f"k = {i}; view += 1; mine = {i}").status == "ok"
            assert c.run(f"k = {i + 50}; theirs = {i}").status == "ok"
            assert d.run("print(k, base[2], next(numbers), 'theirs' in dir())").stdout == f"{i} {8.0 + i} {4 + i} False\n"
            assert c.run("print(k, base[2], next(numbers), 'mine' in dir())").stdout == f"{i + 50} -1.0 {9 + i} False\n"
        recorded(server, kernel_id, 10 + 1 + 1 + 12)
        # Both at once, neither behind the other.
        slow = c.execute("import time\nwhile not __import__('os').path.exists('/tmp/go'):\n    time.sleep(0.01)")
        assert d.run("open('/tmp/go', 'w').close()").status == "ok"
        assert c.collect(slow).status == "ok"
        history = recorded(server, kernel_id, 26)
        assert {b["name"]: b["kernel_id"] for b in history["branches"]} == {"main": kernel_id, "other": other.id}
        tips = {b["name"]: b["node"] for b in history["branches"]}
        diff = server.json(f"/history/{kernel_id}/diff?from={fourth}&to={tips['other']}")
        assert diff["code"]
        assert server.json(f"/history/{kernel_id}/diff?from=main&to=other")["code"] != diff["code"]
        git("clone", "-q", clone_url(server, kernel_id), tmp_path / "story")
        base = git("merge-base", "origin/main", "origin/other", cwd=tmp_path / "story").stdout
        assert base.strip() == fourth
        assert git("fsck", "--strict", cwd=tmp_path / "story").returncode == 0


def test_siblings_share_the_past_and_no_secret(server, walk):
    kernel_id, _c = walk
    draw = "print(random.random(), uuid.uuid4(), secrets.token_hex(8), __import__('os').getpid())"
    with Beside(server, kernel_id) as one, Beside(server, kernel_id) as two:
        assert (one.told["name"], two.told["name"]) == ("main.2", "main.3")
        a, b = (x.client.run(draw).stdout.split() for x in (one, two))
        assert a[0] == b[0]
        assert all(x != y for x, y in zip(a[1:], b[1:], strict=True))
        told = branch(server, kernel_id, 503)
        assert told["reason"] == "over_capacity" and "3 branches live in this container" in told["message"]
        assert one.client.run("print(k)").stdout == "2\n"
    with Beside(server, kernel_id) as three:  # once one has ended there is a place again
        assert three.client.run("print(k)").stdout == "2\n"


FILES = """
with open("/work/notes", "w") as f:
    _ = f.write("of both")
out = open("/work/log", "w")
_ = out.write("before")
path = "/work/log"
"""


def test_folders_are_apart(server):
    with server.kernel("python3") as kernel_id, server.open(kernel_id) as c:
        c.info()
        assert c.run(FILES).status == "ok"
        parked(server, kernel_id, 1)
        assert c.run("open('/work/later', 'w').write('of the trunk')").status == "ok"
        with Beside(server, kernel_id, at="In[1]", name="own") as own:
            report, d = own.told["report"], own.client
            assert report["fidelity"] == "exact" and report["lost"] == []
            assert any("/branches/own" in note for note in report["notes"])
            assert [(one["name"], one["kind"]) for one in report["approximate"]] == [("path", "path")]
            # What was written before the node is there, and nothing else.
            assert d.run("import os; print(os.getcwd(), sorted(os.listdir()))").stdout == \
                "/branches/own ['log', 'notes']\n"
            assert d.run("print(open('notes').read())").stdout == "of both\n"
            # Both write on, each its own.
            d.run("out.write(' of the branch'); out.flush()")
            d.run("open('notes', 'w').write('of the branch'); open('mine', 'w').write('x')")
            assert c.run("out.flush(); print(open(path).read())").stdout == "before\n"
            assert c.run("print(open('/work/notes').read())").stdout == "of both\n"
            c.run("open('/work/notes', 'w').write('of the trunk')")
            assert d.run("print(open('log').read(), open('notes').read())").stdout == \
                "before of the branch of the branch\n"
            assert c.run("import os; print(sorted(os.listdir('/work')))").stdout == "['later', 'log', 'notes']\n"
            # Its way back is in its own folder.
            recorded(server, kernel_id, 9)
            answer = server.post(f"/api/kernels/{own.id}/checkout", json={"node": own.told["node"]})
            assert answer.status_code == 200, answer.text
            assert d.run("import os; print(sorted(os.listdir()), open('notes').read())").stdout == \
                "['log', 'notes'] of both\n"
            assert c.run("print(open('/work/notes').read())").stdout == "of the trunk\n"
            # A restart begins in the same folder of the same container.
            before = server.container_of(own.id)
            assert server.post(f"/api/kernels/{own.id}/restart").status_code == 200
            d.info()
            assert d.run("import os; print(os.getcwd(), sorted(os.listdir()), 'path' in dir())").stdout == \
                "/branches/own ['log', 'notes'] False\n"
            assert server.container_of(own.id) == before
            assert c.run("print(path)").stdout == "/work/log\n"
        wait(lambda: c.run("print(os.listdir('/branches'))").stdout, lambda said: said == "[]\n", within(20))


@pytest.mark.parametrize("first", ["trunk", "branch"])
def test_each_ends_for_itself(docker_server, first):
    server = docker_server(f"branches-{first}")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("x = 1").status == "ok"
        parked(server, kernel_id, 1)
        with Beside(server, kernel_id, at="In[1]") as other:
            container = server.container_of(kernel_id)
            ends, stays, client = (kernel_id, other.id, other.client) if first == "trunk" else \
                (other.id, kernel_id, c)
            assert server.delete(f"/api/kernels/{ends}").status_code == 204
            assert [k["id"] for k in server.json("/api/kernels")] == [stays]
            assert client.run("print(x)").stdout == "1\n"
            assert server.container_of(stays) == container
            assert engine.inspect(container)["State"]["Running"]
            assert server.delete(f"/api/kernels/{stays}").status_code == 204
    wait(lambda: engine.containers(server.run_dir), lambda rows: rows == [], within(20))


def test_each_dies_for_itself(server, walk):
    kernel_id, c = walk
    with Beside(server, kernel_id) as other:
        d, container = other.client, server.container_of(kernel_id)
        for dies, stays, its_id in ((d, c, other.id), (c, d, kernel_id)):
            assert stays.run("alive = 1").status == "ok"
            dies.execute("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
            dies.until_state("restarting")
            server.wait_state(its_id, "idle")
            dies.info()
            assert dies.run("print('scale' in dir())").stdout == "False\n"
            assert stays.run("print(alive)").stdout == "1\n"
            assert server.container_of(its_id) == container


def test_the_container_dies_with_all_in_it(docker_server):
    server = docker_server("branches-gone")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("x = 1").status == "ok"
        parked(server, kernel_id, 1)
        with Beside(server, kernel_id, at="In[1]") as other:
            engine.kill(server.container_of(kernel_id))
            for client, its_id in ((c, kernel_id), (other.client, other.id)):
                client.until(lambda m: m.type == "stream" and "The kernel died" in m.content["text"])
                server.wait_state(its_id, "idle")
                client.info()
                assert client.run("print('x' in dir())").stdout == "False\n"
            assert server.container_of(kernel_id) != server.container_of(other.id)


def test_killed_gateways_take_both_up(docker_server):
    server = docker_server("branches-killed")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("x = 1").status == "ok"
        parked(server, kernel_id, 1)
        assert c.run("x = 2").status == "ok"
        recorded(server, kernel_id, 2)
        other = Beside(server, kernel_id, at="In[1]", name="other")
        container, d = server.container_of(kernel_id), other.client
        assert d.run("x += 10; print(x)").stdout == "11\n"
        parked(server, kernel_id, 3, "other")
        for _ in range(2):
            slow = [client.execute("import time\nfor i in range(20):\n    print(i, flush=True); time.sleep(0.05)")
                    for client in (c, d)]
            assert all(follow(client, asked, lambda run: run.stdout)
                       for client, asked in zip((c, d), slow, strict=True))
            cut(server, signal.SIGKILL)
            again(server)
            assert {k["id"] for k in server.json("/api/kernels")} == {kernel_id, other.id}
            c, d = reconnected(server, kernel_id, c), reconnected(server, other.id, d)
            for client, asked in zip((c, d), slow, strict=True):
                assert follow(client, asked, complete)
                assert client.runs[asked].stdout == "".join(f"{i}\n" for i in range(20))
            assert {server.container_of(i) for i in (kernel_id, other.id)} == {container}
            assert [r["Names"][0].lstrip("/") for r in engine.containers(server.run_dir)] == [container]
        assert c.run("print(x)").stdout == "2\n" and d.run("print(x)").stdout == "11\n"
        # What is parked is still each one's, and the branch goes on as what it was.
        assert d.run("x = 12").status == "ok"
        recorded(server, kernel_id, 10)
        tips = {b["name"]: b["kernel_id"] for b in server.json(f"/history/{kernel_id}")["branches"]}
        assert tips == {"main": kernel_id, "other": other.id}
        answer = server.post(f"/api/kernels/{other.id}/checkout", json={"node": "In[2]"})
        assert answer.status_code == 200, answer.text
        assert d.run("print(x)").stdout == "11\n"
        d.close()
        c.close()


KERNELS = ("import os\nprint(sum(open(f'/proc/{p}/comm').read() == 'kernel\\n' "
           "for p in os.listdir('/proc') if p.isdigit()))")


def ask_for_a_branch(server, kernel_id, name):
    try:
        server.post(f"/history/{kernel_id}/branches", json={"at": "In[1]", "name": name})
    except OSError:
        pass  # it was killed before it answered


@pytest.mark.parametrize("seed", [5])
def test_killed_at_any_moment_it_is_whole_or_not_there(docker_server, seed):
    """The moment is by chance, what follows is not."""
    server, moments = docker_server("branches-moments"), random.Random(seed)
    kernel_id, whole = server.start_kernel("python3"), 0
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("x = 1").status == "ok"
        for i in range(8):
            parked(server, kernel_id, 1, "In[1]")
            asks = threading.Thread(target=ask_for_a_branch, args=(server, kernel_id, f"b{i}"))
            asks.start()
            time.sleep(moments.uniform(0, 1.5))
            cut(server, signal.SIGKILL)
            asks.join()
            again(server)
            c = reconnected(server, kernel_id, c)
            assert c.run("print(x)", silent=True).stdout == "1\n"
            others = {k["id"] for k in server.json("/api/kernels")} - {kernel_id}
            assert len(others) <= 1
            for other in others:
                whole += 1
                assert server.model(other)["branch"] == f"b{i}"
                assert server.container_of(other) == server.container_of(kernel_id)
                with server.open(other) as d:
                    d.info()
                    assert d.run("print(x)", silent=True).stdout == "1\n"
                assert server.delete(f"/api/kernels/{other}").status_code == 204
            wait(lambda c=c: c.run(KERNELS, silent=True).stdout, lambda said: said == "1\n", within(20))
            assert len(engine.containers(server.run_dir)) == 1
        c.close()
    print(f"{whole} of 8 were whole")


def test_of_two_that_want_one_name_one_gets_it(server, walk):
    kernel_id, _c = walk
    answers, ready = [], threading.Barrier(2)

    def ask():
        ready.wait()
        answers.append(server.post(f"/history/{kernel_id}/branches", json={"at": "In[4]", "name": "race"}))

    both = [threading.Thread(target=ask) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    won, lost = sorted(answers, key=lambda a: a.status_code)
    assert won.status_code == 201
    refused(lost, "conflict")
    assert len([b for b in server.json(f"/history/{kernel_id}")["branches"] if b["name"] == "race"]) == 1
    server.delete(f"/api/kernels/{won.json()['kernel']['id']}")


def test_a_name_without_a_kernel_is_continued_later(server, walk):
    kernel_id, c = walk
    told = branch(server, kernel_id, name="someday", kernel=False)
    assert told["kernel"] is None and told["restored_by"] is None
    rows = {b["name"]: b for b in server.json(f"/history/{kernel_id}")["branches"]}
    assert rows["someday"]["node"] == told["node"] and rows["someday"]["kernel_id"] is None
    refused(server.post(f"/history/{kernel_id}/branches", json={"at": "In[2]", "name": "someday"}), "conflict")
    moved = server.post(f"/api/kernels/{kernel_id}/checkout", json={"node": "someday"})
    assert moved.status_code == 200, moved.text
    assert moved.json()["branch"] == "someday"
    assert c.run("print(scale(2))").stdout == "4\n"
    history = recorded(server, kernel_id, 11)
    assert executions(history)[-1]["branches"] == ["someday"]


def test_undo_leads_beyond_the_branch_s_beginning(server, walk):
    kernel_id, c = walk
    with Beside(server, kernel_id, name="other") as other:
        assert other.client.run("k = 5").status == "ok"
        recorded(server, kernel_id, 11)
        answer = server.post(f"/api/kernels/{other.id}/undo", json={})
        assert answer.status_code == 200, answer.text
        assert other.client.run("print(k)").stdout == "2\n"
        assert c.run("print(k)").stdout == "100\n"


def test_what_cannot_be(server, walk):
    kernel_id, _c = walk
    url = f"/history/{kernel_id}/branches"
    for body in ({}, {"at": ""}, {"at": 4}, {"at": "In[4]", "name": "a/b"}, {"at": "In[4]", "name": "../x"},
                 {"at": "In[4]", "accept": "all"}, {"at": "In[4]", "kernel": 1}):
        refused(server.post(url, json=body), "invalid", 400)
    told = refused(server.post(url, json={"at": "In[4]", "own_container": True}), "unavailable", 503)
    assert "snapshots" in told["message"]
    refused(server.post(url, json={"at": "In[99]"}), "not_found", 404)
    refused(server.post("/history/none/branches", json={"at": "In[4]"}), "not_found", 404)
    refused(server.post(url, json={"at": "In[4]"}, token=BOB), "not_found", 404)
    told = refused(server.post(url, json={"at": "In[7]"}), "partial")
    assert told["report"]["fidelity"] == "code-only" and told["report"]["lost"][0]["rebuild"]
    assert len(server.json("/api/kernels")) == 1


def test_in_a_cell(server, walk):
    kernel_id, c = walk
    run = c.run("%coppice branch 4 told\nprint('still here', k)")
    assert run.status == "ok", run.text()
    assert "Branch told begins at node" in run.stdout and "still here 100" in run.stdout
    new, = (k["id"] for k in server.json("/api/kernels") if k["id"] != kernel_id)
    assert new in run.stdout
    with server.open(new) as d:
        d.info()
        assert d.run("print(k)").stdout == "2\n"
    shown, = (m.content["data"]["text/plain"] for m in c.run("%coppice log").messages if m.type == "display_data")
    assert "Branch told is at" in shown and f"kernel {new}" in shown
    run = c.run("%coppice branch 7")
    assert run.status == "error"
    assert "To be run again, in this order" in run.reply.content["evalue"], run.reply.content
    server.delete(f"/api/kernels/{new}")


def command(server, *words):
    return subprocess.run(
        [os.environ.get("COPPICE_BIN", str(ROOT / "build" / "coppice")), "branch", *words,
         "--url", server.url, "--token", server.token],
        capture_output=True, text=True, timeout=within(60), check=False)


def test_on_the_command_line(server, walk):
    kernel_id, _c = walk
    done = command(server, "In[4]", "typed", "--history", kernel_id)
    assert done.returncode == 0, done.stderr
    new, = (k["id"] for k in server.json("/api/kernels") if k["id"] != kernel_id)
    assert "branch typed begins at node" in done.stdout and new in done.stdout
    with server.open(new) as d:
        d.info()
        assert d.run("print(k)").stdout == "2\n"
    server.delete(f"/api/kernels/{new}")
    done = command(server, "In[4]", "typed", "--history", kernel_id)
    assert done.returncode == 1 and "there is a branch 'typed' already" in done.stderr
    done = command(server, "In[7]", "--history", kernel_id)
    assert done.returncode == 1 and "To be run again, in this order" in done.stderr
    done = command(server, "In[2]", "name-alone", "--no-kernel", "--history", kernel_id)
    assert done.returncode == 0 and "without a kernel" in done.stdout
