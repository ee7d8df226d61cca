#!/usr/bin/env python3
"""How long a trivial cell takes: straight to a kernel, through Coppice, through Jupyter Server.

Within a run the sides take turns cell by cell, so that whatever else the machine does hits all of
them alike; each run has fresh kernels, since two kernels of one kind differ by some per cent for
their whole life. What counts is the median over the runs of each run's ratio of medians."""

import argparse
import contextlib
import gc
import json
import os
import platform
import statistics
import sys
import tempfile

import zmq

import sides

CODE = "6*7"
WARM_UP = 100
RARE = 10  # Jupyter Server takes its turn every tenth time: a cell there lasts as long as ten
RATIO_MAX, MORE_MS_MAX, P99_MORE_MS_MAX = 1.03, 0.15, 2.0


def p99(values):
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


def interleave(clients, count):
    """clients: [(name, client, every)]. Milliseconds by name."""
    times = {name: [] for name, _, _ in clients}
    for name, client, every in clients:
        for _ in range(WARM_UP // every):
            client.execute(CODE)
    gc.collect()
    gc.disable()
    for i in range(count):
        # Forwards, then backwards: nobody always comes after the same one.
        for name, client, every in clients if i % 2 == 0 else clients[::-1]:
            if i % every == 0:
                times[name].append(client.execute(CODE) / 1e6)
    gc.enable()
    return times


def run_process(context, server, args, home):
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        js = enter(sides.jupyter_server(home))
        # Beside docker the names of this engine's kernels say which it is.
        name = "process-python3" if "docker" in args.engines else "python3"
        return interleave([
            ("direct", enter(sides.direct_process(context, home)), 1),
            ("coppice", enter(sides.over_http(server, name)), 1),
            ("jupyter-server", enter(sides.over_http(js, "python3")), RARE),
        ], args.count)


def run_docker(context, server, args, _home):
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        ours = enter(sides.over_http(server, "python3"))
        direct = enter(sides.direct_docker(context, server.run_dir))
        return interleave([("direct", direct, 1), ("coppice", ours, 1)], args.count)


SETS = {"docker": run_docker, "process": run_process}


def summary(runs):
    """Per side the medians over the runs, and how it stands to the direct one."""
    out = {}
    for name in runs[0]:
        medians = [statistics.median(r[name]) for r in runs]
        tails = [p99(r[name]) for r in runs]
        direct = [statistics.median(r["direct"]) for r in runs]
        direct_tails = [p99(r["direct"]) for r in runs]
        out[name] = {
            "cells": sum(len(r[name]) for r in runs),
            "median_ms": statistics.median(medians),
            "p99_ms": statistics.median(tails),
            "ratio": statistics.median(m / d for m, d in zip(medians, direct)),
            "more_ms": statistics.median(m - d for m, d in zip(medians, direct)),
            "p99_more_ms": statistics.median(t - d for t, d in zip(tails, direct_tails)),
            "ratios": [round(m / d, 4) for m, d in zip(medians, direct)],
        }
    return out


def show(engine, rows):
    print(f"\nengine {engine}: `{CODE}`, from the request to reply and idle")
    print(f"{'':16}{'cells':>7}{'median':>11}{'p99':>11}{'ratio':>8}{'more':>11}{'p99 more':>11}")
    for name, r in rows.items():
        print(f"{name:16}{r['cells']:7}{r['median_ms']:8.3f} ms{r['p99_ms']:8.3f} ms"
              f"{r['ratio']:8.3f}{r['more_ms']:+8.3f} ms{r['p99_more_ms']:+8.3f} ms")


def verdict(rows):
    """What misses a bound of design.md section 6, for engine docker."""
    r = rows["coppice"]
    return [text for text, value, bound in (
        ("ratio", r["ratio"], RATIO_MAX), ("more ms", r["more_ms"], MORE_MS_MAX),
        ("p99 more ms", r["p99_more_ms"], P99_MORE_MS_MAX)) if value > bound]


def measure(args):
    context, runs = zmq.Context(), {e: [] for e in args.engines}
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as home:
        with sides.coppice(args.engines, home) as server:
            for i in range(args.runs):
                for engine in args.engines:
                    times = SETS[engine](context, server, args, home)
                    runs[engine].append(times)
                    row = summary([times])["coppice"]
                    print(f"run {i + 1} of {args.runs}, {engine}: {row['ratio']:.3f} x direct, "
                          f"{row['more_ms']:+.3f} ms", flush=True)
    context.destroy(linger=0)
    return runs


def save(args, rows):
    out = sides.BUILD / "bench" / "execute.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({
        "code": CODE, "runs": args.runs, "count": args.count, "cpus": os.cpu_count(),
        "load": os.getloadavg(), "machine": platform.platform(),
        "python": platform.python_version(), "engines": rows}, indent=1) + "\n")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--count", type=int, default=3000, help="cells of each side in a run")
    parser.add_argument("--quick", action="store_true", help="2 runs of 300")
    parser.add_argument("--engine", default="docker,process")
    parser.add_argument("--check", action="store_true", help="exit 1 if a bound is missed")
    args = parser.parse_args()
    if args.quick:
        args.runs, args.count = 2, 300
    args.engines = args.engine.split(",")
    if os.getloadavg()[0] > 0.5 * os.cpu_count():
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): ratios will say little")
    rows = {e: summary(r) for e, r in measure(args).items()}
    for engine in rows:
        show(engine, rows[engine])
    print(f"\n{save(args, rows).relative_to(sides.BUILD.parent)} written")
    if "docker" not in rows:
        return 0
    missed = verdict(rows["docker"])
    print(f"bounds of engine docker (<= {RATIO_MAX}, <= +{MORE_MS_MAX} ms, p99 <= "
          f"+{P99_MORE_MS_MAX} ms): " + (f"missed: {', '.join(missed)}" if missed else "met"))
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
