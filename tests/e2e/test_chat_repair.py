"""A repair begins where the code that failed began; and time limits in a conversation."""

import pytest

from chat import code, events, names, new_conversation, records, run
from gateway import TOKENS, Server, wait, within
from model_server import Answer, ModelServer
from test_chat import with_nodes
from test_going_back import parked
from test_history import clone_url, git

pytestmark = pytest.mark.timeout(300)

STATE = """
def count():
    n = 0
    while True:
        yield n
        n += 1
items, numbers = [1], count()
next(numbers)
"""
FAILS = "items.append(2)\nnext(numbers)\nitems.append(undefined)"
LOOK = "print(items, next(numbers))"


@pytest.fixture(scope="module")
def model():
    model = ModelServer()
    yield model
    model.close()


@pytest.fixture(scope="module")
def server(container_engine, model):
    from conftest import CONFIG
    tokens = TOKENS.replace("tier = none", "tier = standard", 1)
    with Server("repair", "--engine", "docker", "--pool-floor", "0", "--model-url", model.url,
                "--model-name", "scripted", "--time-limit-standard", "10s", config=CONFIG,
                tokens=tokens) as server:
        yield server


@pytest.fixture
def conversation(server, model):
    model.answers, model.asked, model.keys = [], [], []
    c = new_conversation(server)
    yield c
    assert server.delete(f"/chat/conversations/{c}").status_code == 204


def with_state(server, conversation):
    """STATE has run, and is parked."""
    record = run(server, conversation, STATE)
    assert record["status"] == "ok"
    parked(server, record["kernel_id"], 1)
    return record


def test_a_repair_sees_the_state_before_the_failing_run(server, model, conversation, tmp_path):
    first = with_state(server, conversation)
    model.will_say(code(FAILS), code("items.append(3)\n1/0"), code(LOOK), "There.")
    found = events(server, conversation, "Add two.")
    failed, again, good = with_nodes(server, found[-1][1]["records"])
    assert failed["status"] == "error" and "restored_by" not in failed
    assert good["status"] == "ok" and good["stdout"] == "[1] 1\n"
    for record in again, good:
        assert record["restored_by"] == "parked"
        assert record["report"]["fidelity"] == "exact" and record["report"]["lost"] == []
    assert good["notes"] == []
    kernel = good["kernel_id"]
    nodes = {r["id"]: server.json(f"/history/{kernel}/nodes/{r['node']}")
             for r in (failed, again, good)}
    before = nodes[failed["id"]]["parent"]
    assert {n["parent"] for n in nodes.values()} == {before}
    assert server.json(f"/history/{kernel}/nodes/{before}")["msg_id"] == first["msg_id"]
    git("clone", "-q", clone_url(server, kernel), tmp_path / "story")
    trailers = "--format=%(trailers:key=Coppice-Retry-Of,valueonly)"
    retry = [git("log", "-1", trailers, r["node"], cwd=tmp_path / "story").stdout.strip()
             for r in (failed, again, good)]
    assert retry == ["", failed["node"], again["node"]]
    assert run(server, conversation, LOOK)["stdout"] == "[1] 2\n"


def test_where_nothing_is_parked_it_says_so(server, model, conversation):
    model.will_say(code("x = [1]\nx.append(undefined)"), code("print(x)"), "There.")
    found = events(server, conversation, "Add.")
    _failed, good = records(server, found)
    assert good["stdout"] == "[1]\n" and "restored_by" not in good
    assert any("the state that the failed code left behind" in n for n in good["notes"])
    assert names(found).count("notice") == 1


def test_somebody_else_s_cells_are_not_undone(server, model, conversation):
    first = with_state(server, conversation)
    with server.open(first["kernel_id"]) as c:
        model.will_say(code(FAILS), Answer(code("print(items, theirs)"),
                                           before=lambda: c.run("theirs = 1")), "There.")
        found = events(server, conversation, "Add.")
    good = records(server, found)[-1]
    assert good["stdout"] == "[1, 2] 1\n"
    assert any("something else ran in the kernel since" in n for n in good["notes"])


def test_a_timeout_of_an_execution(server, conversation):
    with_state(server, conversation)
    url = f"/chat/conversations/{conversation}/executions"
    for wrong in (0, -1, "1", True, [], 1e300):
        answer = server.post(url, json={"code": "1", "timeout": wrong})
        assert answer.status_code == 400 and answer.json()["reason"] == "invalid", wrong
    record = server.post(url, json={"code": "items.append(2)\nwhile True: pass", "timeout": 1.5},
                         timeout=within(60)).json()
    assert record["status"] == "timed_out" and "Time limit of 1.5 s" in record["stderr"]
    record = server.post(url, json={"code": "while True:\n    try:\n        while True: pass\n"
                                    "    except KeyboardInterrupt: pass", "timeout": 1},
                         timeout=within(60)).json()
    assert record["status"] == "timed_out"
    assert record["error"]["ename"] == "TimeLimitExceeded"
    node = wait(lambda: server.json(f"/chat/records/{record['id']}"), lambda x: x["node"],
                within(20))["node"]
    told = server.json(f"/history/{record['kernel_id']}/nodes/{node}")
    assert told["status"] == "timed_out"


@pytest.mark.parametrize("obeys", [True, False])
def test_what_ran_out_of_time_is_repaired_too(server, model, conversation, obeys):
    with_state(server, conversation)
    loop = "while True: pass" if obeys else (
        "import time\nwhile True:\n    try:\n        time.sleep(60)\n"
        "    except KeyboardInterrupt: pass")
    model.will_say(code("items.append(2)\n" + loop), code(LOOK), "There.")
    found = events(server, conversation, "Loop.")
    ended, good = records(server, found)
    assert ended["status"] == "timed_out"
    assert good["status"] == "ok" and good["stdout"] == "[1] 1\n"
    # One that had to be killed has led back by itself.
    assert good.get("restored_by") == ("parked" if obeys else None)
    assert good["notes"] == []
    assert "Time limit of 10 s" in model.asked[1]["messages"][-1]["content"]
