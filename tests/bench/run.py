"""What a run carries from family to family: settings, what came out, what is missing."""

import contextlib
import json
import os
import platform
import sys

import kit

PEERS = ("jupyter-server", "kernel-gateway", "enterprise-gateway", "jupygate")


class Run:
    def __init__(self, scale, peers=PEERS):
        """scale: quick, short or full."""
        self.scale, self.home, self.peers = scale, None, list(peers)
        self.families, self.bounds, self.missing = {}, [], {}

    def at(self, home):
        """The folder that a family may use."""
        self.home = home
        return self

    def pick(self, quick, short, full):
        return {"quick": quick, "short": short, "full": full}[self.scale]

    def miss(self, side, reason):
        """A side that cannot be measured is named with the reason."""
        self.missing[side] = str(reason)
        print(f"{side}: missing: {reason}", flush=True)

    def bound(self, what, value, limit, unit="", at_least=False):
        met = value >= limit if at_least else value <= limit
        self.bounds.append({"what": what, "value": value, "limit": limit, "unit": unit,
                            "at_least": at_least, "met": bool(met)})

    @contextlib.contextmanager
    def attempt(self, rows, side, what):
        """What one side fails at is a row of its own, and does not end the others' run."""
        try:
            yield
        except (RuntimeError, OSError, KeyError, ValueError) as e:
            reason = f"{type(e).__name__}: {e}"[:200]
            rows.append({"side": side, "what": what, "failed": reason})
            print(f"  {side}, {what}: failed: {reason}", flush=True)

    def results(self):
        return {"scale": self.scale, "cpus": os.cpu_count(), "load": os.getloadavg(),
                "machine": platform.platform(), "python": platform.python_version(),
                "missing": self.missing, "bounds": self.bounds, "families": self.families}

    def save(self):
        kit.OUT.mkdir(parents=True, exist_ok=True)
        for name, rows in self.families.items():
            (kit.OUT / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
        (kit.OUT / "bench.json").write_text(json.dumps(self.results(), indent=1) + "\n")

    def show_bounds(self):
        if self.bounds:
            print("\nbounds (docs/TESTING.md: none decides pass or fail)")
        for b in self.bounds:
            sign = ">=" if b["at_least"] else "<="
            print(f"  {'met   ' if b['met'] else 'MISSED'} {b['what']}: {b['value']:.4g} {b['unit']} "
                  f"({sign} {b['limit']:g})")


def table(title, columns, rows):
    """columns: [(key, heading, format)]. Where a row has no such figure there is a dash."""
    print(f"\n{title}")
    width = max([len(str(r["side"])) for r in rows] + [20])
    print(f"{'':{width}}" + "".join(f"{heading:>14}" for _, heading, _ in columns))
    for r in rows:
        if "failed" in r:
            print(f"{r['side']:{width}}  {r['what']}: failed: {r['failed']}")
            continue
        cells = (format(r[key], form) if r.get(key) is not None else "-" for key, _, form in columns)
        print(f"{r['side']:{width}}" + "".join(f"{c:>14}" for c in cells))
    sys.stdout.flush()
