"""The ways to go back, each with the same calls: a kernel, cells in it, a pause, a mark, a way back.

Coppice through its gateway, in containers; the others in an ipykernel of their own venv, without
gateway, container or memory limit, straight over ZeroMQ: nothing but their own work is in their times. A way
that says that it cannot (an error, a refusal with its reason) raises Told."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from http.client import HTTPConnection
from pathlib import Path

import kit
from client import Client, Direct, value
from twin import call, container_of

PYTHON = kit.VENVS / "branch" / "bin" / "python"
IN_KERNEL = Path(__file__).resolve().parent / "in_kernel"
CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
PAUSE_S = 0.5  # as a person leaves it; what is done in a pause is done then
PARKED_S = 20


class Told(RuntimeError):
    """It was said that this cannot be had, and why."""


class CellFailed(RuntimeError):
    pass


class Asker(Client):
    """A client that also says what a cell printed."""

    def cell(self, code, limit_s, silent=False):
        """(milliseconds until reply and idle, text)"""
        begun = time.perf_counter()
        self.last = self.ask("execute_request", {
            "code": code, "silent": silent, "store_history": not silent, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": False})
        reply, text, idle = None, "", False
        while reply is None or not idle:
            left = begun + limit_s - time.perf_counter()
            messages = self.way.receive(left) if left > 0 else []
            if not messages:
                raise TimeoutError(f"a cell took more than {limit_s} s")
            for header, parent, content in messages:
                if value(parent).get("msg_id") != self.last:
                    continue
                kind = value(header)["msg_type"]
                if kind == "execute_reply":
                    reply = value(content)
                elif kind == "stream":
                    text += value(content)["text"]
                elif kind == "status":
                    idle = idle or value(content)["execution_state"] == "idle"
        ms = (time.perf_counter() - begun) * 1e3
        if reply["status"] != "ok":
            raise CellFailed(f"{reply.get('ename')}: {reply.get('evalue')}"[:200])
        return ms, text


def files_below(folder, *endings):
    return [p for p in Path(folder).rglob("*") if p.is_file() and p.name.endswith(endings)]


def bytes_below(folder, *endings):
    return sum(p.stat().st_size for p in files_below(folder, *endings))


def forget_cached(paths):
    """Their next reader reads the disk."""
    for path in paths:
        with open(path, "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Side:
    """name, and whether `cell` brings a mark about by itself (else `checkpoint` is a call of its own)."""

    def __init__(self, limit_s):
        self.limit_s = limit_s
        self.client = None

    def cell(self, code):
        """Milliseconds that a user waits for it."""
        return self.client.cell(code, self.limit_s)[0]

    def answer(self, expression, silent=True):
        return self.client.cell(f"print(repr({expression}))", self.limit_s, silent)[1].rstrip("\n")

    def checkpoint(self):
        """Milliseconds that it takes to keep the state where that is not part of the cell."""
        return 0.0

    def settle(self):
        """A pause, after which the last cell's state is kept if it ever will be."""
        time.sleep(PAUSE_S)  # a pause is what is measured

    def undo(self, mark):
        """mark: the state before the last cell, for those that have no such call."""
        return self.checkout(mark)

    def timed(self, f, *args):
        begun = time.perf_counter()
        f(*args)
        return (time.perf_counter() - begun) * 1e3

    def chill(self):
        """What is kept in files leaves the page cache; whether there is any."""
        return False

    def lost(self):
        """What the last way back said that it did not bring back."""
        return []

    def kept(self):
        """{count, bytes} of what is kept to go back to."""
        return {}


class Local(Side):
    """A plain ipykernel: what the cells cost with nothing that keeps them."""

    name = "plain kernel"

    def __init__(self, context, home, limit_s):
        super().__init__(limit_s)
        self.context, self.home, self.process = context, Path(home), None
        self.n = self.starts = 0
        self.home.mkdir(parents=True)
        self.begin()

    def begin(self):
        # Sockets in its folder rather than ports, for which two kernels could race.
        key, self.starts = secrets.token_hex(32), self.starts + 1
        path, name = self.home / "connection.json", f"{self.home}/s{self.starts}"
        path.touch(mode=0o600)
        path.write_text(json.dumps({
            **{f"{c}_port": i + 1 for i, c in enumerate(CHANNELS)}, "ip": name, "transport": "ipc",
            "key": key, "signature_scheme": "hmac-sha256"}))
        env = {**kit.environment(self.home, "kernel"), "PYTHONPATH": str(IN_KERNEL),
               "TMPDIR": str(self.home), "KISHU_PATH_ROOT": str(self.home), "MPLBACKEND": "agg"}
        with open(self.home / "kernel.log", "ab") as log:
            # A group of its own: what cells start ends with it.
            self.process = subprocess.Popen(
                [str(PYTHON), "-m", "ipykernel_launcher", "-f", str(path)], cwd=self.home, env=env,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.client = Asker(Direct(self.context, {
            c: f"ipc://{name}-{i + 1}" for i, c in enumerate(CHANNELS)}, key))
        self.client.wait_ready()
        self.attach()

    def attach(self):
        pass

    def inside(self, call_text):
        """A function of in_kernel/branch_peer.py."""
        code = f"__import__('branch_peer').{call_text}"
        try:
            return self.client.cell(code, self.limit_s, silent=True)[1]
        except CellFailed as e:
            raise Told(str(e)) from None

    def mark(self):
        return None

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.client:
            self.client.close()

    def close(self):
        self.end()
        shutil.rmtree(self.home, ignore_errors=True)  # up to 18 times the state


class Stored(Local):
    """endings: of the files that hold what is kept."""

    def kept(self):
        return {"bytes": bytes_below(self.home, *self.endings)}

    def chill(self):
        forget_cached(files_below(self.home, *self.endings))
        return True


class Kishu(Stored):
    tracker = "default"
    name = "Kishu"
    endings = (".kishudb", ".kishudb-wal")

    def attach(self):
        self.inside(f"kishu_attach({str(self.home)!r}, {self.tracker!r})")

    def mark(self):
        return self.inside("kishu_head()").split()[-1]

    def checkout(self, mark):
        return self.timed(self.inside, f"kishu_checkout({mark!r})")

class KishuExperimental(Kishu):
    tracker = "experimental"
    name = "Kishu experimental"


class Dumps(Stored):
    """A file after each cell, read into the same kernel."""

    endings = (".state",)

    def checkpoint(self):
        self.n += 1
        return self.timed(self.inside, f"{self.kind}_dump({self.file()!r})")

    def file(self):
        return str(self.home / f"{self.n}.state")

    def mark(self):
        return self.file()

    def checkout(self, mark):
        return self.timed(self.inside, f"{self.kind}_load({mark!r})")


class Dill(Dumps):
    kind = "dill"
    name = "dill session"


class Pickle(Dumps):
    kind = "pickle"
    name = "pickle of all"


class Rerun(Local):
    """Restart and run all: the cells that led to a mark, in a new kernel."""

    name = "restart and run all"

    def __init__(self, *args):
        self.codes = ()
        super().__init__(*args)

    def cell(self, code):
        ms = super().cell(code)
        self.codes += (code,)
        return ms

    def mark(self):
        return self.codes

    def again(self, codes):
        self.end()
        self.begin()
        self.codes = ()
        for code in codes:
            self.cell(code)

    def checkout(self, mark):
        return self.timed(self.again, mark)


class Coppice(Side):
    """gateway: a server.Coppice with parks, whose only kernels are these."""

    name = "coppice"
    kernel = "docker"

    def __init__(self, gateway, limit_s):
        super().__init__(limit_s)
        self.gateway, self.told = gateway, None
        self.kernel_id = gateway.post(self.kernel)
        try:
            self.client = Asker(gateway.open(self.kernel_id, "v1", True))
            self.client.wait_ready()
        except BaseException:
            self.close()
            raise

    def head(self):
        with contextlib.suppress(RuntimeError):  # no history yet
            node = kit.http("GET", self.gateway.url(f"/history/{self.kernel_id}/nodes/HEAD"),
                            self.gateway.token).json()
            if node["msg_id"] == self.client.last:
                return node
        return None

    def parked(self, seconds=PARKED_S):
        """The node of the last cell; whether it is parked is in its `restorable_by`."""
        deadline = time.monotonic() + seconds
        while True:
            node = self.head()
            if (node and "parked" in node["restorable_by"]) or time.monotonic() > deadline:
                return node
            time.sleep(0.02)  # between two questions

    def settle(self):
        self.parked()
        super().settle()

    def mark(self):
        return kit.wait(self.head, PARKED_S, "the last cell is recorded")["id"]

    def move(self, what, body):
        """The answer; `accept` is partial: what is lost is told, and kept in self.told."""
        connection = HTTPConnection(self.gateway.host, self.gateway.port, timeout=self.limit_s)
        try:
            connection.request("POST", f"/api/kernels/{self.kernel_id}/{what}",
                               json.dumps({**body, "accept": "partial"}),
                               {"Authorization": f"token {self.gateway.token}",
                                "Content-Type": "application/json"})
            r = connection.getresponse()
            answer = json.loads(r.read())
        finally:
            connection.close()
        if r.status == 409:
            lost = answer.get("report", {}).get("lost", [])
            notes = answer.get("report", {}).get("notes", [])
            why = " ".join([*(x["reason"] for x in lost), *notes]) or answer["message"]
            raise Told(f"{answer['reason']}: {why}"[:200])
        if r.status != 200:
            raise RuntimeError(f"{what}: {r.status} {answer}")
        self.told = answer["report"]

    def lost(self):
        if not self.told or self.told["fidelity"] == "exact":
            return []
        return [*(f"{x['name']}: {x['reason']}" for x in self.told["lost"]), *self.told["notes"]]

    def checkout(self, mark):
        return self.timed(self.move, "checkout", {"node": mark})

    def undo(self, mark):
        return self.timed(self.move, "undo", {})

    def kept(self):
        """The parked processes: those of the container that are stopped. `bytes` is what they have for
        themselves and their share of the rest (PSS), `private` the first alone."""
        found = kit.wait(lambda: container_of(self.gateway.run_dir), PARKED_S, "one container is left")
        rows = call("GET", f"/containers/{found['Id']}/top")
        pids = [int(row[rows["Titles"].index("PID")]) for row in rows["Processes"]]
        kept = [memory_kb(pid) for pid in pids if stopped(pid)]
        return {"count": len(kept), "bytes": 1024 * sum(pss for pss, _ in kept),
                "private": 1024 * sum(private for _, private in kept)}

    def close(self):
        if self.client:
            self.client.close()
        self.gateway.delete(self.kernel_id)


class CoppiceBare(Coppice):
    """The same container and gateway with neither recording nor parks: what the cells cost anyway."""

    name = "coppice bare"

    def settle(self):
        Side.settle(self)

    def mark(self):
        return None

    def kept(self):
        return {}


def memory_kb(pid):
    """(PSS, private) of a process."""
    rows = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]]
    found = {row[0]: int(row[1]) for row in rows}
    return found["Pss:"], found["Private_Clean:"] + found["Private_Dirty:"]


def stopped(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except FileNotFoundError:
        return False


LOCALS = {side.name: side for side in (Local, Kishu, KishuExperimental, Dill, Pickle, Rerun)}
# What each is compared with: the same kernel, cell by cell, without it.
BARE = {Coppice.name: CoppiceBare.name, **{name: Local.name for name in LOCALS}}
