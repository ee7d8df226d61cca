"""coppice-render as a whole: what it draws, and that hostile input costs only itself. No gateway, no
container; the last class asks through a gateway. R26, R27."""

import base64
import json
import os
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from gateway import BUILD, READER

PROGRAM = Path(os.environ.get("COPPICE_BIN", BUILD / "coppice")).with_name("coppice-render")
ATTACKS = sorted((Path(__file__).parents[1] / "fuzz/seeds/render_sanitise").iterdir())
PNG = b"\x89PNG\r\n\x1a\n"
LIMIT = 3_000_000


class Made:
    def __init__(self, done):
        self.code, self.said = done.returncode, done.stderr.decode()
        head, _, self.body = done.stdout.partition(b"\n")
        self.head = json.loads(head) if head else {}

    @property
    def size(self):
        assert self.body[:8] == PNG
        return struct.unpack(">II", self.body[16:24])


def ask(request):
    return Made(subprocess.run([PROGRAM], input=request, capture_output=True, timeout=120))


def draw(data, to="png", max_bytes=LIMIT, metadata=None):
    head = json.dumps({"to": to, "max_bytes": max_bytes})
    return ask(f"{head}\n{json.dumps({'data': data, 'metadata': metadata})}".encode())


def chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data)))


def png(width, height, row=None):
    """A PNG of that size; its rows are noise unless given."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(b"\0" + (row if row is not None else os.urandom(width * 3)))
                    for _ in range(height))
    return PNG + head + chunk(b"IDAT", rows + packer.flush()) + chunk(b"IEND", b"")


def text_of(data):
    return base64.b64encode(data).decode()


FRAME = ('<div><style scoped>.dataframe thead th {{ text-align: right; }}</style><table border="1" '
         'class="dataframe"><thead><tr><th></th><th>城市</th></tr></thead><tbody>'
         "{}</tbody></table></div>")
ROW = "<tr><th>{0}</th><td>北京 {0}</td></tr>"
SVG = ('<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><rect width="50" '
       'height="50" fill="red"/><text y="90">text 中</text></svg>')


class TestChoice:
    """What is drawn of a bundle, and what it is said to be."""

    def test_a_dataframe(self):
        data = {"text/html": FRAME.format(ROW.format(0)), "text/plain": "  城市\n0  北京"}
        page, picture = draw(data, "html"), draw(data)
        assert (page.code, picture.code) == (0, 0)
        assert page.head["from"] == picture.head["from"] == "text/html"
        assert "北京 0" in page.body.decode() and 'class="dataframe"' in page.body.decode()
        assert 80 < picture.size[0] < 800 and not picture.head["cut"]

    def test_a_figure(self):
        data = {"image/png": text_of(png(40, 30)), "text/plain": "<Figure>"}
        page, picture = draw(data, "html"), draw(data)
        assert picture.body == base64.b64decode(data["image/png"])
        assert "data:image/png;base64," in page.body.decode()

    def test_a_dense_figure_has_the_size_it_says(self):
        data = {"image/png": text_of(png(40, 30))}
        page = draw(data, "html", metadata={"image/png": {"width": 20, "height": 15}}).body
        assert b' width="20"' in page and b"height" not in page
        for odd in ({"width": "9\" onload=x"}, {"width": -1}, [], None, {"width": 1e300}):
            assert b"width=" not in draw(data, "html", metadata={"image/png": odd}).body

    def test_an_svg(self):
        picture = draw({"image/svg+xml": SVG})
        assert picture.size == (400, 200) and picture.head["from"] == "image/svg+xml"
        assert "data:image/svg+xml;base64," in draw({"image/svg+xml": SVG}, "html").body.decode()

    def test_a_traceback(self):
        data = {"text/plain": "\x1b[31mKeyError\x1b[0m: <b>"}
        assert b'<span class="ansi-red-fg">KeyError</span>: &lt;b&gt;' in draw(data, "html").body
        assert draw(data).size[0] > 100

    def test_other_html_is_marked(self):
        data = {"text/html": "<canvas></canvas><script>draw()</script>", "text/plain": "a plot"}
        picture = draw(data)
        assert picture.head == {"mime": "image/png", "from": "text/plain", "cut": True}
        page = draw(data, "html")
        assert page.head["from"] == "text/plain" and b"a plot" in page.body

    def test_order(self):
        data = {"text/plain": "p", "image/png": text_of(png(4, 4)), "text/latex": "$l$",
                "text/markdown": "# m", "text/html": "<i>h</i>", "image/svg+xml": SVG}
        expected = ["text/html", "text/markdown", "text/latex", "image/png", "image/svg+xml",
                    "text/plain"]
        for mime in expected:
            assert draw(data, "html").head["from"] == mime
            del data[mime]

    def test_lists_of_lines_and_json(self):
        assert b"a\nb" in draw({"text/plain": ["a\n", "b"]}, "html").body
        assert b"&quot;k&quot;" in draw({"application/json": {"k": [1, None]}}, "html").body

    def test_a_picture_that_is_none(self):
        made = draw({"image/png": text_of(b"no picture"), "text/plain": "instead"}, "html")
        assert made.head["from"] == "text/plain"

    @pytest.mark.parametrize("to", ["png", "html"])
    def test_nothing(self, to):
        made = draw({"application/x-unknown": "a"}, to)
        assert made.code == 3 and made.body == b"" and "nothing" in made.said

    @pytest.mark.parametrize("request_", [
        b"", b"{}", b"{}\n{}", b'{"to":"pdf"}\n{"data":{}}', b'{"to":"png"}\n{"data":[]}',
        b'{"to":"png"}\n{"data":{', b'{"to":"png","max_bytes":-1}\n{"data":{}}', b"\0\n\0",
        b'{"to":"png","max_bytes":"1"}\n{"data":{}}', b"[" * 100_000 + b"\n{}"], ids=repr)
    def test_malformed(self, request_):
        assert ask(request_).code == 2


class TestSize:
    """max_bytes holds, and what was left out is said."""

    @pytest.mark.parametrize("to", ["png", "html"])
    def test_a_large_picture_is_scaled(self, to):
        made = draw({"image/png": text_of(png(1000, 800))}, to, 200_000)
        assert made.code == 0 and len(made.body) <= 200_000 and made.head["cut"]

    @pytest.mark.parametrize("to", ["png", "html"])
    @pytest.mark.parametrize("text", ["x" * 10_000_000, "line\n" * 2_000_000, "中" * 1_000_000,
                                      "<&>" * 1_000_000, "\x1b[31ma\x1b[32mb" * 300_000],
                             ids=["line", "lines", "han", "escapes", "colours"])
    def test_a_long_text_is_cut(self, to, text):
        made = draw({"text/plain": text}, to)
        assert made.code == 0 and len(made.body) <= LIMIT and made.head["cut"]

    def test_head_and_tail_stay(self):
        text = "first\n" + "middle\n" * 1_000_000 + "last"
        body = draw({"text/plain": text}, "html", 50_000).body.decode()
        assert "first" in body and "last" in body and "bytes left out" in body
        assert len(body) <= 50_000

    def test_a_long_table(self):
        data = {"text/html": FRAME.format("".join(map(ROW.format, range(5000))))}
        made = draw(data)
        assert made.code == 0 and made.head["cut"] and made.size[1] < 12_000
        small = draw(data, max_bytes=30_000)
        assert small.code == 0 and len(small.body) <= 30_000

    def test_a_wide_table(self):
        cells = "".join(f"<td>column {i}</td>" for i in range(900))
        made = draw({"text/html": f"<table><tr>{cells}</tr></table>"})
        assert made.code == 0 and made.head["cut"] and made.size[0] < 4000

    def test_html_that_does_not_fit_is_drawn_from_its_text(self):
        data = {"text/html": FRAME.format("".join(map(ROW.format, range(5000)))),
                "text/plain": "5000 rows"}
        assert draw(data, "html", 20_000).head["from"] == "text/plain"


def bomb(levels):
    groups = "".join(f'<g id="a{i}">' + f'<use href="#a{i - 1}"/>' * 10 + "</g>"
                     for i in range(1, levels))
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect id="a0" />{groups}' \
           f'<use href="#a{levels - 1}"/></svg>'


ENTITIES = ('<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "' + "x" * 100 + '">' +
            "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9)) +
            ']><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>&j;</text></svg>')
FILTERS = ('<svg xmlns="http://www.w3.org/2000/svg" width="4000" height="4000"><filter id="f">' +
           '<feGaussianBlur stdDeviation="900"/>' * 500 +
           '</filter><rect width="4000" height="4000" filter="url(#f)"/></svg>')
PATTERNS = ('<svg xmlns="http://www.w3.org/2000/svg" width="900" height="900">' + "".join(
    f'<pattern id="p{i}" width=".001" height=".001"><rect width="1" height="1" '
    f'fill="url(#p{i - 1})"/></pattern>' for i in range(1, 30)) +
    '<rect width="900" height="900" fill="url(#p29)"/></svg>')
HOSTILE = {
    "svg-use-bomb": {"image/svg+xml": bomb(30)},
    "svg-entities": {"image/svg+xml": ENTITIES},
    "svg-filters": {"image/svg+xml": FILTERS},
    "svg-patterns": {"image/svg+xml": PATTERNS},
    "svg-huge": {"image/svg+xml": SVG.replace('width="200"', 'width="1e9"')},
    "svg-odd-size": {"image/svg+xml": SVG.replace('width="200"', 'width="nan" viewBox="0 0 1e-9 9e9"')},
    "svg-deep": {"image/svg+xml": "<svg>" + "<g>" * 200_000},
    "svg-paths": {"image/svg+xml": '<svg width="900" height="900"><path stroke="red" '
                  'stroke-dasharray="0.0001" d="' + "M0 0L900 900" * 50_000 + '"/></svg>'},
    "html-deep": {"text/html": "<div>" * 300_000},
    "html-formatting": {"text/html": "<b><i><a><font color=red>" * 30_000 + "<p>" * 30_000},
    "html-tables": {"text/html": "<table><tr><td>" * 100_000},
    "html-attributes": {"text/html": "<p " + " ".join(f"a{i}=b" for i in range(200_000)) + ">x"},
    "html-spans": {"text/html": "<table>" + "<tr>" * 20_000 + "<td colspan=65534 rowspan=65534>x"},
    "html-cells": {"text/html": "<table><tr>" + "<td>x" * 1_000_000},
    "html-style": {"text/html": "<style>" + "a,b{color:red}" * 200_000 + "</style>x"},
    "html-style-open": {"text/html": "<style>" + "{" * 2_000_000 + "</style>x"},
    "html-comment": {"text/html": "<!--" * 500_000},
    "html-entities": {"text/html": "&amp;&#x10ffff;&notin;" * 500_000},
    "text-combining": {"text/plain": "a" + "\u0301" * 300_000},
    "text-bidi": {"text/plain": "\u202e\u2067" * 200_000 + "x"},
    "text-nul": {"text/plain": "a\0b" * 100_000},
    "text-escapes": {"text/plain": "\x1b[" * 1_000_000},
    "text-zwj": {"text/plain": "👩\u200d" * 100_000},
    "png-bomb": {"image/png": text_of(png(20_000, 20_000, b"\0" * 60_000))},
    "png-huge-head": {"image/png": text_of(PNG + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 6, 0, 0, 0)) + chunk(b"IDAT", b"x"))},
    "png-cut": {"image/png": text_of(png(400, 400)[:20_000])},
    "png-text-bomb": {"image/png": text_of(PNG + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"zTXt", b"a\0\0" + zlib.compress(
            b"\0" * 200_000_000, 9)) + chunk(b"IDAT", zlib.compress(b"\0" * 4)) + chunk(b"IEND", b""))},
    "jpeg-huge": {"image/jpeg": text_of(b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03" +
                                        b"\x01\x22\0\x02\x11\x01\x03\x11\x01" + b"\xff\xda" * 999)},
    "json-deep": {"application/json": json.loads("[" * 900 + "]" * 900)},
}


class TestHostile:
    """Drawn, drawn from something else, refused, or ended by its own limits: never with a crash of
    ours, and within the limits of memory and processor time that the program gives itself."""

    @pytest.mark.parametrize("to", ["png", "html"])
    @pytest.mark.parametrize("name", HOSTILE)
    def test_costs_only_itself(self, name, to):
        made = draw(HOSTILE[name], to)
        # -24: SIGXCPU, -9: the same limit a second later.
        assert made.code in (0, 1, 3, 4, -9, -24), made.said
        assert "Sanitizer" not in made.said
        assert len(made.body) <= LIMIT

    @pytest.mark.parametrize("name", ["html-deep", "html-formatting", "html-tables", "html-spans",
                                      "svg-use-bomb", "png-bomb", "png-huge-head", "svg-entities"])
    def test_falls_back_on_the_text(self, name):
        """What is too much to look at leaves its place to what is beside it."""
        for to in ("png", "html"):
            made = draw({**HOSTILE[name], "text/plain": "instead"}, to)
            assert made.code == 0, made.said

    @pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.name)
    def test_attacks_end(self, attack):
        text = attack.read_bytes().decode("utf-8", "replace")
        for mime in ("text/html", "image/svg+xml"):
            assert draw({mime: text}).code in (0, 3)


class TestInABrowser:
    """All attacks on one page, in Chromium: nothing runs, nothing is fetched."""

    def test_nothing_runs_and_nothing_is_fetched(self, tmp_path):
        parts = []
        for attack in ATTACKS:
            made = draw({"text/html": attack.read_bytes().decode("utf-8", "replace")}, "html")
            parts.append(made.body.decode() if made.code == 0 else "")
        page = tmp_path / "page.html"
        page.write_text("<!doctype html><meta charset=utf-8><title>quiet</title><script>"
                        "alert = function () { document.title = 'ran'; };</script>" +
                        "\n".join(parts) +
                        "<script>addEventListener('load', function () { document.title += "
                        "' ' + performance.getEntriesByType('resource').filter(function (e) { "
                        "return !e.name.startsWith('data:'); }).length; });</script>")
        out = subprocess.run(
            ["chromium", "--no-sandbox", "--headless", "--disable-gpu", "--dump-dom",
             f"--user-data-dir={tmp_path}/profile", page.as_uri()],
            capture_output=True, text=True, timeout=120, check=True).stdout
        assert "<title>quiet 0</title>" in out


class TestWall:
    """The filter of system calls, as the kernel sees it."""

    def test_it_is_up_before_anything_is_read(self):
        with subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            status = Path(f"/proc/{child.pid}/status")
            # It reads only behind the wall: once the pipe is empty again it is up.
            child.stdin.write(b'{"to":"html"}\n{"data":' + b" " * 200_000)
            child.stdin.flush()
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines()
                         if ":\t" in line)
            assert lines["Seccomp"].strip() == "2" and lines["NoNewPrivs"].strip() == "1"
            child.stdin.write(b'{"text/plain":"a"}}')
            child.stdin.close()
            assert b"<pre>" in child.stdout.read()


class TestThroughTheGateway:
    def test_html_and_png(self, process_gateway):
        body = {"data": {"text/html": FRAME.format(ROW.format(7)), "text/plain": "x"}, "to": "html"}
        page = process_gateway.http("POST", "/chat/render", json=body)
        assert page.status_code == 200 and "北京 7" in page.content.decode()
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "sandbox" in page.headers["Content-Security-Policy"]
        picture = process_gateway.http("POST", "/chat/render", json={**body, "to": "png"})
        assert picture.headers["Content-Type"] == "image/png" and picture.content[:8] == PNG

    @pytest.mark.parametrize("body", [
        {}, {"data": {}}, {"data": [], "to": "png"}, {"data": {"text/plain": "a"}, "to": "pdf"},
        {"data": {"text/plain": "a"}, "to": "png", "max_bytes": 10},
        {"data": {"text/plain": "a"}, "to": "png", "max_bytes": "many"},
        {"data": {"x/y": "a"}, "to": "png"}], ids=str)
    def test_what_cannot_be_drawn_is_400(self, process_gateway, body):
        answer = process_gateway.http("POST", "/chat/render", json=body)
        assert answer.status_code == 400 and answer.json()["reason"]

    def test_needs_the_scope_run(self, process_gateway):
        body = {"data": {"text/plain": "a"}, "to": "html"}
        answer = process_gateway.http("POST", "/chat/render", json=body, token=READER)
        assert answer.status_code == 403
