"""Histories in and out: notebooks and scripts, and the programs of others that read them."""

import copy
import itertools
import json
import random
import subprocess

import jupytext
import nbformat
import pytest
from nbdime.diff_format import validate_diff
from nbdime.diff_utils import to_diffentry_dicts
from nbdime.patching import patch_notebook

from git_server import GitServer
from gateway import ALICE, BOB, READER, within
from test_history import clone_url, executions, git, recorded

pytestmark = pytest.mark.timeout(300)

PICTURE = """
import base64, os
from IPython.display import Image, display
print('a\\nb')
display({'text/plain': 'tree', 'application/json': {'n': 12345678901234567890}}, raw=True)
Image(data=base64.b64decode('iVBORw0KGgo=') + os.urandom(8000), format='png')
"""
CELLS = ("x = 6 * 7\nx", PICTURE, "%time y = 1\n!echo hi\n", "1/0", "# %% not a cell\nz = '''\n# %%\n%d'''")


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


@pytest.fixture
def told(server, kernel):
    """A kernel that ran CELLS, and its history."""
    with server.open(kernel) as c:
        c.info()
        for code in CELLS:
            c.run(code)
    return kernel, recorded(server, kernel, len(CELLS))


def export(server, history, query=""):
    r = server.get(f"/history/{history}/export{query}")
    assert r.status_code == 200, r.text
    return r


def notebook(server, history, query=""):
    """The export, valid to nbformat in every word."""
    nb = nbformat.reads(export(server, history, query).text, as_version=nbformat.NO_CONVERT)
    assert (nb.nbformat, nb.nbformat_minor) == (4, 5)
    nbformat.validate(nb)
    assert len({c.id for c in nb.cells}) == len(nb.cells)
    return nb


def imported(server, body, query="", **options):
    r = server.post(f"/history/import{query}", data=body, **options)
    assert r.status_code == 201, r.text
    history = r.json()
    assert r.headers["Location"].endswith(f"/history/{history['id']}")
    return history


def coppice(server, *argv, check=True, **options):
    done = subprocess.run([server.argv[0], *map(str, argv), "--data-dir", str(server.data_dir)],
                          capture_output=True, text=True, timeout=within(60), check=False, **options)
    assert not check or done.returncode == 0, done.stderr
    return done


# ---- export ----

def test_an_export_is_what_was_seen(server, told):
    kernel_id, history = told
    nb = notebook(server, kernel_id)
    assert [c.source for c in nb.cells] == list(CELLS)
    assert [c.execution_count for c in nb.cells] == [1, 2, 3, 4, 5]
    for cell, node in zip(nb.cells, executions(history)):
        seen = server.json(f"/history/{kernel_id}/nodes/{node['id']}")["outputs"]
        assert json.loads(json.dumps(cell.outputs)) == seen
    assert "12345678901234567890" in export(server, kernel_id).text
    assert nb.metadata.kernelspec.name == "python3"
    assert "coppice" not in json.dumps(nb)


def test_it_has_a_name_and_jupyter_s_layout(server, told):
    kernel_id, history = told
    r = export(server, kernel_id)
    head = executions(history)[-1]["id"]
    assert r.headers["Content-Disposition"].endswith(f'{head[:8]}.ipynb"')
    assert r.headers["Content-Type"] == "application/x-ipynb+json"
    r = export(server, kernel_id, "?format=py&node=HEAD~1")
    assert r.headers["Content-Disposition"].endswith(f'{executions(history)[-2]["id"][:8]}.py"')
    # Saved by Jupyter it is the same text, but for the order of keys inside data.
    text = export(server, kernel_id, "?node=HEAD~4").text
    assert nbformat.writes(nbformat.reads(text, as_version=4)) + "\n" == text


def test_up_to_a_node_counted_anew_with_metadata(server, told):
    kernel_id, history = told
    second = executions(history)[1]["id"]
    nb = notebook(server, kernel_id, f"?node={second}&metadata=true")
    assert len(nb.cells) == 2
    assert nb.metadata.coppice.node == second
    assert nb.cells[0].metadata.coppice.status == "ok"
    assert notebook(server, kernel_id, "?node=In[1]").cells[0].source == CELLS[0]


def test_what_was_silent_or_held_back(server, kernel):
    with server.open(kernel) as c:
        c.info()
        c.run("0")
        c.run("'unseen'", silent=True)
        ids = [c.execute(code) for code in ("1/0", "'a'", "'b'")]
        for i in ids:
            c.collect(i)
        c.run("'a'")
    recorded(server, kernel, 5)
    nb = notebook(server, kernel)
    assert [c.source for c in nb.cells] == ["0", "1/0", "'b'", "'a'"]
    held = nb.cells[2]
    assert held.execution_count is None and held.outputs == []
    assert [c.source for c in notebook(server, kernel, "?silent=true").cells][1] == "'unseen'"
    counts = [c.execution_count for c in notebook(server, kernel, "?counts=renumbered").cells]
    assert counts == [1, 2, None, 3]
    result = notebook(server, kernel, "?counts=renumbered").cells[3].outputs[0]
    assert result.execution_count == 3


def test_cell_ids_stay_and_a_second_run_gets_its_own(server, kernel):
    with server.open(kernel) as c:
        c.info()
        for cell_id in ("first", "second", "first", "not valid!"):
            run = c.send("shell", "execute_request", {"code": f"'{cell_id}'"},
                         metadata={"cellId": cell_id})
            c.collect(run)
    recorded(server, kernel, 4)
    ids = [c.id for c in notebook(server, kernel).cells]
    assert ids[:2] == ["first", "second"] and ids[2] != "first"
    assert [c.id for c in notebook(server, kernel, "?node=HEAD~1").cells] == ids[:3]


def test_a_script_is_jupytext_s(server, told):
    kernel_id, _ = told
    script = export(server, kernel_id, "?format=py").text
    read = jupytext.reads(script, fmt="py:percent")
    wanted = [c.strip("\n") for c in CELLS]
    # It has no way to say that a line of code looks like a beginning; ours stays a comment there.
    wanted[4] = wanted[4].replace("# %%", "# # %%")
    assert [c.source.strip("\n") for c in read.cells] == wanted
    assert read.metadata.kernelspec.name == "python3"


def test_export_s_questions_are_checked(server, told):
    kernel_id, _ = told
    for query in ("?format=docx", "?counts=roman", "?node="):
        assert server.get(f"/history/{kernel_id}/export{query}").status_code in (400, 404), query
    assert server.get(f"/history/{kernel_id}/export?node=HEAD~99").status_code == 404
    assert server.get(f"/history/{kernel_id}/export", token=BOB).status_code == 404
    assert server.get(f"/history/{kernel_id}/diff?from=HEAD~1&to=HEAD", token=BOB).status_code == 404
    assert notebook(server, kernel_id, "?node=HEAD~5").cells == []


# ---- import ----

@pytest.mark.parametrize("form", ["ipynb", "py"])
def test_there_and_back_and_there_is_the_same(server, told, form):
    kernel_id, _ = told
    first = export(server, kernel_id, f"?format={form}").text
    history = imported(server, first.encode(), f"?name=walk&format={form}")
    assert history["name"] == "walk" and history["branches"][0]["name"] == "main"
    assert export(server, history["id"], f"?format={form}").text == first
    again = imported(server, first.encode())
    assert export(server, again["id"], f"?format={form}").text == first


NOTEBOOK = {
    "nbformat": 4, "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "ir", "display_name": "R \u00fc"}, "authors": [{"name": "Ada"}],
                 "language_info": {"name": "R"}, "coppice": {"node": "0"}},
    "cells": [
        {"cell_type": "markdown", "id": "intro", "metadata": {"tags": ["t"]}, "source": ["# Title\n", "text"],
         "attachments": {"a.png": {"image/png": "iVBORw0KGgo="}}},
        {"cell_type": "code", "id": "one", "metadata": {"collapsed": True, "coppice": {"status": "no"}},
         "source": "a = 1\nb", "execution_count": 7, "outputs": [
             {"output_type": "stream", "name": "stdout", "text": ["x\n", "y"]},
             {"output_type": "display_data", "metadata": {}, "data": {
                 "text/html": ["<b>\n", "</b>"], "application/json": {"a": [1, "b"]},
                 "image/png": "aGFsbG8="}},
             {"output_type": "execute_result", "metadata": {"k": 1}, "data": {"text/plain": "1"},
              "execution_count": 7}]},
        {"cell_type": "raw", "id": "raw", "metadata": {}, "source": "as it is"},
        {"cell_type": "code", "id": "two", "metadata": {}, "source": "1/0", "execution_count": None,
         "outputs": [{"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["a", "b\n"]}]},
        {"cell_type": "markdown", "id": "end", "metadata": {}, "source": "the end"},
    ],
}


def test_all_of_a_notebook_comes_back(server):
    history = imported(server, json.dumps(NOTEBOOK))
    got = nbformat.from_dict(notebook(server, history["id"]))
    wanted = nbformat.reads(json.dumps(NOTEBOOK), as_version=4)
    del wanted.metadata["coppice"], wanted.cells[1].metadata["coppice"]
    assert got == wanted
    nodes = executions(history)
    assert [n["status"] for n in nodes] == ["ok", "error"]
    assert nodes[1]["error"]["ename"] == "E" and nodes[0]["fidelity"] == "code-only"
    one = server.json(f"/history/{history['id']}/nodes/HEAD~1")
    assert one["code"] == "a = 1\nb" and len(one["outputs"]) == 3


def test_an_import_is_a_repository_like_any_other(server, tmp_path):
    history = imported(server, json.dumps(NOTEBOOK))
    git("clone", "-q", clone_url(server, history["id"]), tmp_path / "story")
    git("fsck", "--strict", cwd=tmp_path / "story")
    assert git("log", "--format=%s", cwd=tmp_path / "story").stdout.split("\n")[:3] == [
        "1/0", "a = 1", "Begin"]


def cell(**members):
    return {"cell_type": "code", "metadata": {}, "source": "1", "outputs": [],
            "execution_count": None, **members}


def with_cells(*cells, **members):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells),
                       **members})


REFUSED = {
    "empty": b"", "no json": b"{\"cells\": [", "a list": b"{}", "not a notebook": b"{\"a\": 1}",
    "version 3": json.dumps({"nbformat": 3, "worksheets": []}),
    "no cells": json.dumps({"nbformat": 4}), "cells an object": json.dumps({"nbformat": 4, "cells": {}}),
    "cell a number": with_cells(7), "no kind": with_cells({"source": "1"}),
    "a new kind": with_cells(cell(cell_type="prompt")), "source a number": with_cells(cell(source=1)),
    "source holds one": with_cells(cell(source=["a", 1])), "nul": with_cells(cell(source="a\0")),
    "outputs an object": with_cells(cell(outputs={})), "an output a text": with_cells(cell(outputs=["x"])),
    "a new output": with_cells(cell(outputs=[{"output_type": "sound"}])),
    "a count of words": with_cells(cell(execution_count="four")),
    "a count of minus one": with_cells(cell(execution_count=-1)),
    "metadata a list": with_cells(cell(metadata=[])), "no code": with_cells(),
    "deep": "{" + "\"a\":[" * 5000, "script with nul": b"a = 1\0", "script in latin-1": b"a = '\xe4'",
    "cut utf-8": b"{\"nbformat\": 4, \"cells\": [\"\xc3",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_notebook_is_refused(server, what):
    before = server.json("/history?limit=1000")["histories"]
    r = server.post("/history/import", data=REFUSED[what])
    assert r.status_code == 400, r.text
    assert r.json()["reason"] == "invalid" and r.json()["message"]
    after = server.json("/history?limit=1000")["histories"]
    assert [h["id"] for h in after] == [h["id"] for h in before]


def test_what_is_too_much_is_refused(server):
    r = server.post("/history/import", data=with_cells(*[cell()] * 10001))
    assert r.status_code == 413 and "10000 cells" in r.json()["message"], r.text
    r = server.post("/history/import", data=b" " * ((64 << 20) + 1))
    assert r.status_code == 413, r.text
    assert server.post("/history/import?format=docx", data=b"1").status_code == 400
    assert server.post(f"/history/import?name={'n' * 300}", data=b"1").status_code == 400
    assert server.post("/history/import", data=b"1", token=READER).status_code == 403


def test_a_large_notebook_goes_both_ways(server):
    """More than an answer holds at once, and more than other bodies may."""
    text = "x" * 999 + "\n"
    body = with_cells(*(cell(id=f"c{i}", outputs=[
        {"output_type": "stream", "name": "stdout", "text": text * 5000}]) for i in range(8)))
    assert len(body) > 32 << 20
    history = imported(server, body, timeout=within(60))
    got = notebook(server, history["id"])
    assert [len(c.outputs[0].text) for c in got.cells] == [5000 * 1000] * 8


def test_what_is_imported_is_its_owner_s(server):
    history = imported(server, json.dumps(NOTEBOOK), token=BOB)
    assert server.get(f"/history/{history['id']}", token=ALICE).status_code == 404
    assert server.get(f"/history/{history['id']}/export", token=ALICE).status_code == 404
    assert server.get(f"/history/{history['id']}/export", token=BOB).status_code == 200


def test_commands_export_and_import(server, told, tmp_path):
    kernel_id, _ = told
    coppice(server, "export", kernel_id, "-o", tmp_path / "walk.ipynb", "--renumber")
    assert (tmp_path / "walk.ipynb").read_text() == export(
        server, kernel_id, "?counts=renumbered").text
    script = coppice(server, "export", kernel_id, "--format", "py").stdout
    (tmp_path / "walk.py").write_text(script)
    for name in ("walk.ipynb", "walk.py"):
        history = json.loads(coppice(server, "import", tmp_path / name, "--json").stdout)
        assert history["name"] == "walk"
        coppice(server, "export", history["id"], "-o", tmp_path / f"again-{name}")
        assert (tmp_path / f"again-{name}").read_text() == (tmp_path / name).read_text()
    (tmp_path / "bad.ipynb").write_text("{}")
    done = coppice(server, "import", tmp_path / "bad.ipynb", check=False)
    assert done.returncode == 1 and "no nbformat" in done.stderr
    assert coppice(server, "import", tmp_path / "none.py", check=False).returncode == 1
    assert coppice(server, "import", check=False).returncode == 2


# ---- show ----

STEERING = """
from IPython.display import HTML, display
print("\\x1b[2J\\x1b]0;title\\x07red \\x1b[31mred\\x1b[0m \x9b31m \u202eltr \\x00 end")
print("old\\rnew")
display(HTML("<b>fett</b>"))
1/0 # \x1b[31m
"""


def test_show_tells_of_a_node_and_steers_nothing(server, kernel):
    with server.open(kernel) as c:
        c.info()
        c.run(STEERING)
    history = recorded(server, kernel, 1)
    shown = coppice(server, "show", "--history", kernel).stdout
    node = executions(history)[0]
    assert shown.startswith(f"node {node['id']} (main)\nerror, In[1]: ZeroDivisionError: division")
    for line in ("--- code", "--- stdout", "red red ?31m ?ltr \ufffd end", "new", "--- display",
                 "[text/html, 11 bytes]", "--- error"):
        assert f"\n{line}\n" in shown, shown
    assert "old" not in shown.split("--- stdout")[1].split("--- error")[0]
    assert not set(shown) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x202e]))
    assert json.loads(coppice(server, "show", node["id"][:10], "--json").stdout)["id"] == node["id"]
    assert coppice(server, "show", "zzz", "--history", kernel, check=False).returncode == 1


# ---- push ----

def bare(path):
    git("init", "-q", "--bare", path)
    return path


def state_ref(server, history):
    """As if something were known of it that is ours alone: it stays here."""
    repository = server.data_dir / "history" / f"{history}.git"
    head = git("rev-parse", "main", cwd=repository).stdout.strip()
    for name in ("refs/coppice/state", "refs/notes/coppice"):
        git("update-ref", name, head, cwd=repository)


def check_pushed(repository, history):
    names = git("for-each-ref", "--format=%(refname)", cwd=repository).stdout.split()
    assert names == ["refs/heads/main"]
    assert git("rev-parse", "main", cwd=repository).stdout.strip() == executions(history)[-1]["id"]
    git("fsck", "--strict", cwd=repository)


@pytest.mark.parametrize("how", ["file", "folder", "http"])
def test_push_gives_the_branches_away(server, told, tmp_path, how):
    kernel_id, history = told
    repository = bare(tmp_path / "away.git")
    state_ref(server, kernel_id)
    remote = GitServer(tmp_path)
    try:
        url = {"file": f"file://{repository}", "folder": repository, "http": f"{remote.url}/away.git"}[how]
        git("config", "http.receivepack", "true", cwd=repository)
        coppice(server, "push", kernel_id, url)
        coppice(server, "push", kernel_id, url)
    finally:
        remote.close()
    check_pushed(repository, history)
    assert not any(ALICE in json.dumps(head) for head in remote.heads), "the gateway's token got out"


def test_push_from_beside_the_folder_and_over_what_is_there(server, told, tmp_path):
    kernel_id, history = told
    bare(tmp_path / "away.git")
    coppice(server, "push", kernel_id, "./away.git", cwd=tmp_path)
    check_pushed(tmp_path / "away.git", history)
    other = imported(server, json.dumps(NOTEBOOK))["id"]
    done = coppice(server, "push", other, tmp_path / "away.git", check=False)
    assert done.returncode == 1 and "git push failed" in done.stderr
    check_pushed(tmp_path / "away.git", history)


def test_push_runs_nobody_s_program(server, told, tmp_path):
    kernel_id, _ = told
    mark = tmp_path / "ran"
    for url in (f"--upload-pack=touch {mark}", f"--receive-pack=touch${{IFS}}{mark}", f"ext::touch {mark}",
                f"ext::sh -c touch% {mark}", f"ssh://-oProxyCommand=touch${{IFS}}{mark}/x",
                f"-oProxyCommand=touch${{IFS}}{mark}:x", "fd::3", "ftp://127.0.0.1/x", "", "x\ny"):
        done = coppice(server, "push", kernel_id, url, check=False)
        assert done.returncode in (1, 2), url
        done = coppice(server, "push", "--history", kernel_id, kernel_id, url, check=False)
        assert done.returncode in (1, 2), url
    assert not mark.exists()
    done = coppice(server, "push", kernel_id, f"file://{tmp_path}/none.git", check=False)
    assert done.returncode == 1
    assert not list(tmp_path.parent.glob("coppice-push-*"))


def test_push_of_what_is_not_ours(server, told, tmp_path):
    kernel_id, _ = told
    bare(tmp_path / "away.git")
    done = coppice(server, "push", kernel_id, tmp_path / "away.git", "--token", BOB, check=False)
    assert done.returncode == 1
    assert git("for-each-ref", cwd=tmp_path / "away.git").stdout == ""


# ---- diff ----

def counted_not(nb):
    """What a difference does not tell."""
    nb = copy.deepcopy(nb)
    for c in nb.cells:
        c.pop("execution_count", None)
        for output in c.get("outputs", ()):
            output.pop("execution_count", None)
    return nb


def check_difference(server, history, a, b):
    """The answer, of which nbdime makes b out of a."""
    diff = server.json(f"/history/{history}/diff?from={a}&to={b}")
    got, end = (notebook(server, history, f"?node={n}") for n in (a, b))
    for part in ("outputs", "code"):
        operations = to_diffentry_dicts(diff[part])
        validate_diff(operations, deep=True)
        got = patch_notebook(got, operations)
    assert counted_not(got) == counted_not(end)
    return diff


def two_lines(server, kernel):
    """main and main.2: cells with ids and without, the same and changed."""
    bigger = PICTURE.replace("8000", "9000")
    lines = [
        [("a", "x = 1\nfor i in range(5):\n    print(i)"), ("b", "x"), (None, "'gone'"), ("p", PICTURE),
         ("c", "1/0"), (None, "'same'")],
        [("a", "x = 1\nfor i in range(4):\n    print('\\r', i)\nprint(x)"), (None, "'new'"), ("b", "x"),
         ("p", bigger), ("c", "int('a')"), (None, "'same'"), ("d", "'\u2028'\n\f\n'end'")],
    ]
    run_lines(server, kernel, lines)


def run_lines(server, kernel, lines):
    """Each a list of (cell id or None, code), in a process of its own."""
    for n, cells in enumerate(lines):
        if n:
            assert server.post(f"/api/kernels/{kernel}/restart").status_code == 200
        with server.open(kernel) as c:
            c.info()
            for cell_id, code in cells:
                run = c.send("shell", "execute_request", {"code": code},
                             metadata={"cellId": cell_id} if cell_id else {})
                c.collect(run)
        recorded(server, kernel, sum(map(len, lines[:n + 1])))


def test_nbdime_makes_one_node_of_another(server, kernel):
    two_lines(server, kernel)
    diff = check_difference(server, kernel, "main", "main.2")
    check_difference(server, kernel, "main.2", "main")
    same = check_difference(server, kernel, "main", "main")
    assert same["code"] == same["outputs"] == same["files"] == []
    assert same["variables"]["added"] == same["variables"]["removed"] == same["variables"]["changed"] == []
    (cells,) = diff["code"]
    by_key = [(op["op"], op["key"]) for op in cells["diff"]]
    assert ("patch", 0) in by_key and ("patch", 1) not in by_key
    assert not any(op == "removerange" and key == 5 for op, key in by_key), "matched by content"
    (outputs,) = diff["outputs"]
    picture = next(op for op in outputs["diff"] if op["key"] == 3)
    assert '"op": "replace", "key": "image/png"' in json.dumps(picture)
    shown = coppice(server, "diff", "main", "main.2", "--history", kernel).stdout
    assert "*** In[1]\n  x = 1\n- for i in range(5):\n" in shown and "+ print(x)\n" in shown
    assert "[image/png]" not in shown and "! image/png: replace\n" in shown
    assert "+++ In[2]\n+ 'new'\n" in shown and "--- In[3]\n- 'gone'\n" in shown
    assert coppice(server, "diff", "main", "main", "--history", kernel).stdout == "no difference\n"


def test_any_line_becomes_any_other(server, kernel):
    """Cells from a small stock in any order, so that much is the same and little is in its place."""
    dice = random.Random(7)
    stock = ["'a'", "'b'\n'b'", "print('c')\nprint('d')", "print('c')\n1/0", "print('\\x0c\\x1d\\x85')",
             "from IPython.display import display\ndisplay({'text/html': '<b>\\n</b>', 'a/b+json': [1]}, raw=True)", ""]
    lines = [[(dice.choice([None, "x", "y", "z"]), dice.choice(stock) + dice.choice(["", "\n# more"]))
              for _ in range(dice.randint(4, 9))] for _ in range(4)]
    run_lines(server, kernel, lines)
    names = ["main", "main.2", "main.3", "main.4"]
    for a, b in itertools.permutations(names, 2):
        check_difference(server, kernel, a, b)


def test_differences_of_imports(server):
    """Text, metadata and attachments are in it too."""
    history = imported(server, json.dumps(NOTEBOOK))
    nodes = ("HEAD~2", "HEAD~1", "HEAD")
    for a, b in itertools.product(nodes, nodes):
        check_difference(server, history["id"], a, b)


def test_a_difference_needs_two_nodes(server, told):
    kernel_id, _ = told
    assert server.get(f"/history/{kernel_id}/diff").status_code == 400
    assert server.get(f"/history/{kernel_id}/diff?from=HEAD").status_code == 400
    assert server.get(f"/history/{kernel_id}/diff?from=HEAD&to=nobody").status_code == 404
