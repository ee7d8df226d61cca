"""What a neighbour feels: a trivial cell every 20 ms in one container, while another container does
its worst, with the usual limits (requirements R7)."""

import contextlib
import multiprocessing
import os
import time

import kit
import server
from run import table

COLUMNS = [("cells", "cells", "d"), ("median_ms", "median ms", ".2f"), ("p99_ms", "p99 ms", ".2f"),
           ("ratio", "median ratio", ".2f"), ("p99_ratio", "p99 ratio", ".2f")]
PAUSE_S = 0.02
ATTACKS = {
    "spins": """
import threading
def spin():
    while True: pass
for _ in range(8): threading.Thread(target=spin, daemon=True).start()
spin()""",
    "forks": """
import os
while True:
    try:
        if os.fork() == 0:
            while True: pass
    except OSError:
        pass""",
    "eats memory": """
kept = []
while True: kept.append(bytearray(os.urandom(1) * (8 << 20)))""",
    "fills the disk": """
import os
while True:
    try:
        with open('/work/fill', 'wb') as f:
            while True: f.write(b'x' * (1 << 20))
    except OSError:
        os.remove('/work/fill')""",
    "prints": "while True: print('x' * 100)",
}


def cells(client, count):
    times = []
    for _ in range(count):
        times.append(client.execute("6*7") / 1e6)
        time.sleep(PAUSE_S)  # as a person or a model leaves it; back to back is the family execute
    return times


class Attack:
    """A kernel that does its worst until it is deleted; it is asked again where it dies of it. Its
    client is a process of its own, and one that gives way: elsewhere it would be on another machine,
    and in a thread of this program the reading of a flood would hold up the client that measures."""

    def __init__(self, gateway, code):
        self.gateway, self.code = gateway, "import os\n" + code
        self.kernel_id = gateway.post("docker")
        self.client = multiprocessing.get_context("fork").Process(target=self.run, daemon=True)

    def run(self):
        os.nice(19)
        while True:
            with contextlib.suppress(RuntimeError, OSError):
                client = server.Client(self.gateway.open(self.kernel_id, "v1", True))
                try:
                    client.wait_ready()
                    client.execute(self.code)
                finally:
                    client.close()

    def __enter__(self):
        self.client.start()
        kit.wait(self.is_busy, 60, "it is under way")
        return self

    def is_busy(self):
        model = kit.http("GET", self.gateway.url(f"/api/kernels/{self.kernel_id}"),
                         self.gateway.token).json()
        return model["execution_state"] == "busy"

    def __exit__(self, *_):
        self.client.terminate()
        self.client.join(10)
        self.gateway.delete(self.kernel_id)


def row(side, times, calm):
    out = {"side": side, "cells": len(times), "median_ms": kit.median(times),
           "p99_ms": kit.p99(times)}
    if calm:
        out |= {"ratio": out["median_ms"] / calm["median_ms"],
                "p99_ratio": out["p99_ms"] / calm["p99_ms"]}
    return out


def measure(run):
    count, rows = run.pick(20, 200, 1000), []
    with server.Coppice(run.home, engines="docker", cpus=0.5) as gateway, \
            gateway.client("docker") as client:
        cells(client, 20)
        calm = row("nobody beside it", cells(client, count), None)
        rows.append(calm)
        for name, code in ATTACKS.items():
            with run.attempt(rows, name, "neighbour"), Attack(gateway, code):
                rows.append(row(f"beside one that {name}", cells(client, count), calm))
    measured = [r for r in rows if "ratio" in r]
    if measured:
        run.bound("neighbour, median", max(r["ratio"] for r in measured), 1.5)
        run.bound("neighbour, p99", max(r["p99_ratio"] for r in measured), 2)
    table("neighbour: a cell every 20 ms beside a hostile one", COLUMNS, rows)
    return rows
