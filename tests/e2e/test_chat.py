"""A conversation: asked in words, code written by a model (its words are the test's, its protocol the
real one), run in a container, repaired, explained; each try a node of the same history."""

import json

import pytest
import requests

from chat import (code, datas, events, names, new_conversation, open_events, read_events, records,
                  run)
from gateway import ALICE, BOB, wait, within
from model_server import Answer, ModelServer

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def model():
    model = ModelServer()
    yield model
    model.close()


@pytest.fixture(autouse=True)
def fresh(model):
    model.answers, model.asked, model.keys = [], [], []


@pytest.fixture(scope="module")
def server(container_engine, model):
    from conftest import CONFIG
    from gateway import Server
    with Server("chat", "--engine", "docker", "--pool-floor", "0", "--model-url", model.url,
                "--model-name", "scripted", config=CONFIG,
                env={"COPPICE_MODEL_KEY": "key-of-the-model"}) as server:
        yield server
        assert "key-of-the-model" not in server.log()


@pytest.fixture
def conversation(server):
    c = new_conversation(server)
    yield c
    assert server.delete(f"/chat/conversations/{c}").status_code == 204


FIRST = """import pandas as pd
frame = pd.DataFrame({'stadt': ['Köln', '北京'], 'wert': [1, 2]})
print(frame['value'].sum())"""
SECOND = """import pandas as pd
import matplotlib.pyplot as plt
frame = pd.DataFrame({'stadt': ['Köln', '北京'], 'wert': [1, 2]})
print('sum', frame['wert'].sum())
plt.plot(frame['wert'])
plt.show()
frame"""


def test_the_scene(server, model, conversation):
    model.will_say(code(FIRST), code(SECOND), "Together they are three.")
    found = events(server, conversation, "Add up the values, and draw them.")
    assert names(found) == ["message.start", "text.delta", "code", "execution.start", "output",
                            "execution.end", "repair", "text.delta", "code", "notice",
                            "execution.start", "output", "execution.end", "text.delta", "message.end"]
    failed, good = records(server, found)
    assert failed["status"] == "error" and failed["error"]["ename"] == "KeyError"
    assert good["status"] == "ok" and good["repair_of"] == failed["id"] and good["attempt"] == 2
    assert good["stdout"] == "sum 3\n"
    kinds = {k for o in good["outputs"] for k in o.get("data", {})}
    assert {"image/png", "text/html", "text/plain"} <= kinds
    # The model was shown what failed, without colours.
    shown = model.asked[1]["messages"][-1]["content"]
    assert "KeyError" in shown and FIRST in shown and "\x1b" not in shown
    assert model.keys == ["Bearer key-of-the-model"] * 3
    history = wait(lambda: server.json(f"/history/{good['kernel_id']}"),
                   lambda h: sum(n["kind"] == "execution" for n in h["nodes"]) == 2, within(20))
    assert [n["status"] for n in history["nodes"][:2]] == ["ok", "error"]


def test_state_is_kept_and_no_code_runs_nothing(server, model, conversation):
    model.will_say(code("x = 41"), "Set.")
    events(server, conversation, "Set x to 41.")
    model.will_say(code("x + 1"), "It is 42.")
    found = events(server, conversation, "One more?")
    (record,) = records(server, found)
    assert record["outputs"][0]["data"]["text/plain"] == "42"
    model.will_say("You are welcome.")
    found = events(server, conversation, "Thanks!")
    assert names(found) == ["message.start", "text.delta", "message.end"]
    said = server.json(f"/chat/conversations/{conversation}")["messages"]
    assert [m["role"] for m in said] == ["user", "assistant"] * 3
    # Earlier turns are part of what the model is asked.
    assert "Set x to 41." in json.dumps(model.asked[-1]["messages"])


def with_nodes(server, ids):
    """Records once history has them."""
    return [wait(lambda r=r: server.json(f"/chat/records/{r}"), lambda x: x["node"], within(20))
            for r in ids]


def test_each_try_names_its_node(server, model, conversation, tmp_path):
    from test_history import clone_url, git
    model.will_say(Answer(code("x = “a”\n1/0"), usage=(11, 7)),
                   Answer(code("x = 'b'\nprint(x)"), usage=(30, 5)), Answer("So.", usage=(50, 1)))
    found = events(server, conversation, "Divide.")
    failed, good = with_nodes(server, found[-1][1]["records"])
    # As the model wrote it, and as it was run.
    assert failed["code"] == "x = “a”\n1/0\n" and failed["prepared_code"] == 'x = "a"\n1/0\n'
    assert [c["rule"] for c in failed["changes"]] == ["quotes"]
    # What it cost.
    assert failed["usage"] == {"prompt_tokens": 11, "completion_tokens": 7}
    assert good["usage"] == {"prompt_tokens": 30, "completion_tokens": 5}
    assert found[-1][1]["usage"] == {"prompt_tokens": 91, "completion_tokens": 13}
    assert good["bytes"] == {"stdout": 2, "stderr": 0, "outputs": 0}
    assert set(good["timings"]) == {"model_ms", "model_first_ms", "place_ms", "waited_ms", "ran_ms"}
    assert good["peak_memory_bytes"] > 20 << 20 and failed["peak_memory_bytes"] > 20 << 20
    assert good["duration_ms"] == good["timings"]["ran_ms"]
    # The nodes are those of the runs, and the commit of the repair names the failure.
    url = f"/history/{good['kernel_id']}"
    for record in failed, good:
        node = server.json(f"{url}/nodes/{record['node']}")
        assert node["msg_id"] == record["msg_id"] and node["code"] == record["prepared_code"]
    git("clone", "-q", clone_url(server, good["kernel_id"]), tmp_path / "story")
    trailers = "--format=%(trailers:key=Coppice-Retry-Of,valueonly)"
    retry = [git("log", "-1", trailers, r["node"], cwd=tmp_path / "story").stdout.strip()
             for r in (failed, good)]
    assert retry == ["", failed["node"]]
    assert server.json(f"/chat/conversations/{conversation}")["node"] == good["node"]


def test_three_repairs_and_no_more(server, model, conversation):
    model.will_say(*(code(f"raise ValueError({i})") for i in range(9)))
    found = events(server, conversation, "Try.")
    assert [n for n, _ in found].count("repair") == 3
    assert [r["status"] for r in records(server, found)] == ["error"] * 4
    assert len(model.asked) == 4


@pytest.mark.parametrize("again", ["code", "error"])
def test_the_same_again_stops_it(server, model, conversation, again):
    second = "1/0" if again == "code" else "2/0"
    model.will_say(code("1/0"), code(second), code("3/0"))
    found = events(server, conversation, "Divide.")
    assert len(records(server, found)) == (1 if again == "code" else 2)
    assert len(model.asked) == 2
    assert found[-1][1]["status"] == "not_fixed"


def test_what_failed_two_tries_ago_is_not_run_again(server, model, conversation):
    """Case 47: in turn, each with an error of its own."""
    model.will_say(code("1/0"), code("undefined"), code("1/0"), code("7"))
    found = events(server, conversation, "Divide.")
    assert [r["error"]["ename"] for r in records(server, found)] == ["ZeroDivisionError",
                                                                   "NameError"]
    assert len(model.asked) == 3 and datas(found, "notice")


def test_good_at_once_asks_no_more(server, model, conversation):
    model.will_say(code("6 * 7"), "42.")
    found = events(server, conversation, "6 * 7?")
    assert found[-1][1]["status"] == "ok" and len(model.asked) == 2


def test_a_repair_without_code_runs_nothing(server, model, conversation):
    model.will_say(code("1/0"), "That cannot be divided.")
    found = events(server, conversation, "Divide.")
    assert len(records(server, found)) == 1 and len(model.asked) == 2
    assert found[-1][1]["status"] == "not_fixed"


def test_case_46_no_colour_codes_in_the_prompt(server, model, conversation):
    shown = "print('\\033[31mred\\033[0m \\033]8;;u\\007link\\033]8;;\\007 \\x9b1mC1')"
    model.will_say(code(f"{shown}\ndef f(d): return 1 / d\nf(0)"), code(shown), "Seen.")
    found = events(server, conversation, "Colours.")
    for question in (json.dumps(m, ensure_ascii=False) for a in model.asked for m in a["messages"]):
        for control in ("\\u001b", "\\u0007", "\\u009b", "\x1b", "\x07", "\x9b"):
            if "033" not in question:  # the code says \\033 in so many letters
                assert control not in question
    repair, explain = (a["messages"][-1]["content"] for a in model.asked[1:])
    assert not {"\x1b", "\x07", "\x9b"} & set(repair + explain)
    for text in ("ZeroDivisionError", "return 1 / d", "red link C1", "2"):
        assert text in repair
    assert "red link C1" in explain
    # Who shows it on a terminal gets it as the kernel sent it.
    assert "\x1b[31mred" in records(server, found)[1]["stdout"]


def test_what_only_the_reply_knows_is_mended_too(server, model, conversation):
    """Case 17 in a conversation."""
    model.will_say(code("%no_such_magic 1"), code("print('ok')"), "Done.")
    found = events(server, conversation, "Magic.")
    failed, good = records(server, found)
    assert failed["error"]["ename"] == "UsageError" and good["status"] == "ok"
    assert "no_such_magic" in model.asked[1]["messages"][-1]["content"]


def test_who_leaves_is_not_mended(server, model, conversation):
    """Case 20: an early end is no failure, and nothing is mended."""
    model.will_say(code("print('some')\nraise SystemExit(0)"), "It left.")
    found = events(server, conversation, "Leave.")
    assert "repair" not in names(found) and len(model.asked) == 2
    (record,) = records(server, found)
    assert record["status"] == "ok" and "error" not in record and record["stdout"] == "some\n"
    assert any("early" in n for n in record["notes"])
    assert found[-1][1]["status"] == "ok"
    model.will_say(code("raise SystemExit('halt')"), "It cannot go on.")
    found = events(server, conversation, "Leave for a reason.")
    (record,) = records(server, found)
    assert record["status"] == "error" and record["error"]["evalue"] == "halt"


def test_case_34_nobody_to_ask(server, model, conversation):
    """In a conversation: an error at once, which the model is told; nothing waits."""
    for question in ('n = input("who? ")', "import getpass; getpass.getpass()"):
        model.asked.clear()
        model.will_say(code(question), code('print("on")'), "Without asking.")
        found = events(server, conversation, "Ask me.")
        failed, good = records(server, found)
        assert failed["status"] == "error" and failed["timings"]["ran_ms"] < within(2000)
        assert failed["error"]["ename"] == "StdinNotImplementedError"
        told = model.asked[1]["messages"][-1]["content"]
        assert "StdinNotImplementedError" in told and "input" in told
        assert good["stdout"] == "on\n"
    with server.open(good["kernel_id"]) as page:
        page.info()
        assert run(server, conversation, 'input("who? ")')["status"] == "error"
        page.until(lambda m: m.type == "error")
        assert not [m for m in page.messages if m.type == "input_request"]


def test_cut_off_code_is_not_run(server, model, conversation):
    """Case 40c: the token limit hit amid the code."""
    model.will_say(Answer("```python\nfor i in range(3):\n    print(i", finish="length"))
    found = events(server, conversation, "Count.")
    assert names(found) == ["message.start", "text.delta", "notice", "message.end"]
    assert found[-1][1]["records"] == []


@pytest.mark.parametrize("fault,reason", [
    ([Answer(status=500)] * 3, "unavailable"), ([Answer(status=429)] * 3, "unavailable"),
    ([Answer(status=408)], "unavailable"), ([Answer(status=409)], "unavailable"),
    ([Answer("", cut="reset")] * 3, "unavailable"), ([Answer("Half", cut=True)], "protocol"),
    ([Answer("Half", error="overloaded")], "unavailable")],
    ids=["500", "429", "408", "409", "reset", "cut", "error"])
@pytest.mark.parametrize("first", ["ok", "error"])
def test_a_failing_model_loses_no_run(server, model, conversation, fault, reason, first):
    """What has run is never answered with a status that clients ask again for by themselves (408,
    409, 429, 5xx): a client that does so ran the code once."""
    text = "runs = globals().get('runs', 0) + 1\nprint('ran')" + ("\n1/0" if first == "error" else "")
    model.will_say(code(text), *fault)
    with requests.Session() as session:
        again = requests.adapters.Retry(
            total=2, status_forcelist=[408, 409, 429, 500, 502, 503, 504],
            allowed_methods=None, backoff_factor=0)
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=again))
        answer = session.post(f"{server.url}/chat/conversations/{conversation}/messages",
                              json={"content": "Keep five."}, timeout=within(60),
                              headers={"Authorization": f"token {ALICE}"})
    assert answer.status_code == 200
    message = answer.json()
    assert message["status"] == "failed" and message["error"]["reason"] == reason
    (record,) = message["records"]
    assert server.json(f"/chat/records/{record}")["stdout"] == "ran\n"
    assert run(server, conversation, "runs")["outputs"][0]["data"]["text/plain"] == "1"


def test_a_model_that_calls_a_tool(server, model, conversation):
    model.will_say(Answer(tool=("python", json.dumps({"code": "print('by tool')"}))), "Done.")
    found = events(server, conversation, "Call it.")
    assert records(server, found)[0]["stdout"] == "by tool\n"


def test_without_events_the_message_is_the_answer(server, model, conversation):
    model.will_say(code("6 * 7"), "42 it is.")
    answer = server.post(f"/chat/conversations/{conversation}/messages",
                         json={"content": "6 times 7?"}, timeout=within(60))
    assert answer.status_code == 200
    message = answer.json()
    assert message["role"] == "assistant" and message["content"].endswith("42 it is.")
    assert len(message["records"]) == 1


def test_code_without_a_model(server, conversation):
    answer = server.post(f"/chat/conversations/{conversation}/executions",
                         json={"code": "print('direct')\n1 + 1"}, timeout=within(60))
    record = answer.json()
    assert record["status"] == "ok" and record["stdout"] == "direct\n"
    found = events(server, conversation, "1/0", "executions", "code")
    assert "repair" not in names(found) and found[-2][1]["status"] == "error"


def test_a_refusal_is_not_to_be_repeated(process_server):
    """Libraries repeat what comes as 503 by themselves, and here that is in vain."""
    server = process_server("no-model")
    url = f"/chat/conversations/{new_conversation(server)}"
    refused = server.post(f"{url}/messages", json={"content": "Hello?"})
    assert refused.status_code == 503 and "no model is configured" in refused.json()["message"]
    assert refused.headers["X-Should-Retry"] == "false"
    for path in ("messages", "executions"):
        refused = server.post(f"{url}/{path}", json={})
        assert (refused.status_code, refused.headers["X-Should-Retry"]) == (400, "false")


def test_a_second_message_meanwhile_is_refused(server, model, conversation):
    model.gate.clear()
    model.will_say("Late.")
    url = f"/chat/conversations/{conversation}"
    with requests.post(f"{server.url}{url}/messages", json={"content": "First"}, stream=True,
                       timeout=within(60), headers={"Authorization": f"token {ALICE}",
                                                    "Accept": "text/event-stream"}) as first:
        assert first.status_code == 200
        second = server.post(f"{url}/messages", json={"content": "Second"})
        assert (second.status_code, second.headers["X-Should-Retry"]) == (409, "false")
        model.gate.set()
        assert b"message.end" in b"".join(first.iter_content(None))


@pytest.mark.parametrize("when", ["it waits for its kernel", "it runs"])
def test_interrupt_ends_the_turn(server, model, conversation, when):
    model.will_say(code("import time\nprint('begun', flush=True)\ntime.sleep(600)"))
    url = f"/chat/conversations/{conversation}"
    with requests.post(f"{server.url}{url}/messages", json={"content": "Sleep"}, stream=True,
                       timeout=within(60), headers={"Authorization": f"token {ALICE}",
                                                    "Accept": "text/event-stream"}) as answer:
        seen = b""
        for piece in answer.iter_content(None):
            seen += piece
            sign = b'"code":' if when.startswith("it waits") else b'"stdout":"begun'
            if sign in seen and b"stopped" not in seen:
                assert server.post(f"{url}/interrupt").status_code == 204
                seen += b"stopped"
        assert b"KeyboardInterrupt" in seen and b"message.end" in seen and b"repair" not in seen


def test_a_broken_stream_is_resumed(server, model, conversation):
    model.will_say(code("print('eins')\nprint('zwei')"), "Done.")
    found = events(server, conversation, "Count.")
    with requests.get(f"{server.url}/chat/conversations/{conversation}/events",
                      headers={"Authorization": f"token {ALICE}", "Last-Event-ID": "3"},
                      timeout=within(30)) as answer:
        again = [line for line in answer.text.split("\n") if line.startswith("event: ")]
    assert [line[7:] for line in again] == [n for n, _ in found][3:]


def test_another_owner_sees_nothing(server, conversation):
    for path in ("", "/events", "/records"):
        assert server.get(f"/chat/conversations/{conversation}{path}", token=BOB).status_code == 404
    assert server.get("/chat/conversations", token=BOB).json()["conversations"] == []
    assert server.post(f"/chat/conversations/{conversation}/messages", token=BOB,
                       json={"content": "x"}).status_code == 404


def test_conversations_outlive_the_gateway(server, model, conversation):
    from test_survival import again, cut
    import signal
    model.will_say(code("kept = 7"), "Kept.")
    events(server, conversation, "Keep seven.")
    cut(server, signal.SIGKILL)
    again(server)
    said = server.json(f"/chat/conversations/{conversation}")
    assert [m["role"] for m in said["messages"]] == ["user", "assistant"]
    answer = server.post(f"/chat/conversations/{conversation}/executions",
                         json={"code": "kept"}, timeout=within(60)).json()
    assert answer["outputs"][0]["data"]["text/plain"] == "7"


def test_a_gateway_that_is_killed_amid_an_answer(server, model, conversation):
    """What was said and run stays, each run gets its node, and what broke off says so."""
    from test_survival import again, cut
    import signal
    model.will_say(code("print('first')\n1/0"), Answer("Never", stall="before"))
    with open_events(server, conversation, "Try.") as answer:
        for name, data in read_events(answer):
            if name == "repair":
                break
        cut(server, signal.SIGKILL)
    again(server)
    c = server.json(f"/chat/conversations/{conversation}")
    assert [m["role"] for m in c["messages"]] == ["user", "assistant"]
    assert c["messages"][1]["error"]["reason"] == "gone"
    (record,) = with_nodes(server, c["messages"][1]["records"])
    assert record["stdout"] == "first\n"
    model.will_say("Better now.")
    assert events(server, conversation, "And now?")[-1][1]["status"] == "ok"


def test_a_gateway_that_ends_amid_a_run(server, conversation):
    """In order, and the kernel stays: its end does not wait for a run that goes on."""
    from test_survival import again, cut
    import signal
    with open_events(server, conversation, "import time\nprint('on', flush=True)\ntime.sleep(600)",
                     "executions", "code") as answer:
        for name, data in read_events(answer):
            if "on" in data.get("stdout", ""):
                break
        cut(server, signal.SIGTERM)
    again(server)
    c = server.json(f"/chat/conversations/{conversation}")
    assert c["messages"][-1]["error"]["reason"] == "gone"
    server.wait_state(c["kernel_id"], "busy", within(30))


def test_a_record_that_cannot_be_kept_says_so(server, model, conversation):
    """As on a full disk: the result arrives, what is missing is said, and nobody runs it again."""
    blocked = server.data_dir / "chat" / conversation
    blocked.write_text("")  # a file where its records' folder would be
    model.will_say(code("print('seen')\n6 * 7"), "42.")
    found = events(server, conversation, "6 * 7?")
    assert [d["data"]["text/plain"] for d in datas(found, "output") if "data" in d] == ["42"]
    (end,) = datas(found, "execution.end")
    assert end["status"] == "ok" and end["not_recorded"]
    assert found[-1][1]["status"] == "ok" and found[-1][1]["records"] == [end["record"]]
    answer = server.get(f"/chat/records/{end['record']}")
    assert answer.status_code == 410 and end["not_recorded"] in answer.json()["message"]
    (row,) = server.json(f"/chat/conversations/{conversation}/records")["records"]
    assert row["not_recorded"] == end["not_recorded"]
    answer = server.post(f"/chat/conversations/{conversation}/executions", timeout=within(60),
                         json={"code": "1"})
    assert answer.status_code == 410 and answer.headers["X-Should-Retry"] == "false"
    blocked.unlink()
    assert run(server, conversation, "2")["outputs"][0]["data"]["text/plain"] == "2"


def test_a_conversation_that_cannot_be_kept_says_so(server, model, conversation):
    path = server.data_dir / "chat" / f"{conversation}.json"
    path.unlink()
    path.mkdir()  # what is written cannot take its place
    model.will_say("Yes.")
    found = events(server, conversation, "Are you there?")
    assert any("cannot be kept" in d["text"] for d in datas(found, "notice"))
    assert found[-1][1]["status"] == "ok" and found[-1][1]["not_recorded"]
    said = server.json(f"/chat/conversations/{conversation}")["messages"]
    assert said[-1]["not_recorded"] == found[-1][1]["not_recorded"]
    answer = server.http("PATCH", f"/chat/conversations/{conversation}", json={"title": "New"})
    assert answer.status_code == 500
    assert server.json(f"/chat/conversations/{conversation}")["title"] == "Test"
    path.rmdir()
    model.will_say("Still.")
    found = events(server, conversation, "And now?")
    assert "not_recorded" not in found[-1][1] and not datas(found, "notice")


def test_deletion_deletes(server, model):
    """Records, logs, kernel, history: no byte of it is left in the data folder, but in the index's
    write-ahead log, which is sqlite's to overwrite (docs/decisions/0010)."""
    secret = "geheim-7c1d9e"
    c = new_conversation(server, title=secret)
    model.will_say(code(f"x = '{secret}'\nprint(x * 3)\n1/0"), code(f"print('{secret}')"), secret)
    found = events(server, c, f"Say {secret}.")
    (first, _) = with_nodes(server, found[-1][1]["records"])
    kernel = first["kernel_id"]
    other = new_conversation(server)
    kept = run(server, other, "print('kept')")
    assert server.delete(f"/chat/conversations/{c}").status_code == 204
    for path in (f"/chat/conversations/{c}", f"/chat/records/{first['id']}",
                 f"/chat/records/{first['id']}/log", f"/api/kernels/{kernel}",
                 f"/history/{kernel}"):
        assert server.get(path).status_code == 404, path
    assert server.delete(f"/chat/conversations/{c}").status_code == 404
    assert kernel not in server.get("/history").text
    left = [p for p in server.data_dir.rglob("*") if c in p.name or kernel in p.name]
    assert left == []
    left = [p for p in server.data_dir.rglob("*")
            if p.is_file() and p.name != "index.sqlite-wal" and secret.encode() in p.read_bytes()]
    assert left == []
    # The others are as they were.
    assert run(server, other, "1")["kernel_id"] == kept["kernel_id"]
    assert server.json(f"/chat/records/{kept['id']}")["stdout"] == "kept\n"
    assert server.delete(f"/chat/conversations/{other}").status_code == 204


def test_deletion_amid_an_answer(server, model):
    c = new_conversation(server)
    model.will_say(code("import time\nprint('begun', flush=True)\ntime.sleep(600)"))
    with open_events(server, c, "Sleep.") as answer:
        for name, data in read_events(answer):
            if "begun" in data.get("stdout", ""):
                break
        assert server.delete(f"/chat/conversations/{c}").status_code == 204
    assert server.get(f"/chat/conversations/{c}").status_code == 404
    assert c not in server.get("/chat/conversations").text


def test_a_page_on_its_kernel_is_spared(server):
    """Deleted with the conversation is what is its own alone."""
    c = new_conversation(server)
    kernel = run(server, c, "mine = 1")["kernel_id"]
    session = server.post("/api/sessions", json={"path": "page.ipynb", "type": "notebook",
                                                 "kernel": {"id": kernel}}).json()
    assert server.delete(f"/chat/conversations/{c}").status_code == 204
    assert server.model(kernel)["execution_state"] == "idle"
    assert server.get(f"/history/{kernel}").status_code == 200
    assert server.delete(f"/api/sessions/{session['id']}").status_code == 204


def test_a_history_that_another_kernel_went_on_in_is_spared(server):
    """The conversation's own kernel is gone, and its history is that kernel's too."""
    c = new_conversation(server)
    kernel = run(server, c, "mine = 1")["kernel_id"]
    with server.kernel("python3", env={"KERNEL_COPPICE_HISTORY": kernel}) as other:
        with server.open(other) as page:
            page.info()
            assert page.run("theirs = 2").status == "ok"
        wait(lambda: server.model(other), lambda m: m["history_id"] == kernel, within(20))
        assert server.delete(f"/chat/conversations/{c}").status_code == 204
        assert server.get(f"/api/kernels/{kernel}").status_code == 404
        summaries = [n.get("summary") for n in server.json(f"/history/{kernel}")["nodes"]]
        assert {"mine = 1", "theirs = 2"} <= set(summaries)


def test_lists_are_paged(server):
    made = [new_conversation(server, title=f"n{i}") for i in range(5)]
    seen, cursor = [], ""
    while cursor is not None:
        page = server.json(f"/chat/conversations?limit=2&cursor={cursor}")
        assert 0 < len(page["conversations"]) <= 2
        seen += [c["id"] for c in page["conversations"]]
        cursor = page["next"]
    assert [c for c in seen if c in made] == made[::-1] and len(seen) == len(set(seen))
    ids = [run(server, made[0], f"print({i})")["id"] for i in range(5)]
    seen, cursor = [], ""
    while cursor is not None:
        page = server.json(f"/chat/conversations/{made[0]}/records?limit=2&cursor={cursor}")
        seen += [r["id"] for r in page["records"]]
        cursor = page["next"]
    assert seen == ids
    for bad in ("limit=0", "limit=x", "limit=1001", "cursor=nonsense"):
        assert server.get(f"/chat/conversations?{bad}").status_code == 400
        assert server.get(f"/chat/conversations/{made[0]}/records?{bad}").status_code == 400
    for c in made:
        assert server.delete(f"/chat/conversations/{c}").status_code == 204


def test_a_title_is_changed(server, conversation):
    url = f"/chat/conversations/{conversation}"
    assert server.http("PATCH", url, json={"title": "Größe 北京"}).json()["title"] == "Größe 北京"
    assert server.json(url)["title"] == "Größe 北京"
    for body in ({}, {"title": 3}, {"title": "x" * 201}, {"title": None}):
        assert server.http("PATCH", url, json=body).status_code == 400
    assert server.http("PATCH", url, json={"title": "x"}, token=BOB).status_code == 404
