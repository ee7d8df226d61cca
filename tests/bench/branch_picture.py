"""build/bench/branch.svg and .png: how much came back right, and one panel per question."""

import matplotlib

import branch_sides as sides
import branch_score
import kit

COLOURS = {"coppice": "#1f7a4d", "Kishu": "#c2571a", "Kishu experimental": "#e0a458",
           "dill session": "#4a6fa5", "pickle of all": "#8fb0d9", "restart and run all": "#8a8a8a",
           "coppice bare": "#bcd9c9", "plain kernel": "#cccccc"}
PANELS = (("in a burst", "added to a cell in a burst, ms"),
          ("after a pause", "added to a cell after a pause, ms"),
          ("undo 1", "undo the last cell, ms"), ("back 10", "back to an ancestor, 10 cells, ms"),
          ("switch 100%", "from one line's tip to another's, all of it differs, ms"),
          ("first cell", "first cell there, with what keeps it, ms"),
          ("write", "the whole state written in place, first time after it was kept, ms"))
KINDS = ((branch_score.EXACT, "#1f7a4d", "as it was"), (branch_score.TOLD, "#e0c060", "told"),
         (branch_score.WRONG, "#b03030", "wrong in silence"))
LEAST_MS = 0.1  # what is less is drawn as that; the table has the figure


def scores(axis, results):
    found = results["scores"]
    if not found:
        axis.set_axis_off()
        return
    left = [0] * len(found)
    for kind, colour, label in KINDS:
        counts = [branch_score.count(v, kind) for v in found.values()]
        axis.barh(list(found), counts, left=left, color=colour, label=label)
        for i, n in enumerate(counts):
            if n:
                axis.text(left[i] + n / 2, i, str(n), ha="center", va="center", fontsize=8,
                          color="white")
        left = [a + b for a, b in zip(left, counts)]
    axis.invert_yaxis()
    axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3, frameon=False)
    axis.set_title(f"probes, of {max(left, default=0)}", fontsize=10, loc="left")


def value(row, what):
    found = row["figures"].get(what)
    return found and found.get("added", found["median"])


def bars(axis, results, what, title):
    names = [n for n in COLOURS if what == "write" or n not in sides.BARE.values()]
    tables = results["states"]
    names = [n for n in names if any(r["side"] == n and value(r, what) is not None
                                     for t in tables.values() for r in t["rows"])]
    width = 0.8 / max(1, len(names))
    for i, name in enumerate(names):
        for x, table in enumerate(tables.values()):
            row = next((r for r in table["rows"] if r["side"] == name), None)
            ms = row and value(row, what)
            if ms is None:
                continue
            at = x - 0.4 + (i + 0.5) * width
            axis.bar(at, max(ms, LEAST_MS), width, color=COLOURS[name])
            axis.text(at, max(ms, LEAST_MS) * 1.15, f"{ms:.0f}" if abs(ms) >= 10 else f"{ms:.1f}",
                      ha="center", va="bottom", fontsize=6, rotation=90)
    axis.set_yscale("log")
    axis.set_xticks(range(len(tables)), [f"{n}\n{t['what'].split(',')[0][:22]}"
                                         for n, t in tables.items()], fontsize=7)
    axis.set_title(title, fontsize=10, loc="left")
    axis.margins(y=0.25)


def label(results, name):
    """With its score, so that no time stands without it: as it was + told."""
    found = results["scores"].get(name)
    return f"{name} ({branch_score.shown(found)} of {len(found)})" if found else name


def draw(results):
    matplotlib.use("svg")
    from matplotlib import patches, pyplot
    figure, axes = pyplot.subplots(4, 2, figsize=(16, 17))
    scores(axes[0][0], results)
    for axis, (what, title) in zip(axes.flat[1:], PANELS):
        bars(axis, results, what, title)
    for axis in axes.flat:
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    loads = [row["load"] for row in results["loads"]]
    figure.suptitle(
        f"{results['runs']} runs, medians, {results['cpus']} processors, huge pages: "
        f"{results['thp']}, load {min(loads):.1f} to {max(loads):.1f}"
        + (" (TAKEN UNDER LOAD)" if results["under_load"] else ""), fontsize=11, y=0.995)
    figure.legend(handles=[patches.Patch(color=c, label=label(results, n))
                           for n, c in COLOURS.items()], loc="upper center",
                  bbox_to_anchor=(0.5, 0.985), ncols=8, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.965))
    for kind in ("svg", "png"):
        figure.savefig(kit.OUT / f"branch.{kind}", dpi=110)
    pyplot.close(figure)
    return kit.OUT / "branch.svg"
