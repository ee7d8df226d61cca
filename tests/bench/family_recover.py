"""From kill -9 of the gateway to the first execute that is answered again; the gateway is started
again at once. Whether the kernel and what it knew are still there; if not, a new kernel is started."""

import contextlib
import time

import kit
import peers
import server
from client import Client
from run import table

COLUMNS = [("tries", "tries", "d"), ("median_ms", "median ms", ".0f"), ("max_ms", "slowest ms", ".0f"),
           ("gateway_ms", "gateway up ms", ".0f"), ("kept", "kernels kept", "")]


def still_there(gateway, kernel_id):
    with contextlib.suppress(RuntimeError):
        model = kit.http("GET", gateway.url(f"/api/kernels/{kernel_id}"), gateway.token).json()
        return model["execution_state"] != "dead"
    return False


def execute(gateway, kernel_id, code):
    client = Client(gateway.open(kernel_id, gateway.framings[0], True))
    try:
        client.execute(code)
    finally:
        client.close()


def once(gateway, kernel):
    """(milliseconds, of those until the gateway answered, whether the kernel was kept)"""
    kernel_id = gateway.post(kernel)
    with server.ready(gateway.open(kernel_id, gateway.framings[0], True)) as client:
        client.execute("x = 42")
    begun = time.perf_counter()
    gateway.kill()
    gateway.start()
    up_ms = (time.perf_counter() - begun) * 1e3
    kept = still_there(gateway, kernel_id)
    if not kept:
        kernel_id = gateway.post(kernel)
    execute(gateway, kernel_id, "assert x == 42" if kept else "x = 42")
    ms = (time.perf_counter() - begun) * 1e3
    gateway.delete(kernel_id)
    return ms, up_ms, kept


def side(run, rows, gateway, kernel, name):
    with run.attempt(rows, name, "recover"):
        got = [once(gateway, kernel) for _ in range(run.pick(1, 2, 5))]
        times = [ms for ms, _, _ in got]
        rows.append({"side": name, "tries": len(got), "median_ms": kit.median(times),
                     "max_ms": max(times), "gateway_ms": kit.median(up for _, up, _ in got),
                     "kept": f"{sum(kept for _, _, kept in got)} of {len(got)}"})
    print(f"recover: {name} done", flush=True)


def measure(run):
    rows = []
    with server.Coppice(run.home) as coppice:
        side(run, rows, coppice, "docker", "coppice docker")
        side(run, rows, coppice, "python3", "coppice process")
    with peers.all_of(run) as others:
        for peer in others:
            side(run, rows, peer, "python3", peer.name)
    table("recover: from kill -9 to the first answered execute", COLUMNS, rows)
    return rows
