#!/usr/bin/env python3
"""Going back, beside Kishu, dill's session dump, a pickle of all and restart-and-run-all: what keeping a
state costs a cell, how long each way back takes, what is paid later, and how much came back right
(docs/TESTING.md)."""

import argparse
import contextlib
import importlib
import json
import os
import platform
import signal
import sys
import tempfile
import time
from pathlib import Path

import zmq

import branch_score
import branch_sides as sides
import kit
import server
from branch_states import states
from branch_walk import Walk

OURS = (sides.CoppiceBare, sides.Coppice)
EACH = [*OURS, *sides.LOCALS.values()]
NAMES = [side.name for side in EACH]
COLUMNS = (("in a burst", "burst +ms"), ("after a pause", "pause +ms"), ("undo 1", "undo 1"),
           ("back 10", "back 10"), ("back 10, cold", "from disk"), ("first cell", "1st cell"),
           ("switch 1%", "switch 1%"), ("switch 10%", "10%"), ("switch 100%", "100%"),
           ("write", "write"), ("write again", "2nd write"))
ADDED = ("in a burst", "after a pause")
NO_TIMES = ("kept", "kept after", "right", "wrong", "told")
BUSY = 0.5  # load for each processor


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", help="some of them, as S0,S2")
    parser.add_argument("--sides", help="some of: " + ", ".join(NAMES))
    parser.add_argument("--runs", type=int, help="so many instead")
    parser.add_argument("--no-score", action="store_true", help="times without the 25 probes")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument("--full", dest="scale", action="store_const", const="full",
                       help="10 runs, and 1 GB with a limit of 4 GiB")
    scale.add_argument("--quick", dest="scale", action="store_const", const="quick",
                       help="one run of small states: whether it works; the figures say nothing")
    args = parser.parse_args()
    args.scale = args.scale or "short"
    args.found = states(args.scale)
    if args.states:
        wanted = args.states.split(",")
        args.found = [s for s in args.found if s.name in wanted]
    chosen = args.sides.split(",") if args.sides else NAMES
    if unknown := set(chosen) - set(NAMES):
        parser.error(f"no side {', '.join(unknown)}; there are {', '.join(NAMES)}")
    chosen += [sides.BARE[name] for name in chosen if name in sides.BARE]  # what each is compared with
    args.sides = [s for s in EACH if s.name in chosen]
    return args


class Bench:
    def __init__(self, args, home):
        self.args, self.home, self.n = args, Path(home), 0
        self.runs, self.limit_s, self.walk_s, self.shares = {
            "quick": (1, 30, 60, (1,)), "short": (3, 30, 90, (0.01, 1)),
            "full": (10, 300, 1200, (0.01, 0.1, 1))}[args.scale]
        self.runs = args.runs or self.runs
        self.context = zmq.Context()
        self.walks, self.failed, self.scores, self.loads = {}, {}, {}, []
        self.missing = {}
        failed = kit.VENVS / "branch.failed"
        if failed.exists():
            self.missing = {name: failed.read_text().strip() for name in sides.LOCALS}

    def load(self, what):
        load = os.getloadavg()[0]
        self.loads.append({"at": what, "load": load})
        print(f"{what}: load {load:.1f}", flush=True)

    @contextlib.contextmanager
    def open(self, maker, gateways):
        self.n += 1
        side = (maker(gateways[maker], self.limit_s) if maker in gateways else
                maker(self.context, self.home / f"k{self.n}", self.limit_s))
        try:
            yield side
        finally:
            side.close()

    @contextlib.contextmanager
    def gateways(self, memory):
        """The two of Coppice, each with nobody else's kernels."""
        with contextlib.ExitStack() as stack:
            found = {}
            for maker, args in ((sides.CoppiceBare, ("--record=false", "--parks", "0")),
                                (sides.Coppice, ())):
                if maker in self.args.sides:
                    self.n += 1
                    found[maker] = stack.enter_context(server.Coppice(
                        self.home, "--memory", memory, *args, engines="docker", name=f"g{self.n}"))
            yield found

    # ---- times ----
    def walk(self, maker, gateways, state, whole):
        """One side's run of one state; the answer of its check where there is no way back."""
        walk = None
        try:
            with self.open(maker, gateways) as side:
                walk = Walk(side, state, self.walk_s)
                if maker.name in sides.BARE.values():
                    return walk.bare()
                walk.whole(whole, self.shares)
        except (RuntimeError, OSError, TimeoutError, KeyError) as e:
            self.failed.setdefault(state.name, {})[maker.name] = f"{type(e).__name__}: {e}"[:200]
            print(f"  {state.name}, {maker.name}: {type(e).__name__}: {e}"[:220], flush=True)
        finally:
            if walk:
                self.walks.setdefault(state.name, {}).setdefault(maker.name, []).append(walk.found)
        return None

    def state(self, state):
        """All sides in turn, as often as there are runs; a side that failed is not tried again."""
        wholes = {}
        with self.gateways(state.memory) as gateways:
            for run in range(self.runs):
                self.load(f"{state.name}, run {run + 1} of {self.runs}")
                for maker in self.args.sides:
                    if maker.name in self.missing or maker.name in self.failed.get(state.name, {}):
                        continue
                    whole = wholes.get(sides.BARE.get(maker.name))
                    begun = time.monotonic()
                    wholes[maker.name] = self.walk(maker, gateways, state, whole)
                    print(f"  {maker.name}: {time.monotonic() - begun:.0f} s", flush=True)

    # ---- correctness ----
    def score(self):
        cases = branch_score.NAMES[::6] if self.args.scale == "quick" else branch_score.NAMES
        with self.gateways("1G") as gateways:
            for maker in self.args.sides:
                if maker.name in sides.BARE.values() or maker.name in self.missing:
                    continue
                begun = time.monotonic()
                self.scores[maker.name] = branch_score.score(
                    lambda case, maker=maker: self.open(maker, gateways), cases)
                print(f"score: {maker.name} done, {time.monotonic() - begun:.0f} s", flush=True)

    # ---- what came out ----
    def figures(self, state, side):
        """{what: {median, p95, n}}; the cells of ADDED also as more than without."""
        def times(name, what):
            return [ms for walk in self.walks.get(state, {}).get(name, []) for ms in walk.get(what, [])]
        out = {}
        for what in dict.fromkeys(w for walk in self.walks[state].get(side, []) for w in walk):
            if what in NO_TIMES:
                continue
            found = times(side, what)
            out[what] = {"median": kit.median(found), "p95": p95(found), "n": len(found)}
            bare = times(sides.BARE.get(side), what)
            if what in ADDED and bare:
                out[what]["added"] = out[what]["median"] - kit.median(bare)
        return out

    def row(self, state, side):
        walks = self.walks[state].get(side, [])
        right = [r for walk in walks for r in walk.get("right", [])]
        kept = [walk["kept"] for walk in walks if walk.get("kept")]
        after = [walk["kept after"] for walk in walks if walk.get("kept after")]
        return {"side": side, "figures": self.figures(state, side), "asked": len(right),
                "right": sum(right), **{what: [w for walk in walks for w in walk.get(what, [])]
                                        for what in ("wrong", "told")},
                "kept": middle(kept), "kept_after": middle(after),
                "failed": self.failed.get(state, {}).get(side)}

    def results(self):
        tables = {s.name: {"what": s.what, "memory": s.memory,
                           "rows": [self.row(s.name, side) for side in self.walks[s.name]]}
                  for s in self.args.found if s.name in self.walks}
        first = self.loads[0]["load"] if self.loads else 0
        return {"scale": self.args.scale, "runs": self.runs, "cpus": os.cpu_count(),
                "loads": self.loads, "under_load": first > BUSY * os.cpu_count(),
                "thp": thp(), "machine": platform.platform(), "missing": self.missing,
                "scores": self.scores, "states": tables}


def middle(rows):
    """The medians of {count, bytes, ...}; None where there is none."""
    return {key: kit.median(row[key] for row in rows) for key in rows[0]} if rows else None


def p95(values):
    return sorted(values)[max(0, -(-len(values) * 95 // 100) - 1)]


def thp():
    """Which of the kernel's words for transparent huge pages is in force."""
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except FileNotFoundError:
        return "not there"
    return text[text.index("[") + 1:text.index("]")]


def cell_of(row, what):
    found = row["figures"].get(what)
    if not found:
        return "-"
    ms = found.get("added", found["median"]) if what in ADDED else found["median"]
    return f"{ms:.0f}" if abs(ms) >= 100 else f"{ms:.1f}"


def show(results):
    for name, table in results["states"].items():
        print(f"\n{name}: {table['what']}, memory limit {table['memory']} (ours); ms, medians")
        print(f"{'':24}{'probes':>8}{'state':>7}" + "".join(f"{head:>11}" for _, head in COLUMNS) +
              f"{'kept MB':>9}{'after':>7}")
        for row in table["rows"]:
            bare = row["side"] in sides.BARE.values()
            score = "" if bare else branch_score.shown(results["scores"].get(row["side"]))
            right = "" if bare else f"{row['right']}/{row['asked']}"
            mb = [f"{row[at]['bytes'] / (1 << 20):.0f}" if row[at] else "-"
                  for at in ("kept", "kept_after")]
            print(f"{row['side']:24}{score:>8}{right:>7}" +
                  "".join(f"{cell_of(row, what):>11}" for what, _ in COLUMNS) + f"{mb[0]:>9}{mb[1]:>7}")
        for row in table["rows"]:
            if row["failed"]:
                print(f"  {row['side']}: {row['failed']}")
            for what, title in (("told", "told"), ("wrong", "wrong in silence")):
                for text in dict.fromkeys(row[what]):
                    print(f"  {row['side']}: {title}: {text}")
    if results["scores"]:
        branch_score.table(results["scores"])
    for side, reason in results["missing"].items():
        print(f"missing: {side}: {reason}")
    loads = [row["load"] for row in results["loads"]]
    print(f"\n{results['runs']} runs on {results['cpus']} processors, huge pages: {results['thp']}, "
          f"load {min(loads):.1f} to {max(loads):.1f}"
          + (": TAKEN UNDER LOAD, times say little" if results["under_load"] else ""))


def main():
    args = arguments()
    # What was started is ended then too: a gateway left alone would leave its containers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as home:
        kit.write_specs(home)
        bench = Bench(args, home)
        bench.load("before")
        if not args.no_score:
            bench.score()
        for state in args.found:
            bench.state(state)
        results = bench.results()
    kit.OUT.mkdir(parents=True, exist_ok=True)
    (kit.OUT / "branch.json").write_text(json.dumps(results, indent=1) + "\n")
    show(results)
    picture = importlib.import_module("branch_picture").draw(results)
    print(f"{kit.OUT}/branch.json and {picture} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
