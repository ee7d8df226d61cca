"""How long a trivial cell takes, from the request to reply and idle.

Within a run the sides take turns cell by cell, so that whatever else the machine does hits all of
them alike; each run has fresh kernels, since two kernels of one kind differ by some per cent for
their whole life. What counts is the median over the runs of each run's difference of medians.

pairs: straight to the kernel, through `bare`, through Coppice, which records nothing here; back to
back, and with a pause between cells, as people and models run them. Back to back on few processors
the relay's work for one cell runs while the next one's kernel already computes: `bare` says what of
the difference is that.
recording: bursts through a Coppice that records and one that does not, in turn; beside the time the
gateway's processor time until all is recorded.
peers: all sides, both framings, an ordinary client and one that acknowledges at once."""

import contextlib
import gc
import random
import time

import kit
import peers
import server
import sides
from run import table

CODES = ("6*7", "print(1)")
PAUSE_S = 0.005
PAIR_COLUMNS = [("cells", "cells", "d"), ("median_ms", "median ms", ".3f"), ("p99_ms", "p99 ms", ".3f"),
                ("ratio", "ratio", ".3f"), ("more_ms", "more ms", "+.3f"),
                ("p99_more_ms", "p99 more ms", "+.3f")]


def interleave(clients, code, count, pause_s=0.0):
    """clients: {name: client}. Milliseconds by name."""
    times = {name: [] for name in clients}
    for client in clients.values():
        for _ in range(min(100, count // 2 + 1)):
            client.execute(code)
    order, chance = list(clients.items()), random.Random(1)
    gc.collect()
    gc.disable()
    try:
        for _ in range(count):
            for name, client in order:
                if pause_s:
                    time.sleep(pause_s)  # what is measured is a cell after a pause
                times[name].append(client.execute(code) / 1e6)
            chance.shuffle(order)  # nobody always comes after the same one, or after itself
    finally:
        gc.enable()
    return times


def summary(runs):
    """A row per side: medians over the runs, and how it stands to the direct one."""
    direct = [kit.median(r["direct"]) for r in runs]
    direct_p99 = [kit.p99(r["direct"]) for r in runs]
    out = []
    for name in runs[0]:
        medians, tails = [kit.median(r[name]) for r in runs], [kit.p99(r[name]) for r in runs]
        out.append({
            "side": name, "cells": sum(len(r[name]) for r in runs),
            "median_ms": kit.median(medians), "p99_ms": kit.median(tails),
            "ratio": kit.median(m / d for m, d in zip(medians, direct)),
            "more_ms": kit.median(m - d for m, d in zip(medians, direct)),
            "p99_more_ms": kit.median(t - d for t, d in zip(tails, direct_p99)),
            "ratios": [round(m / d, 4) for m, d in zip(medians, direct)]})
    return out


@contextlib.contextmanager
def docker_trio(home, coppice):
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(coppice.client("docker"))
        first = stack.enter_context(sides.twin(coppice.run_dir))
        second = stack.enter_context(sides.twin(coppice.run_dir))
        yield {"direct": stack.enter_context(sides.direct(first)),
               "bare": stack.enter_context(sides.bare(second)), "coppice": ours}


def direct_process(home, kernel):
    """Once more on other ports: somebody may have taken one before the kernel bound it."""
    with contextlib.ExitStack() as stack:
        try:
            k = stack.enter_context(sides.process_kernel(home, kernel))
            return stack.enter_context(sides.direct(k)), stack.pop_all()
        except RuntimeError as e:
            print(f"execute: {kernel}: {e}; tried again", flush=True)
    with contextlib.ExitStack() as stack:
        k = stack.enter_context(sides.process_kernel(home, kernel))
        return stack.enter_context(sides.direct(k)), stack.pop_all()


def process_pair(kernel):
    @contextlib.contextmanager
    def pair(home, coppice):
        with coppice.client(kernel) as ours:
            direct, owned = direct_process(home, kernel)
            with owned:
                yield {"direct": direct, "coppice": ours}
    return pair


PAIRS = {"docker": docker_trio, "process": process_pair("python3"),
         "scripted": process_pair("scripted")}


def pairs(run, coppice):
    runs, count = run.pick((1, 20), (3, 400), (5, 3000))
    times = {}
    for i in range(runs):
        for engine, opened in PAIRS.items():
            with opened(run.home, coppice) as clients:
                for pace, pause_s in (("back to back", 0.0), ("with pauses", PAUSE_S)):
                    n = count if not pause_s else count // 2
                    got = interleave(clients, CODES[0], n, pause_s)
                    times.setdefault((engine, pace), []).append(got)
        print(f"execute: run {i + 1} of {runs} of pairs done", flush=True)
    return {f"{engine}, {pace}": summary(r) for (engine, pace), r in times.items()}


def burst(client, count):
    """Milliseconds of each cell."""
    return [client.execute(CODES[0]) / 1e6 for _ in range(count)]


def recorded(coppice):
    kit.wait(lambda: coppice.show("counters")["unrecorded"] == 0, 60, "all is recorded")


def recording(run, on, off):
    """What a burst takes with recording on, against off; the recorder ends before the other's turn."""
    blocks, count = run.pick((2, 20), (6, 200), (20, 300))
    rows = []
    with on.client("docker") as recorder, off.client("docker") as plain:
        for client in (recorder, plain):
            burst(client, 100)
        recorded(on)
        for _ in range(blocks):
            before = [kit.cpu_ns(g.pid) for g in (off, on)]
            off_ms = burst(plain, count)
            on_ms = burst(recorder, count)
            recorded(on)
            off_us, on_us = ((kit.cpu_ns(g.pid) - b) / 1e3 / count
                             for g, b in zip((off, on), before))
            rows.append({"off_ms": kit.median(off_ms), "on_ms": kit.median(on_ms),
                         "off_s": sum(off_ms) / 1e3, "on_s": sum(on_ms) / 1e3,
                         "off_us": off_us, "on_us": on_us})
    return {"blocks": rows, "cells": count,
            "off_us": kit.median(r["off_us"] for r in rows),
            "on_us": kit.median(r["on_us"] for r in rows),
            "median_ratio": kit.median(r["on_ms"] / r["off_ms"] for r in rows),
            "whole_ratio": kit.median(r["on_s"] / r["off_s"] for r in rows)}


def side_clients(run, stack, coppice, others, framing, quick):
    """{name: client}, one kernel each."""
    out = {}
    enter = stack.enter_context
    if framing == "v1":
        out["direct process"] = enter(sides.direct(enter(sides.process_kernel(run.home, "python3"))))
    out["coppice docker"] = enter(coppice.client("docker", framing, quick))
    if framing == "v1":
        first, second = enter(sides.twin(coppice.run_dir)), enter(sides.twin(coppice.run_dir))
        out["direct docker"] = enter(sides.direct(first))
        out["bare"] = enter(sides.bare(second, quick))
    out["coppice process"] = enter(coppice.client("python3", framing, quick))
    for peer in others:
        if framing in peer.framings:
            try:
                out[peer.name] = enter(peer.client("python3", framing, quick))
            except (RuntimeError, OSError) as e:
                run.miss(f"{peer.name}, {framing}", e)
    return out


def beside_peers(run, coppice, others):
    count, rows = run.pick(5, 60, 500), []
    for framing in ("v1", "legacy"):
        for quick in (False, True):
            with contextlib.ExitStack() as stack:
                clients = side_clients(run, stack, coppice, others, framing, quick)
                for code in CODES:
                    for name, t in interleave(clients, code, count).items():
                        rows.append({"side": name, "framing": framing, "code": code,
                                     "client": "at once" if quick else "ordinary",
                                     "median_ms": kit.median(t), "p99_ms": kit.p99(t)})
            print(f"execute: {framing}, {'at once' if quick else 'ordinary'} done", flush=True)
    add_ratios(rows)
    return rows


def add_ratios(rows):
    """To the floor of the same code: direct, in the same round; for legacy that of v1's round."""
    for r in rows:
        floor = "direct docker" if "docker" in r["side"] or r["side"] == "bare" else "direct process"
        direct = next(d for d in rows if d["side"] == floor and d["code"] == r["code"] and
                      d["client"] == r["client"])
        r["ratio"] = r["median_ms"] / direct["median_ms"]
        r["more_ms"] = r["median_ms"] - direct["median_ms"]


def show(run, found):
    for title, rows in found["pairs"].items():
        table(f"execute `{CODES[0]}`, kernel {title}", PAIR_COLUMNS, rows)
    for framing in ("v1", "legacy"):
        for client in ("ordinary", "at once"):
            for code in CODES:
                rows = [r for r in found["peers"] if r["framing"] == framing and
                        r["client"] == client and r["code"] == code]
                table(f"execute `{code}`, {framing}, client acknowledges: {client}",
                      [c for c in PAIR_COLUMNS if c[0] not in ("cells", "p99_more_ms")], rows)


def bounds(run, found):
    ratio = found["recording"]
    print(f"recording on against off, bursts of {ratio['cells']}: {ratio['whole_ratio']:.3f} "
          f"(by the median cell {ratio['median_ratio']:.3f}); the gateway's processor time a cell "
          f"{ratio['on_us']:.0f} us against {ratio['off_us']:.0f} us")
    run.bound("recording on against off, bursts", ratio["whole_ratio"], 1.02)
    for pace in ("back to back", "with pauses"):
        row = {r["side"]: r for r in found["pairs"][f"docker, {pace}"]}
        run.bound(f"execute, docker, {pace}: ratio", row["coppice"]["ratio"], 1.03)
        run.bound(f"execute, docker, {pace}: more", row["coppice"]["more_ms"], 0.15, "ms")
        run.bound(f"execute, docker, {pace}: p99 more", row["coppice"]["p99_more_ms"], 2, "ms")
        print(f"execute, docker, {pace}: of Coppice's {row['coppice']['more_ms']:+.3f} ms the least "
              f"that can stand between (bare) costs {row['bare']['more_ms']:+.3f} ms")
    ours = found["pairs"]["scripted, with pauses"][1]
    run.bound("execute, scripted kernel: p99 more", ours["p99_more_ms"], 0.5, "ms")


def measure(run):
    with server.Coppice(run.home, "--record=false", name="unrecorded") as plain:
        found = {"pairs": pairs(run, plain)}
        with server.Coppice(run.home) as coppice:
            found["recording"] = recording(run, coppice, plain)
            with peers.all_of(run) as others:
                found["peers"] = beside_peers(run, coppice, others)
    show(run, found)
    bounds(run, found)
    return found
