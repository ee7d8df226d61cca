"""A real language model behind a conversation: SmolLM2 (135 million weights) on llama.cpp's server.
What is asserted is the protocol; the model is not clever."""

import subprocess
import time

import pytest

from chat import datas, events, names, new_conversation, open_events, read_events
from gateway import BUILD, ROOT, Server, within

pytestmark = pytest.mark.timeout(600)
TOKENS = 48  # of an answer at most: it is to be quick on a busy machine


@pytest.fixture(scope="module")
def model():
    python = BUILD / "model-venv" / "bin" / "python"
    process = subprocess.Popen([python, ROOT / "tests" / "e2e" / "small_model.py", str(TOKENS)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    yield process.stdout.readline().strip() + "/v1"
    process.communicate()


@pytest.fixture(scope="module")
def server(container_engine, model):
    from conftest import CONFIG
    with Server("chat-small-model", "--engine", "docker", "--pool-floor", "0", "--model-url", model,
                "--model-timeout", "300s", config=CONFIG) as server:
        yield server


def test_it_answers(server):
    """In pieces, with its cost, to an end; whatever it wrote, run or not."""
    conversation = new_conversation(server)
    began = time.monotonic()
    found = events(server, conversation, "Say hello to me in one short sentence. No code.")
    print(f"answered in {time.monotonic() - began:.1f} s: "
          + "".join(d["text"] for d in datas(found, "text.delta")))
    assert names(found)[:2] == ["message.start", "text.delta"] and "error" not in names(found)
    assert len(datas(found, "text.delta")) > 2
    usage = found[-1][1]["usage"]
    assert usage["prompt_tokens"] > 50 and 1 < usage["completion_tokens"]
    assert server.json(f"/chat/conversations/{conversation}")["messages"][-1]["content"]


def test_it_is_asked_to_explain_what_ran(server):
    """Code runs, and its output goes to the model, as often as it wants to mend it."""
    conversation = new_conversation(server)
    found = events(server, conversation, "Write only this code:\n```python\nprint(6 * 7)\n```")
    print(names(found), "".join(d["text"] for d in datas(found, "text.delta")))
    assert "error" not in names(found)
    for record in found[-1][1]["records"]:
        r = server.json(f"/chat/records/{record}")
        assert r["usage"]["completion_tokens"] > 0 and r["timings"]["model_ms"] > 0


def test_it_is_stopped_amid_an_answer(server):
    """The connection is closed, so that the model's server stops as well; the next answer comes."""
    conversation = new_conversation(server)
    found = []
    with open_events(server, conversation, "Tell me a long story.") as answer:
        for name, data in read_events(answer):
            found.append((name, data))
            if name == "text.delta" and len(found) == 3:
                url = f"/chat/conversations/{conversation}/interrupt"
                assert server.post(url).status_code == 204
    assert found[-1][1]["status"] == "stopped"
    began = time.monotonic()
    assert events(server, conversation, "Hello?")[-1][0] == "message.end"
    assert time.monotonic() - began < within(120)
