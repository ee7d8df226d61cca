"""What of a model's text is code (field cases 37, 38, 40), over HTTP and, where it matters, run."""

import json
from pathlib import Path

import pytest

from gateway import READER
from test_rest import check_error

PREPARE = Path(__file__).resolve().parents[1] / "prepare"


def can_be_sent(path):
    """In JSON: no bytes that are no UTF-8, no NUL. The unit test has those."""
    text = path.read_bytes()
    return b"\0" not in text and "\ufffd" not in text.decode("utf-8", "replace")


TEXTS = sorted(filter(can_be_sent, PREPARE.glob("*.md")))


def prepare(server, text):
    r = server.post("/chat/prepare", json={"text": text})
    assert r.status_code == 200, f"{r.status_code} {r.text}"
    return r.json()


def runs(prepared):
    return [b["code"] for b in prepared["blocks"] if b["language"] == "python"]


def run_all(server, client, text):
    """Runs what is to be run, as a program that reads the answer would."""
    prepared = prepare(server, text)
    assert prepared["verdict"] == "code"
    done = [client.run(code) for code in runs(prepared)]
    assert [d.reply.content["status"] for d in done] == ["ok"] * len(done)
    return "".join(d.stdout for d in done), done


def count(client):
    """The kernel's count, without moving it."""
    return client.run("", silent=True).reply.content["execution_count"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_answer_is_what_stands_beside_the_text(process_gateway, path):
    expected = json.loads(path.with_suffix(".json").read_text())
    assert prepare(process_gateway, path.read_bytes().decode()) == expected


def test_who_may_ask_and_what(process_gateway):
    check_error(process_gateway.post("/chat/prepare", json={"text": "x"}, token=READER), 403)
    check_error(process_gateway.post("/chat/prepare", json={"text": "x"}, token=None), 401)
    for body in ({}, {"text": 3}, {"text": None}, {"text": "a\0b"}):
        check_error(process_gateway.post("/chat/prepare", json=body), 400)
    r = process_gateway.post("/chat/prepare", data=b'{"text": "' + b"x" * (1 << 20) + b'"}')
    check_error(r, 413)
    assert r.json()["reason"] == "too_large"
    check_error(process_gateway.post("/chat/prepare", json={"text": "```a\n```\n" * 1001}), 413)


def test_case_37_runs(docker_gateway, kernel):
    with docker_gateway.open(kernel) as c:
        c.info()
        for path in sorted(PREPARE.glob("case-37?.md")):
            text = path.read_bytes().decode()
            if path.stem != "case-37l":  # Markdown that says so is no Python
                assert run_all(docker_gateway, c, text)[0] == "1\n", path.stem


def test_case_38_runs(docker_gateway, kernel):
    with docker_gateway.open(kernel) as c:
        c.info()
        text = (PREPARE / "case-38-inner-fence.md").read_text()
        assert run_all(docker_gateway, c, text)[0] == "1 <think>\n"
        before = count(c)
        never = prepare(docker_gateway, (PREPARE / "case-38-never-closed.md").read_text())
        assert (never["verdict"], never["blocks"]) == ("no-code", [])
        assert count(c) == before


def test_case_40_runs(docker_gateway, kernel):
    with docker_gateway.open(kernel) as c:
        c.info()
        assert run_all(docker_gateway, c, (PREPARE / "case-40e.md").read_text())[0] == "1\n"


def test_notebook_shows_each_cell(docker_gateway, kernel):
    with docker_gateway.open(kernel) as c:
        c.info()
        _, done = run_all(docker_gateway, c, (PREPARE / "notebook.md").read_text())
        assert [bool(d.iopub("execute_result")) for d in done] == [True, False, False]


def test_mended_code_runs(docker_gateway, kernel):
    """Each could not be read as the model wrote it, or had drawn nothing."""
    with docker_gateway.open(kernel) as c:
        c.info()
        assert "Hello it\nit's\nHello\n“kept”\n" in run_all(
            docker_gateway, c, (PREPARE / "quotes.md").read_text())[0]
        assert run_all(docker_gateway, c, (PREPARE / "signs.md").read_text())[0] == "1 2\n"
        assert run_all(docker_gateway, c, (PREPARE / "prompt-python.md").read_text())[0] == "0\n1\n"
        text = ("```python\nimport matplotlib\nmatplotlib.use('TkAgg')\n"
                "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('on')\n```")
        stdout, (done,) = run_all(docker_gateway, c, text)
        assert stdout == "on\n"
        assert any("image/png" in m.content["data"] for m in done.iopub("display_data"))
