"""At rest: memory (PSS) and processor time of the gateway's process with nothing, with WebSockets
that nobody uses, with kernels that nobody uses (scripted ones, so that the machine can hold them)."""

import contextlib
import time

import kit
import peers
import server
from family_start import answered
from run import table

SETTLE_S = 1  # what opening them set in motion ends
COLUMNS = [("pss_mb", "PSS MB", ".1f"), ("sockets", "sockets", "d"),
           ("kb_socket", "KB a socket", ".1f"), ("kernels", "kernels", "d"),
           ("kb_kernel", "KB a kernel", ".1f"), ("cpu_idle", "CPU % empty", ".2f"),
           ("cpu_sockets", "% sockets", ".2f"), ("cpu_kernels", "% kernels", ".2f")]


def cpu_percent(pid, seconds):
    before, begun = kit.cpu_ns(pid), time.monotonic_ns()
    time.sleep(seconds)  # the time at rest that is looked at
    return 100 * (kit.cpu_ns(pid) - before) / (time.monotonic_ns() - begun)


def settled(pid):
    time.sleep(SETTLE_S)
    return kit.pss_kb(pid)


def with_sockets(gateway, count, seconds, out):
    """One kernel, so that what they cost alone is seen."""
    with gateway.kernel("scripted") as kernel_id, contextlib.ExitStack() as stack:
        framing = gateway.framings[0]
        with server.ready(gateway.open(kernel_id, framing)):
            before = settled(gateway.pid)
            for _ in range(count):
                stack.callback(gateway.open(kernel_id, framing).close)
            out["kb_socket"] = (settled(gateway.pid) - before) / count
            out["cpu_sockets"] = cpu_percent(gateway.pid, seconds)
            out["sockets"] = count


def with_kernels(gateway, kernel, count, seconds, out):
    """After a first one, which pays for what all share."""
    ids = []
    try:
        ids.append(idle_kernel(gateway, kernel))
        before = settled(gateway.pid)
        for _ in range(count):
            ids.append(idle_kernel(gateway, kernel))
        out["kb_kernel"] = (settled(gateway.pid) - before) / count
        out["cpu_kernels"] = cpu_percent(gateway.pid, seconds)
        out["kernels"] = count
    finally:
        for kernel_id in ids:
            gateway.delete(kernel_id)


def idle_kernel(gateway, kernel):
    kernel_id = gateway.post(kernel)
    answered(gateway, kernel_id)
    return kernel_id


def side(run, gateway, name, sockets, kernels, kernel="scripted"):
    seconds = run.pick(1, 3, 10)
    out = {"side": name, "pss_mb": settled(gateway.pid) / 1024,
           "cpu_idle": cpu_percent(gateway.pid, seconds)}
    if sockets:
        with_sockets(gateway, sockets, seconds, out)
        # Memory that the sockets gave back would be taken again by the kernels, and not be seen.
        gateway.stop()
        gateway.start()
    with_kernels(gateway, kernel, kernels, seconds, out)
    print(f"rest: {name} done", flush=True)
    return out


def bounds(run, rows):
    for r in rows:
        if not r["side"].startswith("coppice") or "failed" in r:
            continue
        if "kb_socket" in r:
            run.bound("memory, gateway idle", r["pss_mb"], 14, "MB")
            run.bound("memory per idle WebSocket", r["kb_socket"], 8, "KB")
        run.bound(f"memory per idle kernel, {r['side']}", r["kb_kernel"], 176, "KB")


def measure(run):
    rows = []
    with run.attempt(rows, "coppice process", "rest"):
        with server.Coppice(run.home, "--max-kernels", "1000", "--pool-ceiling", "1000") as coppice:
            rows.append(side(run, coppice, "coppice process", run.pick(50, 1000, 1000),
                             run.pick(10, 250, 250)))
            with run.attempt(rows, "coppice docker", "rest"):
                rows.append(side(run, coppice, "coppice docker", 0, run.pick(2, 5, 20), "docker"))
    with peers.all_of(run) as others:
        for peer in others:
            with run.attempt(rows, peer.name, "rest"):
                rows.append(side(run, peer, peer.name, run.pick(10, 100, 1000),
                                 run.pick(3, 10, 50)))
    table("rest", COLUMNS, rows)
    bounds(run, rows)
    return rows
