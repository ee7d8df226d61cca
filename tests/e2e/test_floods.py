"""Floods and readers that stall: field case 14, and that nobody who stays connected or comes back
loses anything. A reader's pause is what is tested; no test waits by one."""

import json
import socket
import threading
import time

import pytest

from gateway import wait, within
from test_streams import resident_mb
from wire import Run

FRAMINGS = ("legacy", "v1")
STALLS = (1, 5, 15)
FILL = "." * 900  # so that the flood is more than sockets take in


class Reader(threading.Thread):
    """Reads to the end of that run, in a thread of its own; begin(self) is its way of not reading."""

    def __init__(self, client, run, begin=lambda reader: None):
        super().__init__(daemon=True)
        self.client, self.run_id, self.begin, self.failed = client, run, begin, None
        client.runs.setdefault(run, Run(run))
        self.start()

    def run(self):
        try:
            self.begin(self)
            take_in(self.client, 1 << 20)
            self.client.until(lambda m: self.got.idle, within(100))
        except Exception as e:  # told by end()
            self.failed = e

    @property
    def got(self):
        return self.client.runs[self.run_id]

    def end(self):
        self.join(within(120))
        assert not self.is_alive() and self.failed is None, self.failed
        return self.got


def stall(server, seconds):
    """The longest lasts until it is the gateway's matter in any case."""
    def begin(reader):
        time.sleep(seconds)
        if seconds == max(STALLS):
            wait(lambda: behind(server, reader.client), lambda n: n > 64, within(60))

    return begin


def drip(reader):
    """One frame every 50 ms for three seconds."""
    end = time.monotonic() + 3
    while time.monotonic() < end and not reader.got.idle:
        time.sleep(0.05)
        reader.client.receive(within(60))


def take_in(client, n_bytes):
    """What its machine takes in unread."""
    client.ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, n_bytes)


def open_narrow(server, kernel_id, framing):
    """A stall of this one is soon the gateway's matter."""
    c = server.open(kernel_id, framing)
    take_in(c, 32 << 10)
    c.info()
    return c


def behind(server, client):
    (row,) = [r for r in server.show("clients") if r["session_id"] == client.session]
    return row["behind"]


# ---- what is said, and what is expected ----

def said(kind, **content):
    return {"send": "iopub", "type": kind, "content": json.dumps(content)}


def line(name):
    return said("stream", name=name, text=f"@n {FILL}\n")


ROUND = [
    *[line("stdout")] * 10, line("stderr"), line("stderr"),
    said("display_data", data={"text/plain": "@n"}, metadata={}, transient={"display_id": "d"}),
    line("stdout"),
    said("update_display_data", data={"text/plain": "@n"}, metadata={},
         transient={"display_id": "d"}),
    said("comm_msg", comm_id="c", data={"n": "@n"}), line("stderr"),
    said("clear_output", wait=True, n="@n"),
    said("error", ename="E", evalue="@n", traceback=[]), line("stdout"),
]
COMM_EVERY_100 = [*[line("stdout")] * 100, said("comm_msg", comm_id="c", data={"n": "@n"})]


def kinds_of(steps):
    return [json.loads(s["content"])["name"] if s["type"] == "stream" else s["type"] for s in steps]


KINDS = kinds_of(ROUND)
# The same from ipykernel, by its own means where it has them.
CODE = f"""
import sys
from comm import create_comm
ip, c = get_ipython(), create_comm("t")
def line(n, to):
    print(n, {FILL!r}, file=to, flush=True)
def failed(n):
    try: raise ValueError(n)
    except ValueError: ip.showtraceback()
def cleared(n):
    k = ip.kernel
    k.session.send(k.iopub_socket, "clear_output", {{"wait": True, "n": str(n)}},
                   parent=k.get_parent())
def show(n, **more):
    display({{"text/plain": str(n)}}, raw=True, display_id="d", **more)
say = {{"stdout": lambda n: line(n, sys.stdout), "stderr": lambda n: line(n, sys.stderr),
       "display_data": show, "update_display_data": lambda n: show(n, update=True),
       "comm_msg": lambda n: c.send({{"n": str(n)}}), "clear_output": cleared, "error": failed}}
kinds = {KINDS}
for n in range(len(kinds) * ROUNDS):
    say[kinds[n % len(kinds)]](n)
"""


def script(steps, rounds, *more):
    return json.dumps([{"repeat": rounds, "steps": steps}, *more])


def code(rounds):
    return CODE.replace("ROUNDS", str(rounds))


def expected(kinds, rounds):
    return [(kinds[n % len(kinds)], n) for n in range(rounds * len(kinds))]


def number(m):
    c = m.content
    return {"comm_msg": lambda: c["data"]["n"], "clear_output": lambda: c["n"],
            "error": lambda: c["evalue"]}.get(m.type, lambda: c["data"]["text/plain"])()


def tokens(run):
    """(kind, number) of every message in order, a joined text's lines one by one."""
    found = []
    for m in run.iopub():
        if m.type == "stream":
            *lines, last = m.content["text"].split("\n")
            assert last == "" and all(line.endswith(" " + FILL) for line in lines)
            found += [(m.content["name"], int(line.split()[0])) for line in lines]
        elif m.type in KINDS:
            found.append((m.type, int(number(m))))
    return found


def first_difference(got, wanted):
    at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
    return f"{len(got)} of {len(wanted)}, differ at {at}: {got[at:at + 3]} not {wanted[at:at + 3]}"


def assert_whole(run, rounds, who, kinds=KINDS):
    wanted = expected(kinds, rounds)
    got = tokens(run)
    assert got == wanted, f"{who}: {first_difference(got, wanted)}"
    for name in ("stdout", "stderr"):
        assert run.text(name) == "".join(f"{n} {FILL}\n" for kind, n in wanted if kind == name), who
    assert run.states == ["busy", "idle"] and run.types.count("execute_input") == 1, who
    ids = [m.header["msg_id"] for m in run.messages]
    assert len(ids) == len(set(ids)), f"{who}: a message came twice"


def flood_readers_that_stall(server, kernel_id, what, rounds):
    """Readers of both framings that stall, one that does not, and one of each that was gone."""
    gone = [open_narrow(server, kernel_id, f) for f in FRAMINGS]
    for c in gone:
        c.cut()
    wait(lambda: server.show("clients"), lambda rows: not any(r["attached"] for r in rows), within(10))
    stalled = {(s, f): open_narrow(server, kernel_id, f) for s in STALLS for f in FRAMINGS}
    quick = server.open(kernel_id, "v1")
    quick.info()
    run = quick.execute(what)
    readers = {name: Reader(c, run, stall(server, name[0])) for name, c in stalled.items()}
    assert_whole(quick.collect(run, within(90)), rounds, "quick")
    for c in gone:
        with server.open(kernel_id, c.framing, session=c.session) as back:
            assert_whole(Reader(back, run).end(), rounds, f"gone {c.framing}")
    for name, r in readers.items():
        got = r.end()
        assert_whole(got, rounds, name)
        assert got.reply is None, "that was the asker's"
        r.client.close()
    quick.close()
    assert quick.runs[run].status == "ok"


def test_stalled_readers_of_a_scripted_kernel(process_gateway, fake_kernel):
    flood_readers_that_stall(process_gateway, fake_kernel, script(ROUND, 1000), 1000)


def test_stalled_readers_of_a_container(docker_gateway, kernel):
    flood_readers_that_stall(docker_gateway, kernel, code(500), 500)


# ---- field case 14 ----

class Neighbour:
    """Another kernel's page, which asks for kernel_info again and again, and the gateway's memory."""

    def __init__(self, server, kernel_id, client):
        self.server, self.kernel_id, self.client = server, kernel_id, client
        self.worst = self.asked = self.journal = 0
        self.before = self.most = resident_mb(server.process.pid)

    def ask_until(self, over):
        while not over():
            self.client.messages.clear()  # each wait looks through them from the first
            begun = time.monotonic()
            self.client.info(within(30))
            self.worst = max(self.worst, time.monotonic() - begun)
            self.asked += 1
            self.most = max(self.most, resident_mb(self.server.process.pid))
            (row,) = self.server.rows_of("kernels", self.kernel_id)
            self.journal = max(self.journal, row["journal_memory_bytes"])
            time.sleep(0.1)  # it is to be a neighbour, not the load

    def check(self, record):
        record("kernel_info_worst_ms", round(self.worst * 1000))
        record("kernel_info_asked", self.asked)
        record("gateway_grew_mb", round(self.most - self.before))
        print(f"kernel_info {self.asked} times, at worst {self.worst * 1000:.0f} ms; "
              f"memory grew {self.most - self.before:.0f} MB")
        assert self.asked > 0
        limit = self.server.show("config")["journal_memory"]
        assert self.journal <= 2 * limit, f"{self.journal} bytes of the journal in memory"
        # Sanitizers keep freed blocks.
        assert self.most - self.before < 64 or "asan" in self.server.argv[0]


def beside(server, kernel_id, name, what, record):
    """Runs that with A as the asker and B as another page, while a neighbour asks. Their runs."""
    with server.kernel(name) as other, server.open(other) as witness, \
            open_narrow(server, kernel_id, "legacy") as a, server.open(kernel_id, "v1") as b:
        witness.info(), b.info()
        neighbour = Neighbour(server, kernel_id, witness)
        run = a.execute(what)
        readers = Reader(a, run, drip), Reader(b, run)
        neighbour.ask_until(lambda: not any(r.is_alive() for r in readers))
        runs = [r.end() for r in readers]
        a.collect(run, within(30))
        a.drain(), b.drain()
        neighbour.check(record)
        # A page's place in the queue too: what B asks next is answered.
        assert b.run("1").status == "ok"
    assert runs[0].status == "ok" and runs[0].types.count("execute_reply") == 0
    return runs


def test_case_14_lines_of_a_container(docker_gateway, kernel, record_property):
    lines = "".join(f"{j}\n" for j in range(200000))
    for run in beside(docker_gateway, kernel, "python3", "for j in range(200000): print(j)",
                      record_property):
        assert run.outline() == ["busy", "execute_input", ("stdout", lines), "idle"]


def test_case_14_comm_messages_in_a_scripted_flood(process_gateway, fake_kernel, record_property):
    asks = {"send": "stdin", "type": "input_request",
            "content": json.dumps({"prompt": "?", "password": False})}
    a, b = beside(process_gateway, fake_kernel, "fake", script(COMM_EVERY_100, 200, asks),
                  record_property)
    for run in (a, b):
        assert_whole(run, 200, "A" if run is a else "B", kinds_of(COMM_EVERY_100))
    assert [m.type for m in a.messages if m.channel == "stdin"] == ["input_request"]
