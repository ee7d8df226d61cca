"""The 25 probes of images/kernel/smoke/probes.py on each side, each in a kernel of its own: as it was,
told (refused, or named as lost, or an error, before anybody relies on it), or wrong in silence."""

import concurrent.futures
import sys
from pathlib import Path

from branch_sides import CellFailed, Told

sys.path.append(str(Path(__file__).resolve().parents[2] / "images" / "kernel" / "smoke"))
import probes  # noqa: E402

EXACT, TOLD, WRONG = "exact", "told", "WRONG"
CASES = {**probes.EXACT, **probes.OUTSIDE}
NAMES = sorted([*CASES, probes.SIBLINGS[0]], key=lambda case: int(case.split()[0][1:]))


def verdict(side, case):
    try:
        return siblings(side) if case == probes.SIBLINGS[0] else probe(side, *CASES[case])
    except Told as e:
        return TOLD, str(e)


def ask(side, expression, silent=False):
    """An error is an answer here too."""
    try:
        return side.answer(expression, silent)
    except CellFailed as e:
        return str(e)


def probe(side, before, change, expression, wanted):
    side.cell(before)
    side.checkpoint()
    side.settle()
    mark = side.mark()
    side.cell(change)
    side.checkpoint()
    side.checkout(mark)
    # IPython 9.18 counts a cell before it runs, earlier ones afterwards; a silent one no IPython counts.
    got = ask(side, expression, "execution_count" in expression)
    if got == wanted:
        return EXACT, ""
    lost = side.lost()
    if lost:
        return TOLD, "; ".join(lost)[:200]
    return WRONG, f"{got} instead of {wanted}"[:200]


def siblings(side):
    _, code, expression = probes.SIBLINGS
    side.cell(code)
    side.checkpoint()
    side.settle()
    mark, drawn = side.mark(), []
    for _ in range(2):
        side.checkout(mark)
        drawn.append(ask(side, expression))
    return (EXACT, "") if drawn[0] != drawn[1] else (WRONG, "two branches drew the same")


def score(opened, cases):
    """opened(case): a context with a new side. Two at once, since nothing is timed."""
    def one(case):
        try:
            with opened(case) as side:
                return verdict(side, case)
        except (RuntimeError, OSError, TimeoutError) as e:
            return WRONG, f"it came to no end: {type(e).__name__}: {e}"[:200]
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        return dict(zip(cases, threads.map(one, cases)))


def count(verdicts, kind):
    return sum(v[0] == kind for v in verdicts.values())


def shown(verdicts):
    """"20 + 5": as it was, and told."""
    return f"{count(verdicts, EXACT)}+{count(verdicts, TOLD)}" if verdicts else "-"


def table(scores):
    cases = [c for c in NAMES if any(c in v for v in scores.values())]
    print("\nprobes: as it was; told that it is not; wrong in silence")
    print(" " * 30 + "".join(f"{side:>20}" for side in scores))
    for case in cases:
        print(f"{case:30}" + "".join(f"{v.get(case, ('-',))[0]:>20}" for v in scores.values()))
    for kind in (EXACT, TOLD, WRONG):
        print(f"{kind + f', of {len(cases)}':30}" +
              "".join(f"{count(v, kind):>20}" for v in scores.values()), flush=True)
