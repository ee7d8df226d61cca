"""The kill sweep: gateway, kernel, line, supervisor, container and engine are killed at random
moments, alone and together, while pages work. After each round every request has its end, nothing
that was not killed has lost anything, and nothing is left over.

The engine is dockerd, which other tests and people use: it is not killed. What is killed is the
socket between it and this gateway (engine_proxy.py), amid its calls: for a gateway that is an
engine that went down and came back, except that the containers live on, as with live-restore.

The seed is printed; COPPICE_KILL_SEED gives one, COPPICE_KILL_ROUNDS how many rounds."""

import collections
import os
import random
import re
import signal
import threading
import time
from pathlib import Path

import pytest
import requests
import websocket

import engine
from engine_proxy import EngineProxy
from gateway import ALICE, Server, wait, within
from page import Page
from test_survival import again, complete, cut, follow, reconnected, seen_ticks, ticker

KERNELS, FRAMINGS = 3, ("legacy", "v1")
SETUP = """seen = []
def echo(comm, message):
    comm.send(message['content']['data'])
get_ipython().kernel.comm_manager.register_target('echo', echo)
"""
DIED = ("ok", "error", "aborted")
UNSOUND = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|Assertion|not in the table")


# ---- processes, seen from the host ----

def processes():
    """pid: (parent, name, start time)."""
    table = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, _, rest = (entry / "stat").read_text().rpartition(")")
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            fields = rest.split()
            if fields[0] not in "ZX":
                table[int(entry.name)] = int(fields[1]), name, fields[19]
    return table


def below(table, root):
    found = [root] if root in table else []
    for pid in found:
        found += [p for p, row in table.items() if row[0] == pid]
    return found


def descriptors(pid):
    """How many of each kind; of files the last folder's name says the kind."""
    kinds = collections.Counter()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            to = re.sub(r":\[\d+\]", "", os.readlink(fd))
        except OSError:
            continue
        if "/history/" in to and ".git" in to:  # a few that the recorder keeps, whichever
            continue
        kinds["journal" if "/journals/" in to else "log" if to.endswith(".log") else to] += 1
    return kinds


class Call(threading.Thread):
    """A REST call that is under way when something is killed."""

    def __init__(self, server, method, path, **options):
        super().__init__(daemon=True)
        self.call = method, server.url + path
        self.options = options
        self.answer = None
        self.start()

    def run(self):
        try:
            self.answer = requests.request(
                *self.call, headers={"Authorization": f"token {ALICE}"}, timeout=within(60),
                **self.options)
        except requests.RequestException as e:
            self.answer = e

    def done(self):
        self.join(within(60))
        assert self.answer is not None, f"no answer to {self.call}"
        return getattr(self.answer, "status_code", None)


class Kernel:
    def __init__(self, server, kernel_id):
        self.server, self.id = server, kernel_id
        self.pages = [Page(server, kernel_id, f) for f in FRAMINGS]
        self.seen = []
        self.killed, self.lost = False, None
        self.asked = []

    def state(self):
        rows = self.server.rows_of("kernels", self.id)
        return rows[0]["execution_state"] if rows else None

    def place(self):
        """Container and line; both change with each process."""
        rows = self.server.rows_of("slots", self.id)
        slot = rows and rows[0].get("slot")
        return slot and (slot["container"], rows[0]["line"])

    def kill(self):
        """What is there now is being killed: its variables go."""
        self.killed, self.lost = True, self.place()

    def is_settled(self):
        return self.state() in ("idle", "dead") and (not self.lost or self.place() != self.lost)

    def set_up(self):
        self.seen = []
        self.run("setup", SETUP)

    def run(self, tag, code, expected=""):
        page = self.pages[0]
        asked = page.execute("setup", tag, code, expected)
        wait(page.open, lambda left: asked not in left, within(60))
        run = page.run_of(asked)
        assert run.status == "ok", repr(run)
        return run.stdout

    # ---- work ----

    def ask(self, rng, tag):
        page = rng.choice(self.pages)
        kind = rng.choice(["short", "short", "ticks", "ticks", "error", "input", "comm",
                           "history"])
        mark = f"seen.append({tag!r})\n"
        if kind == "short":
            asked = page.execute(kind, tag, f"{mark}print({tag!r})", f"{tag}\n")
        elif kind == "ticks":
            n, pause = rng.randint(5, 25), rng.choice([0.005, 0.02, 0.04])
            asked = page.execute(kind, tag, (
                f"{mark}import time\nfor i in range({n}):\n    print({tag!r}, i)\n"
                f"    time.sleep({pause})"), "".join(f"{tag} {i}\n" for i in range(n)))
        elif kind == "error":
            asked = page.execute(kind, tag, f"{mark}1/0")
        elif kind == "input":
            asked = page.execute(kind, tag, f"{mark}print(input('?'))", f"{tag}\n")
        elif kind == "comm":
            asked = page.open_comm(tag)
        else:
            asked = page.history(tag)
        self.asked.append((page, asked))

    def check(self):
        """Each request has one end, and what ran ran once."""
        fails = any(a.kind == "error" for _, a in self.asked)
        for page, asked in self.asked:
            run = page.run_of(asked)
            replies = sum(m.type.endswith("_reply") for m in run.messages)
            idles = run.states.count("idle")
            twice = asked.again and idles == 2 and replies == 2 * asked.wants_reply
            assert twice or replies == int(asked.wants_reply), f"{replies} replies: {run!r}"
            assert twice or idles == 1, f"{run.states}: {run!r}"
            self.check_outcome(asked, run, fails)
            if not self.killed and asked.kind not in ("comm", "history") and (
                    run.status != "aborted"):
                self.seen.append(asked.tag)
        self.asked = []

    def check_outcome(self, asked, run, fails):
        if self.killed:
            assert run.status in DIED or not asked.wants_reply, repr(run)
            assert asked.expected.startswith(run.stdout) or run.status == "ok", repr(run)
        elif asked.kind == "comm":
            (echo,) = run.iopub("comm_msg")
            assert echo.content["data"] == {"tag": asked.tag}
        elif asked.kind == "error":
            assert run.status == "error" or run.status == "aborted", repr(run)
        elif run.status != "aborted" or not fails:
            assert run.status == "ok", repr(run)
        if run.status == "ok":
            assert run.stdout == asked.expected, f"{asked} {run!r}"
        if run.status == "aborted":
            assert not run.stdout or self.killed, repr(run)

    def check_variables(self):
        text = self.run("look", "print(sorted(seen))")
        assert text == f"{sorted(self.seen)}\n", f"{text} is not {sorted(self.seen)}"

    def close(self):
        for page in self.pages:
            page.close()


class Sweep:
    def __init__(self, server, proxy, rng):
        self.server, self.proxy, self.rng = server, proxy, rng
        self.kernels = [Kernel(server, server.start_kernel("python3")) for _ in range(KERNELS)]
        for kernel in self.kernels:
            kernel.set_up()
        self.table, self.ours = {}, {}
        self.calls = []
        self.note_processes()
        self.note_descriptors()
        self.check_leftovers()

    # ---- the victims ----

    def moment(self, longest=0.4):
        time.sleep(self.rng.random() * longest)  # a moment, not a wait

    def victim(self):
        return self.rng.choice(self.kernels)

    def pid_in(self, kernel, name):
        table = processes()
        init = engine.inspect(self.server.container_of(kernel.id))["State"]["Pid"]
        tree = below(table, init)
        lines = [p for p in tree if table[p][1].startswith("line-")]
        if name == "supervise":
            return next(p for p in tree if table[p][1] == name)
        if name == "line":
            return lines[0]
        return next(p for p in tree if table[p][0] == lines[0])

    def kill_in(self, name):
        kernel = self.victim()
        pid = self.pid_in(kernel, name)
        kernel.kill()
        self.moment(0.1)
        os.kill(pid, signal.SIGKILL)
        return kernel

    def kill_kernel(self):
        self.kill_in("kernel")

    def kill_line(self):
        self.kill_in("line")

    def kill_supervisor(self):
        self.kill_in("supervise")

    def kill_container(self):
        kernel = self.victim()
        kernel.kill()
        self.end_container(self.server.container_of(kernel.id))

    def end_container(self, name):
        if self.rng.random() < 0.5:
            engine.kill(name)
        else:
            engine.call("DELETE", f"/containers/{name}", {"force": "1"})

    def end_gateway(self, how=None):
        how = how or self.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        cut(self.server, how)
        self.check_log()

    def kill_gateway(self):
        self.end_gateway(signal.SIGKILL)
        again(self.server)

    def term_gateway(self):
        self.end_gateway(signal.SIGTERM)
        again(self.server)

    def kill_gateway_and_kernel(self):
        name = self.rng.choice(["kernel", "line", "supervise", "container"])
        kernel = self.victim()
        container = self.server.container_of(kernel.id)
        pid = None if name == "container" else self.pid_in(kernel, name)
        kernel.kill()
        first = self.rng.random() < 0.3
        if not first:
            self.end_gateway()
        if pid:
            os.kill(pid, signal.SIGKILL)
        else:
            self.end_container(container)
        if first:
            self.end_gateway()
        again(self.server)

    def kill_gateway_in_a_call(self):
        """While a kernel starts, ends or restarts."""
        kind = self.rng.choice(["start", "delete", "restart"])
        if kind == "start":
            self.call("POST", "/api/kernels", json={"name": "python3"})
        elif kind == "delete":
            extra = self.server.start_kernel("python3")
            if self.rng.random() < 0.5:
                self.server.wait_state(extra, "idle", within(30))
            self.call("DELETE", f"/api/kernels/{extra}")
        else:
            kernel = self.victim()
            kernel.killed = True  # or not, if the gateway went first
            self.call("POST", f"/api/kernels/{kernel.id}/restart")
        self.moment(0.6 if kind == "start" else 0.1)
        self.end_gateway()
        again(self.server)

    def stop_engine(self):
        """Amid the calls of a start and an end."""
        extra = self.server.start_kernel("python3")
        if self.rng.random() < 0.5:
            self.server.wait_state(extra, "idle", within(30))
        self.call("DELETE", f"/api/kernels/{extra}")
        self.call("POST", "/api/kernels", json={"name": "python3"})
        self.moment(0.1)
        self.proxy.stop()
        self.moment()
        self.proxy.start()

    def stop_engine_and_kill_container(self):
        kernel = self.victim()
        container = self.server.container_of(kernel.id)
        kernel.kill()
        self.proxy.stop()
        self.end_container(container)
        self.moment()
        self.proxy.start()

    def stop_engine_and_gateway(self):
        """The gateway comes up while there is no engine, with something to sweep."""
        extra = self.server.start_kernel("python3")
        self.proxy.stop()
        self.call("DELETE", f"/api/kernels/{extra}")
        self.moment(0.1)
        self.end_gateway(signal.SIGKILL)
        again(self.server)
        self.moment()
        self.proxy.start()

    def call(self, method, path, **options):
        self.calls.append(Call(self.server, method, path, **options))

    VICTIMS = {kill_gateway: 4, term_gateway: 2, kill_kernel: 2, kill_line: 2, kill_supervisor: 2,
               kill_container: 2, kill_gateway_and_kernel: 3, kill_gateway_in_a_call: 3,
               stop_engine: 2, stop_engine_and_kill_container: 1, stop_engine_and_gateway: 1}

    # ---- a round ----

    def round(self, number, strike):
        for kernel in self.kernels:
            for i in range(self.rng.randint(1, 4)):
                kernel.ask(self.rng, f"{number}.{self.kernels.index(kernel)}.{i}")
        self.moment()
        strike(self)
        self.kernels[0].ask(self.rng, f"{number}.late")
        self.settle()
        for kernel in self.kernels:
            kernel.check()
            if kernel.killed:
                kernel.set_up()
            else:
                kernel.check_variables()
            kernel.killed, kernel.lost = False, None
        self.check_leftovers()

    def settle(self):
        for call in self.calls:
            call.done()
        self.calls = []
        mine = {k.id for k in self.kernels}
        for row in self.server.json("/api/kernels"):
            if row["id"] not in mine:
                assert self.server.delete(f"/api/kernels/{row['id']}").status_code == 204
        for kernel in self.kernels:
            self.settle_kernel(kernel)

    def settle_kernel(self, kernel):
        wait(kernel.is_settled if kernel.killed else lambda: True, bool, within(60))
        if kernel.killed and kernel.state() == "dead":
            r = self.server.post(f"/api/kernels/{kernel.id}/restart")
            assert r.status_code == 200, r.text
        wait(lambda: self.busy_pages(kernel), lambda left: not left, within(60))
        wait(kernel.state, lambda s: s == "idle", within(60))

    def busy_pages(self, kernel):
        assert self.server.process.poll() is None, f"gateway ended:\n{self.server.log()[-4000:]}"
        for page in kernel.pages:
            if page.fault:
                raise page.fault
        return [(a.kind, a.tag, p.framing, p.run_of(a)) for p in kernel.pages for a in p.open()]

    # ---- what is left ----

    def note_processes(self):
        """Every process of a container of ours is remembered, to be gone with its container."""
        table = processes()
        for row in engine.containers(self.server.run_dir):
            try:
                init = engine.inspect(row["Id"])["State"]["Pid"]
            except RuntimeError:
                continue
            for pid in below(table, init) if init else ():
                self.ours[pid, table[pid][2]] = row["Names"][0].lstrip("/")

    def check_leftovers(self):
        self.note_processes()
        names = wait(self.containers, lambda pair: pair[0] == pair[1], within(20))[0]
        self.check_folders(names)
        self.check_processes(names)
        self.check_clients()
        self.check_descriptors()
        self.check_log()

    def containers(self):
        there = {r["Names"][0].lstrip("/") for r in engine.containers(self.server.run_dir)}
        return there, {r["slot"]["container"] for r in self.server.show("slots")}

    def check_folders(self, names):
        slots = {n.removeprefix("coppice-") for n in names}
        wait(lambda: set(os.listdir(self.server.run_dir)), lambda found: found == slots, within(5))
        for slot in slots:
            # A line that ended while no gateway was there goes EXITED_MS after the adoption.
            wait(lambda: sorted(os.listdir(f"{self.server.run_dir}/{slot}/s")),
                 lambda files: len(files) == 5 and len({f.partition("-")[2] for f in files}) == 1,
                 within(5))
        ids = {k.id for k in self.kernels}
        data = self.server.data_dir
        wait(lambda: {p.stem for p in (data / "kernels").iterdir()}, lambda s: s == ids, within(5))
        wait(lambda: set(os.listdir(data / "journals")), lambda s: s == ids, within(5))

    def check_processes(self, names):
        gone = {key for key, name in self.ours.items() if name not in names}
        wait(lambda: gone & {(p, row[2]) for p, row in processes().items()},
             lambda left: not left, within(10))
        self.ours = {k: v for k, v in self.ours.items() if k not in gone}
        mine = [p for p in below(processes(), self.server.process.pid)]
        assert mine == [self.server.process.pid], f"children of the gateway: {mine}"

    def check_clients(self):
        sessions = {p.session for k in self.kernels for p in k.pages}
        wait(lambda: self.server.show("clients"),
             lambda rows: {r["session_id"] for r in rows} == sessions
             and all(r["attached"] for r in rows), within(20))

    def count_descriptors(self):
        """How many connections to the engine are kept to be used again is not fixed. One that the
        proxy has not accepted yet looks like the gateway's own."""
        found = descriptors(self.server.process.pid)
        found["socket"] -= self.proxy.connections()
        return found

    def check_descriptors(self):
        """As many as in the beginning, whichever gateway it is."""
        def others():
            found = self.count_descriptors()
            if found["journal"] != len(self.kernels):  # opened with its first write
                return {"journal": f"{found['journal']} of {len(self.kernels)} kernels"}
            return {k: f"{self.descriptors[k]} became {found[k]}"
                    for k in found | self.descriptors if found[k] != self.descriptors[k]}

        wait(others, lambda found: not found, within(10))

    def note_descriptors(self):
        """Once nothing comes or goes any more: the same for half a second."""
        seen = []
        wait(lambda: seen.append(self.count_descriptors()) or seen[-25:],
             lambda last: len(last) == 25 and all(c == last[0] for c in last)
             and last[0]["journal"] == len(self.kernels), within(20))
        self.descriptors = seen[-1]

    def check_log(self):
        found = UNSOUND.search(self.server.log())
        assert not found, self.server.log()[-6000:]

    def close(self):
        for kernel in self.kernels:
            kernel.close()


@pytest.fixture
def proxy(tmp_path, container_engine):
    proxy = EngineProxy(str(tmp_path / "engine.sock")).start()
    yield proxy
    proxy.stop()


def sweep(name, proxy, rounds):
    seed = int(os.environ.get("COPPICE_KILL_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"COPPICE_KILL_SEED={seed}")
    rng = random.Random(seed)
    with Server(name, "--engine", "docker", "--pool-floor", "0", "--engine-socket", proxy.path,
                "--restart-limit", "1000", "--cpus", "2") as server:
        server.argv[server.argv.index("--listen") + 1] = f"127.0.0.1:{server.port}"
        s = Sweep(server, proxy, rng)
        victims = list(Sweep.VICTIMS)
        try:
            for number in range(rounds):
                strike = rng.choices(victims, list(Sweep.VICTIMS.values()))[0]
                began = time.monotonic()
                print(f"round {number} {strike.__name__}", end=" ", flush=True)
                s.round(number, strike)
                print(f"{time.monotonic() - began:.1f} s", flush=True)
        finally:
            proxy.start() if not proxy.thread else None
            s.close()
        for kernel in s.kernels:
            assert server.delete(f"/api/kernels/{kernel.id}").status_code == 204


@pytest.mark.timeout(900)
def test_random_moments(proxy):
    sweep("kills", proxy, int(os.environ.get("COPPICE_KILL_ROUNDS", "20")))


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_random_moments_for_long(proxy):
    sweep("kills-long", proxy, int(os.environ.get("COPPICE_KILL_ROUNDS", "200")))


def test_engine_is_away_when_the_gateway_starts(proxy):
    """Kernels need no engine to live on; what there is to sweep is swept once it is back."""
    with Server("kills-engine", "--engine", "docker", "--pool-floor", "0", "--engine-socket",
                proxy.path) as server:
        kernel_id, left = (server.start_kernel("python3") for _ in range(2))
        with server.open(kernel_id) as c:
            c.info()
            assert c.run("kept = 'intact'").status == "ok"
            proxy.stop()
            cut(server, signal.SIGKILL)
        os.unlink(server.data_dir / "kernels" / f"{left}.json")
        again(server)
        with reconnected(server, kernel_id, c) as c:
            assert c.run("print(kept)").stdout == "intact\n"
        assert len(engine.containers(server.run_dir)) == 2
        proxy.start()
        name = server.container_of(kernel_id)
        wait(lambda: [r["Names"] for r in engine.containers(server.run_dir)],
             lambda found: found == [[f"/{name}"]], within(20))
        slot = name.removeprefix("coppice-")
        wait(lambda: os.listdir(server.run_dir), lambda found: found == [slot], within(5))


@pytest.mark.timeout(300)
def test_a_kernel_that_died_unwatched_is_shown_dead(docker_server):
    """Where nothing is started again by itself: it is listed with its reason, and a restart brings
    its pages back, with an end to what they had asked."""
    server = docker_server("kills-unwatched", "--auto-restart=false")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        run = c.execute("print('begun')\nimport time\ntime.sleep(600)")
        c.until_text("begun", run)
        container = server.container_of(kernel_id)
        cut(server, signal.SIGKILL)
    engine.call("DELETE", f"/containers/{container}", {"force": "1"})
    again(server)
    assert server.wait_state(kernel_id, "dead", within(10))["reason"]
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        reconnected(server, kernel_id, c)
    assert refused.value.status_code == 503
    assert server.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
    with reconnected(server, kernel_id, c) as c:
        assert c.collect(run, within(10)).status == "aborted"
        assert c.run("print('new')", within(30)).stdout == "new\n"


def test_a_restart_that_was_begun_is_carried_out(docker_server):
    """What was said to be aborted is not answered by the old process after all."""
    server = docker_server("survival-restart")
    kernel_id = server.start_kernel("python3")
    with server.open(kernel_id) as c:
        c.info()
        assert c.run("kept = 1").status == "ok"
        run = c.execute(ticker(1200))
        assert follow(c, run, lambda r: seen_ticks(r, 3))
        restart = Call(server, "POST", f"/api/kernels/{kernel_id}/restart")
        assert follow(c, run, complete)  # aborted, and the process is still being asked to end
        cut(server, signal.SIGKILL)
        restart.done()
    again(server)
    with reconnected(server, kernel_id, c) as c:
        assert c.run("print('kept' in globals())", within(30)).stdout == "False\n"
        assert c.runs[run].status == "aborted"
        assert [m.type for m in c.runs[run].messages].count("execute_reply") == 1
        table = processes()
        tree = below(table, engine.inspect(server.container_of(kernel_id))["State"]["Pid"])
        assert sum(table[p][1].startswith("line-") for p in tree) == 1
