"""From POST sent to the first idle: of a kernel_info_request on a WebSocket opened at the 201. Cold,
from the pool (there also to the end of a first cell, sent at that idle as pages do), 20 at once, and
a restart."""

import concurrent.futures
import time

import kit
import peers
import server
from client import Client
from run import table

POOL_S = 60
COLUMNS = [("kernels", "kernels", "d"), ("median_ms", "median ms", ".0f"), ("max_ms", "slowest ms", ".0f"),
           ("all_ms", "all after ms", ".0f"), ("execute_ms", "execute ms", ".2f")]


def answered(gateway, kernel_id):
    client = Client(gateway.open(kernel_id, gateway.framings[0], True))
    try:
        client.info()
    finally:
        client.close()


def one_start(gateway, kernel):
    """(milliseconds, kernel id)"""
    begun = time.perf_counter()
    kernel_id = gateway.post(kernel)
    answered(gateway, kernel_id)
    return (time.perf_counter() - begun) * 1e3, kernel_id


def row(side, what, times, all_ms=None, execute_ms=None):
    return {"side": f"{side}, {what}", "kernels": len(times), "median_ms": kit.median(times),
            "max_ms": max(times), "all_ms": all_ms, "execute_ms": execute_ms}


def cold(gateway, kernel, count):
    times = []
    for _ in range(count):
        ms, kernel_id = one_start(gateway, kernel)
        gateway.delete(kernel_id)
        times.append(ms)
    return times


def restarts(gateway, kernel, count):
    times = []
    with gateway.kernel(kernel) as kernel_id:
        answered(gateway, kernel_id)
        for _ in range(count):
            begun = time.perf_counter()
            gateway.restart(kernel_id)
            answered(gateway, kernel_id)
            times.append((time.perf_counter() - begun) * 1e3)
    return times


def burst(gateway, kernel, count):
    """(each one's milliseconds, until all had answered)"""
    begun = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        got = list(threads.map(lambda _: one_start(gateway, kernel), range(count)))
    all_ms = (time.perf_counter() - begun) * 1e3
    for _, kernel_id in got:
        gateway.delete(kernel_id)
    return [ms for ms, _ in got], all_ms


def first_cell(gateway):
    """(milliseconds to the first idle, to the end of a first cell, kernel id)"""
    begun = time.perf_counter()
    kernel_id = gateway.post("docker")
    client = Client(gateway.open(kernel_id, gateway.framings[0], True))
    try:
        client.info()
        idle = time.perf_counter()
        client.execute("6*7")
        return (idle - begun) * 1e3, (time.perf_counter() - begun) * 1e3, kernel_id
    finally:
        client.close()


def pooled(run, rows, gateway):
    times, cells, executes = [], [], []
    with run.attempt(rows, "coppice docker", "from the pool"):
        for _ in range(run.pick(2, 20, 50)):
            kit.wait(lambda: gateway.show("pool")["ready"], POOL_S, "a kernel waits in the pool")
            ms, cell_ms, kernel_id = first_cell(gateway)
            with server.ready(gateway.open(kernel_id)) as client:
                executes += [client.execute("6*7") / 1e6 for _ in range(5)]
            gateway.delete(kernel_id)
            times.append(ms)
            cells.append(cell_ms)
        rows.append(row("coppice docker", "from the pool", times, execute_ms=kit.median(executes)))
        rows.append(row("coppice docker", "from the pool, first cell", cells))
        run.bound("start from the pool, less an execute",
                  kit.median(times) - kit.median(executes), 5, "ms")


def side(run, rows, gateway, kernel, name):
    count, many = run.pick(1, 3, 10), run.pick(3, 20, 20)
    with run.attempt(rows, name, "cold"):
        rows.append(row(name, "cold", cold(gateway, kernel, count)))
    with run.attempt(rows, name, "restart"):
        rows.append(row(name, "restart", restarts(gateway, kernel, count)))
    with run.attempt(rows, name, f"{many} at once"):
        rows.append(row(name, f"{many} at once", *burst(gateway, kernel, many)))
    print(f"start: {name} done", flush=True)


def measure(run):
    rows = []
    with server.Coppice(run.home) as coppice:
        side(run, rows, coppice, "docker", "coppice docker")
        side(run, rows, coppice, "python3", "coppice process")
    with server.Coppice(run.home, engines="docker", pool=1) as coppice:
        pooled(run, rows, coppice)
    with peers.all_of(run) as others:
        for peer in others:
            side(run, rows, peer, "python3", peer.name)
    table("start: from POST to the first idle", COLUMNS, rows)
    return rows
