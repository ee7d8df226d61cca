"""The states of branching.md section 5: what builds one, what changes a little, a share and all of it,
and what says whether it is the same again."""

from dataclasses import dataclass

ARRAY = "import numpy as np\na = np.arange({n}, dtype=float)"
MIXED = """
import random
import numpy as np, pandas as pd
random.seed(7)
base = np.arange({n}, dtype=float)
view = base[10:20]
df = pd.DataFrame({{"x": base.copy(), "name": "n"}})
held = [df]
factor = 3
double = lambda v: v * factor
gen = (i * i for i in range(100))
first = [next(gen) for _ in range(3)]
with open("lines.txt", "w") as f: f.write("one\\ntwo\\nthree\\n")
lines = open("lines.txt")
line = lines.readline()
class Thing:
    n = 4
thing = Thing(); thing.self = thing
"""
MIXED_CHECK = ("(held[0] is df, bool(np.shares_memory(base, view)), double(2), next(gen), lines.readline(), "
               "random.random(), thing.self is thing, len(df))")


@dataclass(frozen=True)
class State:
    name: str
    what: str
    build: str
    touch: str      # a small change
    change: str     # of the share {share}
    write: str      # all of it, in place
    check: str      # asked once, where the state was built; may use it up
    look: str       # asked anywhere, uses nothing up
    memory: str = "1G"


def array(name, mb, memory="1G", huge=True):
    n = int(mb * (1 << 20) / 8)
    pages = "" if huge else "import numpy as np\nnp._core.multiarray._set_madvise_hugepage(False)\n"
    return State(name, f"{mb:g} MB of numpy" + ("" if huge else ", 4 KiB pages"),
                 pages + ARRAY.format(n=n), "a[0] += 1", "a[:int(len(a) * {share})] += 1", "a += 1",
                 "(float(a.sum()), a.shape)", "(float(a[0]), float(a[-1]))", memory)


def dicts(name, mb, memory="1G"):
    n = int(mb * 2450)  # 400 bytes each, with its text
    loop = "for e in d[:int(len(d) * {share})]: e['i'] += 1"
    return State(name, f"{n:,} dicts, {mb:g} MB",
                 f"d = [{{'i': i, 'v': str(i)}} for i in range({n})]", "d[0]['i'] += 1", loop,
                 "for e in d: e['i'] += 1", "(sum(e['i'] for e in d), len(d))",
                 "(d[0]['i'], d[-1]['i'])", memory)


def named(name, what, count):
    build = "\n".join(f"t{i} = {i}" for i in range(count))
    every = "\n".join(f"t{i} += 1" for i in range(count))
    total = "sum(globals()[f't{i}'] for i in range(%d))" % count
    return State(name, what, build, "t0 += 1", "t1 += 1 if {share} else 0", every, total, total)


def mixed(mb):
    n = int(mb * (1 << 20) / 8)
    return State("S5", "DataFrame, list that holds it, view, lambda, generator, open file, class, random",
                 MIXED.format(n=n), "base[0] += 1", "base[:int(len(base) * {share})] += 1",
                 "base += 1", MIXED_CHECK, "(float(base[0]), float(base[-1]), factor)")


def states(scale):
    """quick: small ones, which only show that it works; short: what fits the usual limits; full: 1 GB
    with a limit of 4 GiB besides."""
    if scale == "quick":
        return [array("S1", 1), mixed(1)]
    found = [named("S0", "20 scalars", 20), array("S1", 10), array("S2", 100), array("S3", 250),
             dicts("S4", 250), mixed(10), named("S6", "200 small variables", 200)]
    if scale == "full":
        found += [array("S3 1G", 1024, "4G"), array("S3 1G 4K", 1024, "4G", huge=False),
                  dicts("S4 1G", 1024, "4G")]
    return found
