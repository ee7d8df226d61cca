"""What a run put out, as its record and its events have it."""

import base64
import hashlib
import json
import re
import subprocess
import sys

import pytest

from chat import datas, events, new_conversation, open_events, read_events, run
from gateway import BOB, wait, within
from test_history import clone_url, git

pytestmark = pytest.mark.timeout(300)
BUDGET = 3 << 20


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


@pytest.fixture(scope="module")
def conversation(server):
    c = new_conversation(server)
    yield c
    assert server.delete(f"/chat/conversations/{c}").status_code == 204


def pictures(record):
    return [base64.b64decode(o["data"]["image/png"]) for o in record["outputs"]
            if "image/png" in o.get("data", {})]


def test_case_29_the_plot_of_a_failing_cell(server, conversation):
    record = run(server, conversation, "import matplotlib.pyplot as plt\n"
                 "plt.figure(); plt.plot([1, 2]); plt.figure(); plt.plot([2, 1])\n"
                 "raise RuntimeError('late')")
    assert record["status"] == "error" and record["error"]["evalue"] == "late"
    assert [p[:4] for p in pictures(record)] == [b"\x89PNG"] * 2
    assert pictures(run(server, conversation, "1")) == []


@pytest.mark.parametrize("wait_too,left", [(True, "frame 2\n"), (False, "")])
def test_case_31_clear_output_that_waits(server, conversation, wait_too, left):
    found = events(server, conversation, "from IPython.display import clear_output\n"
                   "for k in range(3): clear_output(wait=True); print('frame', k)\n"
                   f"clear_output(wait={wait_too})", "executions", "code")
    (record,) = (server.json(f"/chat/records/{r}") for r in found[-1][1]["records"])
    assert record["stdout"] == left
    # A reader that does as the events say has the same.
    shown = ""
    for name, data in found:
        shown = "" if name == "clear" else shown + data.get("stdout", "")
    assert shown == left


@pytest.mark.parametrize("then", ["print('x', file=__import__('sys').stderr)", "display(1)"])
def test_case_31_anything_shown_ends_the_waiting(server, conversation, then):
    record = run(server, conversation, "from IPython.display import clear_output\nprint('old')\n"
                 f"clear_output(wait=True)\n{then}")
    assert record["stdout"] == ""


def test_case_32_updating_what_another_cell_showed(server, conversation, tmp_path):
    first = run(server, conversation, "a = display('A0', display_id=True)\n"
                "b = display('B0', display_id=True)")
    assert [o["data"]["text/plain"] for o in first["outputs"]] == ["'A0'", "'B0'"]
    assert all("display_id" not in o for o in first["outputs"])  # nbformat has none
    found = events(server, conversation, "a.update('A1'); b.update('B1'); a.update('A2')",
                   "executions", "code")
    assert datas(found, "output") == []
    (second,) = (wait(lambda r=r: server.json(f"/chat/records/{r}"), lambda x: x["node"],
                      within(20)) for r in found[-1][1]["records"])
    first = server.json(f"/chat/records/{first['id']}")
    assert second["outputs"] == []
    # An update of nothing changes nothing and raises nothing.
    assert run(server, conversation, "from IPython.display import update_display\n"
               "update_display('X', display_id='nobody')")["status"] == "ok"
    # The commits tell both states.
    git("clone", "-q", clone_url(server, second["kernel_id"]), tmp_path / "story")
    story = tmp_path / "story"
    n = server.json(f"/history/{second['kernel_id']}/nodes/{first['node']}")["execution_count"]
    for record, want in ((first, ["A0", "B0"]), (second, ["A2", "B1"])):
        folder = [p for p in git("ls-tree", "-r", "--name-only", record["node"],
                                 cwd=story).stdout.split("\n") if p.endswith("outputs.json")]
        shown = [json.loads(git("show", f"{record['node']}:{p}", cwd=story).stdout) for p in folder]
        assert any([o.get("data", {}).get("text/plain") in (f"'{w}'", [f"'{w}'"])
                    for o, w in zip(outputs, want)] == [True, True] for outputs in shown), (n, shown)


@pytest.mark.parametrize("lock", ["refs/heads/main.lock", "HEAD.lock", "packed-refs.lock"])
def test_case_52_a_lock_that_somebody_holds(server, conversation, lock):
    """The result is there at once, the commit follows when the lock is gone, and what its holder
    wrote stays."""
    kernel = run(server, conversation, "0")["kernel_id"]
    repository = server.data_dir / "history" / f"{kernel}.git"
    wait(lambda: server.model(kernel)["node"], bool, within(20))
    held = repository / lock
    final = held.with_suffix("")
    held.write_bytes(final.read_bytes() if final.exists() else b"# pack-refs with: peeled \n")
    record = run(server, conversation, f"print({lock!r})")
    assert record["stdout"] == f"{lock}\n"
    if lock.startswith("refs"):
        why = wait(lambda: server.model(kernel).get("not_recorded"), bool, within(20))
        assert "main.lock" in why or "lock" in why
        assert server.json(f"/chat/records/{record['id']}")["node"] is None
        held.rename(final)
    node = wait(lambda: server.json(f"/chat/records/{record['id']}")["node"], bool, within(20))
    assert server.json(f"/history/{kernel}/nodes/{node}")["code"] == f"print({lock!r})"
    if held.exists():
        held.rename(final)
    run(server, conversation, "1")


def test_an_update_in_the_same_run_takes_its_place(server, conversation):
    record = run(server, conversation, "h = display('old', display_id='h')\n"
                 "display('again', display_id='h')\nh.update('new')")
    assert [o["data"]["text/plain"] for o in record["outputs"]] == ["'new'", "'new'"]


def test_records_are_nbformat(server, conversation):
    """The outputs of a record are a notebook's, as its own library checks them."""
    record = run(server, conversation, "import pandas as pd\nprint('x')\n"
                 "display(pd.DataFrame({'a': [1]}))\n1/0")
    check = ("import json, sys, nbformat.v4 as v4, nbformat\n"
             "cell = v4.new_code_cell('x', outputs=json.load(sys.stdin))\n"
             "nbformat.validate(v4.new_notebook(cells=[cell]))")
    subprocess.run([sys.executable, "-c", check], input=json.dumps(record["outputs"]), text=True,
                   check=True)


def log_of(server, record, **options):
    return server.get(f"/chat/records/{record['id']}/log", **options)


def test_a_million_small_outputs(server, conversation):
    """Head and tail of them in the record, all of them in the log, few events."""
    found = events(server, conversation, "for i in range(1_000_000): print(i)", "executions", "code")
    (record,) = (server.json(f"/chat/records/{r}") for r in found[-1][1]["records"])
    whole = "".join(f"{i}\n" for i in range(1_000_000))
    assert record["stdout"].startswith("0\n1\n2\n") and record["stdout"].endswith("\n999999\n")
    assert record["bytes"]["stdout"] == len(whole)
    (cut,) = record["truncated"]
    left = int(re.search(r"(\d+) bytes", cut)[1])
    kept = re.sub(r"\n\[\.\.\. \d+ bytes left out: .*?\]\n", "", record["stdout"])
    assert len(kept) + left == len(whole)
    assert log_of(server, record).text == whole
    shown = "".join(d.get("stdout", "") for d in datas(found, "output"))
    assert shown.startswith(whole[:100_000]) and shown.endswith("\n999999\n")
    assert len(shown) < 600_000 and len(found) < 1000


@pytest.mark.parametrize("text,times", [("x" * 10_000_000, 1), ("北京" * 500_000, 5)],
                         ids=["one-line", "chinese"])
def test_one_long_line(server, conversation, text, times):
    unit = text[:2] if text[0] != "x" else "x"
    code = f"for _ in range({times}): print({unit!r} * {len(text) // len(unit)}, end='')"
    answer = server.post(f"/chat/conversations/{conversation}/executions", json={"code": code},
                         timeout=within(120))
    assert len(answer.content) < BUDGET + 65536
    record = answer.json()
    assert record["status"] == "ok" and "left out" in record["stdout"]
    assert "\ufffd" not in record["stdout"]
    assert log_of(server, record).content == (text * times).encode()


def test_a_hundred_megabytes(server, conversation):
    """The gateway holds a bounded part of them; the log is read while it comes."""
    record = run(server, conversation, "import sys\nfor i in range(1000):\n"
                 "    print(chr(97 + i % 26) * 99_999); print('e', file=sys.stderr)")
    assert record["bytes"] == {"stdout": 100_000_000, "stderr": 2000, "outputs": 0}
    seen, want = hashlib.sha256(), hashlib.sha256()
    for i in range(1000):
        want.update((chr(97 + i % 26) * 99_999).encode())
    with log_of(server, record, stream=True, timeout=within(120)) as answer:
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        for line in answer.iter_lines(1 << 20):
            if line != b"e":
                seen.update(line)
    assert seen.digest() == want.digest()


def test_control_characters_fill_no_more_than_the_budget(server, conversation):
    answer = server.post(f"/chat/conversations/{conversation}/executions", timeout=within(120),
                         json={"code": "print(chr(27) * 3_000_000)"})
    assert len(answer.content) < BUDGET + 65536


def test_large_outputs_keep_what_fits(server, conversation):
    """Of a MIME bundle the largest goes first; what went is named, and the history has it."""
    record = run(server, conversation, "display({'text/plain': 'small', 'text/html': 'x' * 4_000_000}, "
                 "raw=True)\nfor i in range(40): display({'text/plain': f'{i}', 'text/html': "
                 "'y' * 100_000}, raw=True)")
    first = record["outputs"][0]["data"]
    assert first == {"text/plain": "small"} and len(record["outputs"]) == 41
    assert all(o["data"]["text/plain"] for o in record["outputs"])
    assert any(t.startswith("text/html") for t in record["truncated"])
    assert len(json.dumps(record)) < BUDGET + 65536


def test_bytes_that_are_no_text(server, conversation):
    record = run(server, conversation, "!printf 'A\\377B\\n'\nprint('L' + chr(0xFFFD))\n"
                 "display({'text/plain': 'a\\x00b'}, raw=True)\nprint('still')")
    assert "A\ufffdB" in record["stdout"].replace("\ufffd\ufffd", "\ufffd")
    assert "still" in record["stdout"]
    log_of(server, record).content.decode("utf-8", "strict")


def test_a_log_is_its_owners(server, conversation):
    record = run(server, conversation, "print('mine')")
    assert log_of(server, record).text == "mine\n"
    assert log_of(server, record, token=BOB).status_code == 404
    assert log_of(server, {"id": "nobody"}).status_code == 404
    assert log_of(server, run(server, conversation, "1")).content == b""
    assert server.http("HEAD", f"/chat/records/{record['id']}/log").status_code == 200


def test_who_leaves_amid_a_log_harms_nobody(server, conversation):
    record = run(server, conversation, "print('z' * 30_000_000)")
    for _ in range(5):
        with log_of(server, record, stream=True) as answer:
            next(answer.iter_content(1000))
    assert len(log_of(server, record).content) == 30_000_001


FIGURES = """import numpy as np
import matplotlib.pyplot as plt
for i in range(100):
    plt.figure(figsize=(6.4, 4.8), dpi=100)
    x, y = np.random.default_rng(i).random((2, 3000))
    plt.scatter(x, y, c=x, s=9)
    plt.title(f"figure {i}")
    plt.show()
print('drawn')"""


def size_of(png):
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_a_hundred_figures(server, conversation):
    """All of them are there, in order, smaller; who listens gets each once; the history has them as
    they were."""
    found = events(server, conversation, FIGURES, "executions", "code")
    (record,) = (server.json(f"/chat/records/{r}") for r in found[-1][1]["records"])
    assert record["status"] == "ok" and record["stdout"] == "drawn\n"
    shown = pictures(record)
    assert len(shown) == 100 and all(p[:8] == b"\x89PNG\r\n\x1a\n" for p in shown)
    assert len(json.dumps(record)) < BUDGET + 65536
    assert record["bytes"]["outputs"] > 2 * BUDGET
    (cut,) = [t for t in record["truncated"] if "scaled" in t]
    assert int(cut.split()[0]) > 50 and not any("did not fit" in t for t in record["truncated"])
    # They can be seen: drawn again from what the record has, and of sizes alike.
    assert all(min(size_of(p)) > 60 for p in shown)
    told = [d for d in datas(found, "output") if "image/png" in d.get("data", {})]
    assert len(told) == 100 and not any("update" in d for d in told)
    assert sum(len(json.dumps(d)) for d in told) < 2 * BUDGET
    assert told[-1]["data"]["image/png"] == record["outputs"][-1]["data"]["image/png"]
    node = wait(lambda: server.json(f"/chat/records/{record['id']}")["node"], bool, within(60))
    whole = pictures(server.json(f"/history/{record['kernel_id']}/nodes/{node}"))
    assert len(whole) == 100 and max(map(len, whole)) > 2 * max(map(len, shown))


def test_one_picture_that_is_too_large(server, conversation):
    """Among texts: scaled to what is left, still a picture of the same shape."""
    record = run(server, conversation, "import io, numpy as np\nfrom PIL import Image as P\n"
                 "b = io.BytesIO()\n"
                 "P.fromarray(np.random.default_rng(0).integers(0, 255, (1200, 1600, 3), 'uint8'))"
                 ".save(b, 'PNG')\nfrom IPython.display import Image\nprint('x' * 100_000)\n"
                 "display(Image(b.getvalue()), 'after')")
    (shown,) = pictures(record)
    width, height = size_of(shown)
    assert 300 < width < 1600 and abs(width / height - 4 / 3) < 0.02
    assert len(record["outputs"]) == 2 and len(record["stdout"]) == 100_001
    assert len(json.dumps(record)) < BUDGET + 65536


def test_a_picture_that_is_none(server, conversation):
    """What no library can decode is left out and named, its text stays."""
    record = run(server, conversation, "display({'image/png': 'QUJD' * 1_500_000, "
                 "'text/plain': 'none'}, raw=True)")
    assert record["outputs"][0]["data"] == {"text/plain": "none"}
    assert any(t.startswith("image/png did not fit") for t in record["truncated"])


def test_a_conversation_that_goes_while_pictures_are_scaled(server):
    c = new_conversation(server)
    seen = []
    with open_events(server, c, FIGURES, "executions", "code", timeout=240) as answer:
        for name, data in read_events(answer):
            if data.get("stdout") == "drawn\n":
                seen.append(server.delete(f"/chat/conversations/{c}").status_code)
    assert seen == [204]
    assert server.get(f"/chat/conversations/{c}").status_code == 404
