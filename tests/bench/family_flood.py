"""Many small messages: how fast, how many are lost, what one costs the gateway's processor.

From a real kernel, from a scripted one that outruns every gateway, and paced; and how many are lost
where the reader stalls. The reader is a C
program (reader.c) that acknowledges at once, on every side."""

import kit
import peers
import reading
import server
import sides
from run import table

PACE = 200  # messages a second
PACED = f"{PACE}/s, scripted kernel (docker: a real one)"
STALL_S = 5
STALLED = f"reader stalls {STALL_S} s, real kernel"
COLUMNS = [("asked", "asked", "d"), ("lost", "lost", "d"),
           ("late", "after idle", "d"), ("messages", "in messages", "d"),
           ("rate", "lines/s", ",.0f"), ("ratio", "to direct", ".2f"),
           ("cpu_us", "CPU us/line", ".2f"), ("ended", "cell ended", "")]
STALLED_COLUMNS = [c for c in COLUMNS if c[0] in ("asked", "lost", "late", "messages", "ended")]


def row(side, kernel, asked, got):
    cpu = got.get("cpu_ns")
    return {"side": side, "kernel": kernel, "asked": asked, "lost": asked - got["lines"],
            "late": got["late"], "messages": got["messages"], "seconds": got["seconds"],
            "rate": got["lines"] / got["seconds"] if got["seconds"] else 0.0,
            "cpu_us": cpu / 1e3 / max(got["lines"], 1) if cpu is not None else None,
            "ended": "yes" if got["idle"] else "no"}


def code(kernel, count, rate=0):
    if kernel == "scripted":
        return f"flood {count} {rate}" if rate else f"flood {count}"
    if rate:
        return f"import time\nfor i in range({count}): print(i, flush=True); time.sleep(1 / {rate})"
    return f"for i in range({count}): print(i, flush=True)"


def through(gateway, kernel, text):
    framing = gateway.framings[0]
    with gateway.client(kernel, framing, True) as client:
        return reading.over_socket(client, framing, text, gateway.pid)


def direct_process(run, kernel, text):
    with sides.process_kernel(run.home, kernel) as k, sides.direct(k) as client:
        return reading.direct(client, k, text)


def docker_three(run, coppice, count, rate=0):
    """Straight to a container, through `bare`, through Coppice: one after the other."""
    rows, text, kernel = [], code("docker", count, rate), "docker"
    with run.attempt(rows, "coppice docker", "flood"):
        rows.append(row("coppice docker", kernel, count, through(coppice, "docker", text)))
    with coppice.client("docker"), run.attempt(rows, "direct docker", "flood"):
        with sides.twin(coppice.run_dir) as k:
            with sides.direct(k) as client:
                rows.append(row("direct docker", kernel, count, reading.direct(client, k, text)))
            with sides.bare(k, True) as client:
                rows.append(row("bare", kernel, count,
                                reading.over_socket(client, "v1", text, client.pid)))
    return rows


def processes(run, coppice, others, kernel, counts, rate=0):
    """counts: (ours, the peers')."""
    rows = []
    with run.attempt(rows, "direct process", "flood"):
        rows.append(row("direct process", kernel, counts[0],
                        direct_process(run, kernel, code(kernel, counts[0], rate))))
    for gateway, count in [(coppice, counts[0])] + [(p, counts[1]) for p in others]:
        name = "coppice process" if gateway is coppice else gateway.name
        with run.attempt(rows, name, "flood"):
            rows.append(row(name, kernel, count,
                            through(gateway, kernel, code(kernel, count, rate))))
    return rows


def stalled(run, coppice, others, count):
    """What is lost to a reader that does not read while the flood comes."""
    rows = []
    sides = [("coppice docker", coppice, "docker"), ("coppice process", coppice, "python3")]
    for name, gateway, kernel in sides + [(p.name, p, "python3") for p in others]:
        framing = gateway.framings[0]
        with run.attempt(rows, name, "flood"), gateway.client(kernel, framing, True) as client:
            got = reading.over_stalled_socket(client, framing, code(kernel, count), STALL_S)
            rows.append(row(name, kernel, count, got))
    return rows


def add_ratios(rows):
    floors = {r["side"]: r["rate"] for r in rows if r["side"].startswith("direct") and "rate" in r}
    for r in rows:
        floor = floors.get("direct docker" if r.get("kernel") == "docker" else "direct process")
        if floor and "rate" in r:
            r["ratio"] = r["rate"] / floor
    return rows


def of(rows, side, key):
    return next((r[key] for r in rows if r["side"] == side and r.get(key) is not None), None)


def bounds(run, found, longest):
    real = found[longest]
    for side in ("coppice docker", "coppice process"):
        if (ratio := of(real, side, "ratio")) is not None:
            run.bound(f"flood of a real kernel, {side}: rate to direct's", ratio, 0.95, at_least=True)
            run.bound(f"flood of a real kernel, {side}: lost", of(real, side, "lost"), 0)
    for side in ("coppice docker", "coppice process"):
        if (lost := of(found[STALLED], side, "lost")) is not None:
            run.bound(f"{STALLED}, {side}: lost", lost, 0)
    flood, paced = found["scripted kernel"], found[PACED]
    ours = of(flood, "coppice process", "cpu_us")
    if ours:
        run.bound("scripted flood: rate", of(flood, "coppice process", "rate"), 150000, "/s", True)
        run.bound("scripted flood: lost", of(flood, "coppice process", "lost"), 0)
        run.bound("scripted flood: lines after the idle", of(flood, "coppice process", "late"), 0)
        run.bound("CPU per message, scripted flood", ours, 8, "us")
        for peer, times in (("jupyter-server", 40), ("jupygate", 8)):
            if theirs := of(flood, peer, "cpu_us"):
                run.bound(f"CPU per line, {peer}'s to ours", theirs / ours, times, "times", True)
    if (cpu := of(real, "coppice docker", "cpu_us")) is not None:
        run.bound("CPU per message, docker flood", cpu, 8, "us")
    for side in ("coppice docker", "coppice process"):
        if (cpu := of(paced, side, "cpu_us")) is not None:
            run.bound(f"CPU per message, {PACE}/s, {side}", cpu, 25, "us")


def measure(run):
    real = run.pick((300,), (20000,), (20000, 200000))
    scripted = run.pick((2000, 1000), (200000, 20000), (1000000, 200000))
    paced = PACE * run.pick(1, 5, 20)
    found = {}
    with server.Coppice(run.home) as coppice, peers.all_of(run) as others:
        for count in real:
            rows = docker_three(run, coppice, count)
            rows += processes(run, coppice, others, "python3", (count, count))
            found[f"real kernel, {count} lines"] = add_ratios(rows)
            table(f"flood of {count} lines, real kernel", COLUMNS, rows)
        for title, counts, rate in (("scripted kernel", scripted, 0), (PACED, (paced, paced), PACE)):
            rows = docker_three(run, coppice, paced, rate) if rate else []
            rows += processes(run, coppice, others, "scripted", counts, rate)
            found[title] = add_ratios(rows)
            table(f"flood, {title}", COLUMNS, rows)
        found[STALLED] = stalled(run, coppice, others, real[0])
        table(f"flood of {real[0]} lines, {STALLED}", STALLED_COLUMNS, found[STALLED])
    bounds(run, found, f"real kernel, {real[-1]} lines")
    return found
