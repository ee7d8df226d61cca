#!/usr/bin/env python3
"""Coppice beside direct ZeroMQ, `bare` and the peers, in one run on one machine (docs/TESTING.md)."""

import argparse
import importlib
import os
import signal
import sys
import tempfile
import time

import kit
from run import PEERS, Run

FAMILIES = ("execute", "flood", "bulk", "start", "rest", "recover", "neighbour")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="FAMILY", help=f"some of {','.join(FAMILIES)}")
    parser.add_argument("--peers", default=",".join(PEERS), help="of these peers only")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument("--full", dest="scale", action="store_const", const="full",
                       help="the counts of design.md section 6")
    scale.add_argument("--quick", dest="scale", action="store_const", const="quick",
                       help="tiny counts: whether it works; the figures say nothing")
    args = parser.parse_args()
    args.scale = args.scale or "short"
    args.families = args.only.split(",") if args.only else FAMILIES
    if unknown := set(args.families) - set(FAMILIES):
        parser.error(f"no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    args.peers = [p for p in args.peers.split(",") if p]
    if unknown := set(args.peers) - set(PEERS):
        parser.error(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return args


def one(args, name):
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as home:
        kit.write_specs(home)
        return importlib.import_module(f"family_{name}").measure(args.run.at(home))


def main():
    args = arguments()
    # What was started is ended then too: a gateway left alone would leave its containers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    args.run = Run(args.scale, args.peers)
    load = os.getloadavg()[0]
    if load > 0.5 * os.cpu_count():
        print(f"the machine is busy (load {load:.1f}): ratios will say little")
    for name in args.families:
        begun = time.monotonic()
        print(f"\n==== {name}", flush=True)
        args.run.families[name] = one(args, name)
        args.run.save()
        print(f"{name} took {time.monotonic() - begun:.0f} s", flush=True)
    args.run.show_bounds()
    for side, reason in args.run.missing.items():
        print(f"missing: {side}: {reason}")
    picture = importlib.import_module("picture").draw(args.run.results())
    print(f"\n{kit.OUT}/bench.json written" + (f", and {picture}" if picture else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
