"""%coppice: what is asked, what is drawn, and what is said about wrong words."""

import json

import pytest

pytest.importorskip("IPython")
from IPython.core.error import UsageError

from coppice_kernel import magics

NODE = {
    "id": "a" * 40, "kind": "execution", "parent": "b" * 40, "branches": ["main"],
    "execution_count": 4, "status": "error", "summary": "1/0 # <b>", "started": "2026-01-02T03:04:05.6Z",
    "duration_ms": 1.5, "code": "1/0 # <b>", "variables_complete": True,
    "outputs": [{"output_type": "stream", "name": "stdout", "text": ["a\n", "<i>\n"]},
                {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "x"},
                {"output_type": "display_data", "data": {"image/png": "AAAA"}}],
    "variables": [{"name": "t", "type": "DataFrame", "shape": [3, 2], "bytes": 48},
                  {"name": "o", "type": "Odd", "shape": None, "bytes": None}],
}
ROOT = {"id": "b" * 40, "kind": "root", "parent": None, "branches": [], "execution_count": None,
        "status": "ok", "summary": "", "started": None, "duration_ms": 0, "code": "", "outputs": [],
        "variables": [], "variables_complete": True}
LOG = {"name": "walk", "nodes": [NODE, ROOT], "next": None}
WAY = {"node": {"id": "c" * 40, "execution_count": 4}}
BEGUN = {"name": "other", "node": "c" * 40, "kernel": {"id": "k2"}, "restored_by": "parked",
         "report": {"fidelity": "partial", "notes": ["a note"], "lost": [],
                    "approximate": [{"name": "p", "kind": "path", "reason": "names another"}]}}
STATUS = {"id": "k", "history_id": None, "history": "walk", "branch": None, "node": None,
          "state_version": 3.0, "unrecorded": 1}

FORGOTTEN = {"history": "h", "node": "c" * 40, "same_code": ["d" * 40], "shown_in": ["9" * 40],
             "rewritten": [{"old": "a" * 40, "new": "c" * 40}, {"old": "e" * 40, "new": "f" * 40}]}


@pytest.fixture
def asked(monkeypatch):
    """(magic, what was asked, what was drawn); answers are the ones above."""
    questions, drawn = [], []
    answers = {"log": LOG, "show": NODE, "status": STATUS, "use": {}, "forget": FORGOTTEN,
               "checkout": WAY, "undo": WAY, "branch": BEGUN, "release": {"released": 3}}

    def ask(what, about, _timeout_s):
        questions.append((what, about))
        return "ok", json.dumps(answers[what])

    monkeypatch.setattr(magics, "publish_display_data", drawn.append)
    return magics.Magics(ask).coppice, questions, drawn


def test_log(asked):
    run, questions, drawn = asked
    run("log")
    assert questions == [("log", "")]
    assert drawn[0]["text/plain"] == (
        "History walk\naaaaaaaa    [4] (main) error: 1/0 # <b>\nbbbbbbbb  begin")
    assert "1/0 # &lt;b&gt;" in drawn[0]["text/html"] and "<b>walk</b>" in drawn[0]["text/html"]


def test_a_log_says_what_can_come_back():
    kept = {**NODE, "fidelity": "partial", "restorable_by": ["parked"]}
    assert magics.log_text({**LOG, "nodes": [kept, NODE]}).split("\n")[1:] == [
        "aaaaaaaa    [4] (main) error: 1/0 # <b>  [comes back: partial]",
        "aaaaaaaa    [4] (main) error: 1/0 # <b>"]
    assert ">partial</td>" in magics.log_html({**LOG, "nodes": [kept]})


@pytest.mark.parametrize(("said", "about"), [("4", "In[4]"), ("HEAD~2", "HEAD~2"), ("abcd12", "abcd12")])
def test_show(asked, said, about):
    run, questions, drawn = asked
    run(f"show {said}")
    assert questions == [("show", about)]
    text = drawn[0]["text/plain"]
    for piece in ("    1/0 # <b>", "a\n<i>\nZeroDivisionError: x\n<image/png>",
                  "t: DataFrame 3 x 2, 48 bytes\no: Odd"):
        assert piece in text
    assert "<i>" not in drawn[0]["text/html"] and "&lt;i&gt;" in drawn[0]["text/html"]


@pytest.mark.parametrize(("change", "sentence"), [
    ({"variables": None}, "another cell followed at once"),
    ({"variables_complete": False}, "Not all variables"),
    ({"variables": []}, "no variables"),
    ({"outputs": None}, "too large"),
    ({"outputs": [{"output_type": "stream", "text": "x\n" * 100}]}, "... 60 more lines"),
])
def test_what_is_left_out_is_said(change, sentence):
    assert sentence in magics.show_text({**NODE, **change})
    assert sentence in magics.show_html({**NODE, **change})


def test_the_root_can_be_shown():
    assert "parent   none" in magics.show_text(ROOT) and magics.show_html(ROOT)


def test_status_and_use(asked, capsys):
    run, questions, drawn = asked
    run("status")
    run("use 'a walk'")
    assert questions == [("status", ""), ("use", "a walk")]
    assert "walk (new)" in drawn[0]["text/plain"] and "not recorded yet" in drawn[0]["text/html"]
    assert "'a walk'" in capsys.readouterr().out


@pytest.mark.parametrize(("said", "about"), [("4", "In[4]"), ("abcd12", "abcd12")])
def test_forget(asked, said, about):
    run, questions, drawn = asked
    run(f"forget {said}")
    assert questions == [("forget", about)]
    text = drawn[0]["text/plain"]
    for piece in ("the node is cccccccc now", "new ids: 1;", "stands in dddddddd too", "drawn it in 99999999:",
                  "change it",
                  "aaaaaaaa -> cccccccc\neeeeeeee -> ffffffff"):
        assert piece in text
    assert ">eeeeeeee</td><td" in drawn[0]["text/html"] and ">ffffffff</td></tr>" in drawn[0]["text/html"]


def test_forget_of_many_and_of_the_last():
    many = {**FORGOTTEN, "rewritten": None, "same_code": [], "shown_in": []}
    assert "All later nodes have new ids" in magics.forget_text(many)
    assert "<table" not in magics.forget_html(many) and "same code" not in magics.forget_text(many)
    last = {**FORGOTTEN, "rewritten": FORGOTTEN["rewritten"][:1]}
    assert "new ids" not in magics.forget_text(last)


def test_alone_it_tells_what_there_is(asked, capsys):
    asked[0]("")
    assert "%coppice show N" in capsys.readouterr().out and asked[1] == []


@pytest.mark.parametrize(("line", "question"), [("checkout 4", ("checkout", "In[4]")), ("undo", ("undo", "")),
                                                ("checkout main.2", ("checkout", "main.2"))])
def test_going_back_is_filed(asked, capsys, line, question):
    asked[0](line)
    assert asked[1] == [question] and asked[2] == []
    said = capsys.readouterr().out
    assert "Once this cell has ended" in said and "In[4], node cccccccc" in said


def test_release(asked, capsys):
    asked[0]("release")
    assert asked[1] == [("release", "")] and "Released: 3 parked states" in capsys.readouterr().out


@pytest.mark.parametrize(("line", "about"), [("branch", ""), ("branch 4", "In[4]"), ("branch 4 other", "In[4] other"),
                                              ("branch main.2 other", "main.2 other")])
def test_a_branch_begins(asked, capsys, line, about):
    asked[0](line)
    assert asked[1] == [("branch", about)]
    assert capsys.readouterr().out == (
        "Branch other begins at node cccccccc, as kernel k2. This kernel goes on as it is.\n"
        "  p (path): names another\n  a note\n")


def test_a_log_says_where_branches_stand():
    main = {"name": "main", "node": "a" * 40, "kernel_id": "k1", "fidelity": "exact", "restorable_by": ["parked"]}
    other = {"name": "other", "node": "b" * 40, "kernel_id": None, "fidelity": "code-only", "restorable_by": []}
    text = magics.log_text({**LOG, "branches": [main, other]})
    assert text.split("\n")[-2:] == ["Branch main is at aaaaaaaa, kernel k1  [comes back: exact]",
                                     "Branch other is at bbbbbbbb"]
    assert "Branch" not in magics.log_text({**LOG, "branches": [main]})
    assert "other" in magics.log_html({**LOG, "branches": [main, other]})


@pytest.mark.parametrize("line", ["shwo 4", "show", "show 1 2", "use", "log 7", "status now", "show 'a",
                                  "checkout", "checkout 1 2", "undo 4", "branch 1 2 3", "branch 'a b'", "release 4",
                                  "forget", "forget 1 2", "answer 1",
                                  "__init__ 1"])
def test_wrong_words(asked, line):
    with pytest.raises(UsageError, match="%coppice"):
        asked[0](line)
    assert asked[1] == [] and asked[2] == []


def test_what_the_gateway_refuses():
    run = magics.Magics(lambda *_: ("not_found", "no node is called 'x'")).coppice
    with pytest.raises(UsageError, match="%coppice show: no node is called 'x'"):
        run("show x")
