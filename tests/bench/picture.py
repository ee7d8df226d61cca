"""build/bench/bench.svg and .png: one panel per question, one bar per side."""

import matplotlib

import kit

OURS, LIMIT, OTHERS = "#1f7a4d", "#888888", "#c9a36b"


def colour(side):
    if side.startswith("coppice"):
        return OURS
    return LIMIT if side.startswith(("direct", "bare")) else OTHERS


def panels(families):
    """[(title, {side: value})], of what was measured."""
    out = []
    execute = families.get("execute", {})
    for pace, rows in execute.get("pairs", {}).items():
        if pace.startswith("docker"):
            out.append((f"`6*7`, {pace}: ms more than direct",
                        {r["side"]: r["more_ms"] for r in rows}))
    for client in ("ordinary", "at once"):
        rows = [r for r in execute.get("peers", []) if r["client"] == client and
                r["code"] == "print(1)" and (r["framing"] == "v1" or r["side"] == "jupygate")]
        out.append((f"`print(1)`, client acknowledges {client}: ms",
                    {r["side"]: r["median_ms"] for r in rows}))
    for title, rows in families.get("flood", {}).items():
        out.append((f"flood, {title}: CPU us a line",
                    {r["side"]: r["cpu_us"] for r in rows if r.get("cpu_us") is not None}))
        if not title[0].isdigit():
            out.append((f"flood, {title}: share lost, %",
                        {r["side"]: 100 * r["lost"] / r["asked"] for r in rows if "lost" in r}))
    for title, rows in families.get("bulk", {}).items():
        out.append((f"{title}: MB/s", {r["side"]: r["mb_s"] for r in rows if "mb_s" in r}))
    out.append(("start: ms to the first idle",
                {r["side"]: r["median_ms"] for r in families.get("start", []) if "median_ms" in r}))
    for key, title in (("kb_socket", "KB per idle WebSocket"), ("kb_kernel", "KB per idle kernel")):
        out.append((title, {r["side"]: r[key] for r in families.get("rest", []) if key in r}))
    out.append(("kill -9 to the first answer: ms",
                {f"{r['side']}, kernels kept: {r['kept']}": r["median_ms"]
                 for r in families.get("recover", []) if "median_ms" in r}))
    return [(title, bars) for title, bars in out if bars]


def figure_of(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def draw(results):
    """The picture's path, or None if there is nothing to draw."""
    matplotlib.use("svg")
    from matplotlib import pyplot
    found = panels(results["families"])
    if not found:
        return None
    columns = 2
    rows = -(-len(found) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(15, 3.4 * rows), squeeze=False)
    for axis in axes.flat[len(found):]:
        axis.set_visible(False)
    for axis, (title, bars) in zip(axes.flat, found):
        names, values = list(bars), list(bars.values())
        drawn = axis.barh(names, values, color=[colour(n) for n in names])
        axis.bar_label(drawn, [figure_of(v) for v in values], padding=3, fontsize=8)
        axis.set_title(title, fontsize=10, loc="left")
        axis.tick_params(labelsize=8)
        axis.invert_yaxis()
        axis.margins(x=0.12)
        if not any(values):
            axis.set_xlim(0, 1)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{results['machine']}, {results['cpus']} processors, {results['scale']} counts",
                    fontsize=11)
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    kit.OUT.mkdir(parents=True, exist_ok=True)
    for kind in ("svg", "png"):
        figure.savefig(kit.OUT / f"bench.{kind}")
    pyplot.close(figure)
    return kit.OUT / "bench.svg"
