#!/usr/bin/env python3
"""Draws the logos of the kernelspec, all three from the same shapes: a stump, its stems, leaves.

Run by hand after a change (needs Pillow): python3 draw_logos.py
"""

import pathlib

from PIL import Image, ImageDraw

HERE = pathlib.Path(__file__).resolve().parent
SIDE = 64
BARK, RING, STEM, LEAF = "#7a5230", "#d9b98a", "#4f7a3a", "#8fbf4d"

# A stem is a line from the stump upwards; a leaf an ellipse: centre x, y, radii.
STEMS = (((32, 44), (32, 16)), ((26, 44), (15, 22)), ((38, 44), (49, 22)), ((29, 44), (24, 30)))
LEAVES = ((32, 11, 6, 9), (12, 17, 7, 7), (52, 17, 7, 7), (22, 27, 4, 5), (43, 34, 4, 4))
STUMP = ((16, 46), (48, 46), (53, 60), (11, 60))
TOP = ((32, 46, 16, 5, RING), (32, 46, 9, 2.6, BARK), (32, 46, 7.5, 1.9, RING))
WIDTH = 3.6


def svg():
    rows = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}">']
    points = " ".join(f"{x},{y}" for x, y in STUMP)
    rows.append(f'<polygon points="{points}" fill="{BARK}"/>')
    rows += [
        f'<ellipse cx="{x}" cy="{y}" rx="{a}" ry="{b}" fill="{c}"/>' for x, y, a, b, c in TOP
    ]
    rows += [
        f'<line x1="{p[0]}" y1="{p[1]}" x2="{q[0]}" y2="{q[1]}" stroke="{STEM}"'
        f' stroke-width="{WIDTH}" stroke-linecap="round"/>'
        for p, q in STEMS
    ]
    rows += [
        f'<ellipse cx="{x}" cy="{y}" rx="{a}" ry="{b}" fill="{LEAF}"/>' for x, y, a, b in LEAVES
    ]
    return "\n".join([*rows, "</svg>", ""])


def png(side):
    scale = 512 / SIDE
    image = Image.new("RGBA", (512, 512), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)

    def ellipse(x, y, a, b, colour):
        draw.ellipse([v * scale for v in (x - a, y - b, x + a, y + b)], fill=colour)

    draw.polygon([(x * scale, y * scale) for x, y in STUMP], fill=BARK)
    for shape in TOP:
        ellipse(*shape)
    for p, q in STEMS:
        draw.line([v * scale for v in (*p, *q)], fill=STEM, width=round(WIDTH * scale))
        for x, y in (p, q):
            ellipse(x, y, WIDTH / 2, WIDTH / 2, STEM)
    for x, y, a, b in LEAVES:
        ellipse(x, y, a, b, LEAF)
    return image.resize((side, side), Image.Resampling.LANCZOS)


if __name__ == "__main__":
    (HERE / "logo-svg.svg").write_text(svg())
    for n in (32, 64):
        png(n).save(HERE / f"logo-{n}x{n}.png", optimize=True)
