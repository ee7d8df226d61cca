#!/usr/bin/env python3
"""A history that grows, beside Kishu: what keeping a small cell costs as there are more of them, room on
the disk, how long a log, a node and a clone take; and what preparing and rendering a cell of a
conversation takes. The kernels are the same program on all sides: engine `process` and plain ones. What
a commit costs the gateway itself, to 100,000 nodes, is tests/flow/history/test_figures.c's."""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib
import zmq

import branch_sides as sides
import kit
import server

SIZES = {"quick": (20, 40), "short": (50, 100, 200, 500), "full": (50, 100, 200, 1000, 10000)}
TURN = 10  # cells of a side before it is another's turn
WINDOW = 50  # cells before a size whose times are that size's
LIMIT_S = 60
GROW_S = {"quick": 60, "short": 180, "full": 1800}  # a side that needs more for the next size gives up
BUSY = 0.5  # load for each processor
TEXT = """Here is how the table can be summed by month:

```python
import pandas as pd
df = pd.read_csv("sales.csv", parse_dates=["day"])
monthly = df.groupby(df.day.dt.to_period("M"))["amount"].sum()
print(monthly)
```

It prints one line a month."""
HTML = "<table>" + "".join(f"<tr><td>{i}</td><td>month {i}</td><td>{i * 7.5}</td></tr>"
                           for i in range(20)) + "</table>"
NAMES = {"cell": "cell +ms", "p95": "p95 +ms", "bytes": "bytes/cell", "log": "log ms", "show": "show ms",
         "first": "1st node ms", "cli_log": "`log` ms", "cli_show": "`show` ms", "clone": "clone ms"}


def often(side, f, *args):
    return kit.median(side.timed(f, *args) for _ in range(5))


class Kept(sides.Coppice):
    """Recorded, kernels as processes."""

    kernel = "peers"

    def wait_recorded(self):
        kit.wait(self.head, 120, "the last cell is a commit")

    def path(self, rest=""):
        return self.gateway.url(f"/history/{self.kernel_id}{rest}")

    def get(self, rest=""):
        return kit.http("GET", self.path(rest), self.gateway.token).json()

    def folder(self):
        return self.gateway.home / self.gateway.name / "d" / "history"

    def room(self):
        """As it is once git has packed it."""
        kit.http("POST", self.path("/gc"), self.gateway.token)
        return sides.bytes_below(self.folder() / f"{self.kernel_id}.git", "")

    def program(self, *args):
        subprocess.run([self.gateway.argv[0], *args, "--url", self.gateway.url(""), "--token",
                        self.gateway.token], stdout=subprocess.DEVNULL, check=True)

    def clone(self):
        target = self.gateway.home / "clone"
        shutil.rmtree(target, ignore_errors=True)
        address = self.path(".git").replace("//", f"//any:{self.gateway.token}@", 1)
        subprocess.run(["git", "-c", "http.proxy=", "clone", "-q", "--bare", address, str(target)], check=True)

    def questions(self, n):
        self.wait_recorded()
        first = self.get(f"/nodes/HEAD~{n - 1}")["id"]
        return {"bytes": self.room() / n, "log": often(self, self.get),
                "show": often(self, self.get, "/nodes/HEAD"),
                "first": often(self, self.get, f"/nodes/{first}"),
                "cli_log": often(self, self.program, "log", self.kernel_id),
                "cli_show": often(self, self.program, "show", "HEAD", "--history", self.kernel_id),
                "clone": self.timed(self.clone)}


class Kishu(sides.Kishu):
    def questions(self, n):
        head = self.mark()
        return {"bytes": self.kept()["bytes"] / n, "log": often(self, self.inside, "kishu_log()"),
                "show": often(self, self.inside, f"kishu_show({head!r})")}


class KishuExperimental(Kishu):
    tracker, name = sides.KishuExperimental.tracker, sides.KishuExperimental.name


class Plain(sides.Local):
    def questions(self, n):
        return {}


class Growing:
    """A side on its way to the next size."""

    def __init__(self, side):
        self.side, self.n, self.times, self.spent_s, self.why_gone = side, 0, [], 0, None

    def begin(self, limit_s):
        self.times, self.spent_s, self.limit_s = [], 0, limit_s

    def on(self, to):
        """A few cells; its turn is over then."""
        begun = time.monotonic()
        while self.n < to:
            self.times.append(self.side.cell(f"v{self.n % 50} = {self.n}"))
            self.n += 1
        self.spent_s += time.monotonic() - begun
        if self.spent_s > self.limit_s:
            raise TimeoutError(f"gave up at {to} cells, the last took {self.times[-1]:.0f} ms")

    def row(self):
        last = sorted(self.times[-WINDOW:])
        return {"side": self.side.name, "at": self.n, "ms": kit.median(last),
                "ms_p95": last[-(-len(last) * 95 // 100) - 1], **self.side.questions(self.n)}

    def attempt(self, f, *args):
        """None where it fails; it is not asked again then."""
        try:
            return f(*args) if self.why_gone is None else None
        except (RuntimeError, OSError, TimeoutError, subprocess.CalledProcessError) as e:
            self.why_gone = str(e)
            print(f"{self.side.name}: {e}", flush=True)
            return None


def growth(scale, found, loads):
    """Rows {side, at, cell, p95, ...}; all sides in turn, a few cells each."""
    rows, growing = [], [Growing(side) for side in found]
    for size, before in zip(SIZES[scale], (0, *SIZES[scale])):
        loads.append(os.getloadavg()[0])
        for g in growing:
            g.begin(GROW_S[scale])
        for to in [*range(before + TURN, size, TURN), size]:
            for g in growing:
                g.attempt(g.on, to)
        rows += [row for g in growing if (row := g.attempt(g.row))]
        print(f"{size} cells: load {loads[-1]:.1f}", flush=True)
    gone = {g.side.name: g.why_gone for g in growing if g.why_gone}
    for row in rows:
        plain = next((r for r in rows if r["side"] == Plain.name and r["at"] == row["at"]), None)
        if plain and row is not plain:
            row |= {"cell": row["ms"] - plain["ms"], "p95": row["ms_p95"] - plain["ms_p95"]}
    return rows, gone


def conversation(gateway, count):
    """What a cell of a conversation takes beside its run."""
    address = (gateway.host, gateway.port)
    body = {"data": {"text/html": HTML, "text/plain": "a table"}}
    asked = {"prepare": lambda: kit.post(*address, "/chat/prepare", gateway.token, {"text": TEXT}),
             "render html": lambda: kit.http("POST", gateway.url("/chat/render"), gateway.token,
                                             json={**body, "to": "html"}),
             "render png": lambda: kit.http("POST", gateway.url("/chat/render"), gateway.token,
                                            json={**body, "to": "png"})}
    out = {}
    for what, ask in asked.items():
        times = sorted(sides.Side.timed(None, ask) for _ in range(count))
        out[what] = {"median_ms": kit.median(times), "p95_ms": times[-(-count * 95 // 100) - 1],
                     "count": count}
    return out


def show(results):
    print(f"\na history of small cells; +ms: more than the plain kernel's, of the last {WINDOW}")
    print(f"{'':24}{'cells':>7}" + "".join(f"{head:>13}" for head in NAMES.values()))
    for row in sorted(results["rows"], key=lambda r: r["at"]):
        print(f"{row['side']:24}{row['at']:>7}" + "".join(
            f"{row[key]:>13.1f}" if key in row else f"{'-':>13}" for key in NAMES))
    for side, reason in results["gone"].items():
        print(f"  {side}: {reason}")
    print("a cell of a conversation, ms: " + ", ".join(
        f"{what} {r['median_ms']:.1f} (95 of 100 within {r['p95_ms']:.1f})"
        for what, r in results["conversation"].items()))
    print(f"load {min(results['loads']):.1f} to {max(results['loads']):.1f}"
          + (": TAKEN UNDER LOAD, times say little" if results["under_load"] else ""))


def draw(results):
    matplotlib.use("svg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 3, figsize=(16, 4.5))
    for axis, (key, title) in zip(axes, (("cell", "added to a small cell, ms"),
                                         ("bytes", "bytes a cell on the disk"), ("log", "a log, ms"))):
        for side in dict.fromkeys(r["side"] for r in results["rows"]):
            rows = [r for r in results["rows"] if r["side"] == side and key in r]
            if rows:
                axis.plot([r["at"] for r in rows], [r[key] for r in rows], "o-", label=side,
                          color=COLOURS.get(side))
        axis.set_xscale("log")
        axis.set_yscale("symlog", linthresh=1)
        axis.set_xlabel("cells in the history")
        axis.set_title(title, fontsize=10, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(fontsize=8, frameon=False)
    figure.suptitle(f"load {min(results['loads']):.1f} to {max(results['loads']):.1f}"
                    + (" (TAKEN UNDER LOAD)" if results["under_load"] else ""), fontsize=10)
    figure.tight_layout()
    for kind in ("svg", "png"):
        figure.savefig(kit.OUT / f"history.{kind}", dpi=110)


COLOURS = {"coppice": "#1f7a4d", "Kishu": "#c2571a", "Kishu experimental": "#e0a458"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    scale = parser.add_mutually_exclusive_group()
    for name in ("full", "quick"):
        scale.add_argument(f"--{name}", dest="scale", action="store_const", const=name)
    args = parser.parse_args()
    failed = kit.VENVS / "branch.failed"
    if failed.exists():
        sys.exit(f"the kernels that all sides use {failed.read_text().strip()}")
    scale, loads = args.scale or "short", [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as home, \
            contextlib.ExitStack() as stack:
        kit.ARGV["peers"] = [str(sides.PYTHON), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        kit.write_specs(home)
        gateway = stack.enter_context(server.Coppice(home, engines="process"))
        context, found = zmq.Context(), []
        found.append(Kept(gateway, LIMIT_S))
        stack.callback(found[0].close)
        for maker in (Plain, Kishu, KishuExperimental):
            found.append(maker(context, Path(home) / maker.__name__, LIMIT_S))
            stack.callback(found[-1].close)
        rows, gone = growth(scale, found, loads)
        results = {"scale": scale, "rows": rows, "gone": gone, "loads": loads, "cpus": os.cpu_count(),
                   "under_load": loads[0] > BUSY * os.cpu_count(),
                   "conversation": conversation(gateway, 20 if scale == "quick" else 200)}
    kit.OUT.mkdir(parents=True, exist_ok=True)
    (kit.OUT / "history.json").write_text(json.dumps(results, indent=1) + "\n")
    show(results)
    draw(results)
    print(f"{kit.OUT}/history.json and history.svg written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
