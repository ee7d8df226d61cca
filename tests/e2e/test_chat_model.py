"""Every way in which a model's server fails: told, bounded, over in time; and the conversation goes
on with the next message."""

import json
import ssl
import subprocess

import pytest

from chat import datas, events, names, new_conversation
from gateway import Server, wait, within
from model_server import Answer, ModelServer

pytestmark = pytest.mark.timeout(300)
SSE = b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}, "finish_reason": %s}]}\n\n'


@pytest.fixture(scope="module")
def model():
    model = ModelServer()
    yield model
    model.close()


@pytest.fixture(autouse=True)
def fresh(model):
    model.answers, model.asked = [], []


@pytest.fixture(scope="module")
def server(spec_path, model):
    """No code runs here, so no container is needed."""
    with Server("chat-model", "--engine", "process", "--model-url", model.url, "--model-name",
                "scripted", "--model-timeout", "3s", env={"JUPYTER_PATH": spec_path}) as server:
        yield server


@pytest.fixture
def conversation(server):
    c = new_conversation(server)
    yield c
    assert server.delete(f"/chat/conversations/{c}").status_code == 204


def memory_of(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmRSS"))


def fails(server, conversation, model, fault, reason):
    """One error, with that reason; then all is well again."""
    model.will_say(fault)
    found = events(server, conversation, "Hello?")
    assert names(found)[-2:] == ["error", "message.end"]
    (error,) = datas(found, "error")
    assert error["reason"] == reason and error["message"]
    assert found[-1][1] == {"records": [], "status": "failed", "error": error,
                            "usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    said = server.json(f"/chat/conversations/{conversation}")["messages"][-1]
    assert said["role"] == "assistant" and said["error"] == error
    model.answers = []
    model.will_say("Here again.")
    assert events(server, conversation, "And now?")[-1][1]["status"] == "ok"
    return error


@pytest.mark.parametrize("fault", [
    Answer("Half a sen", cut=True), Answer(raw=b""), Answer(raw=b"<html>nginx</html>"),
    Answer(raw=b'data: {"choices": [{"delta": {"content": "x"\n\n'), Answer(raw=b"data: 42\n\n"),
    Answer(raw=b"data: [DONE]\n\n"), Answer(raw=b'data: {"choices": "none"}\n\n'),
    Answer(raw=b"\x00\xff\xfe" * 1000), Answer(raw=b"data: " + b"[" * 100000 + b"\n\n"),
    Answer(raw=b'{"choices": [{"message"'), Answer(raw=b'event: error\ndata: no\n\n'),
], ids=["cut", "nothing", "html", "cut-json", "number", "done-alone", "choices", "binary", "deep",
        "cut-object", "words"])
def test_what_is_malformed(server, model, conversation, fault):
    fails(server, conversation, model, fault, "protocol")
    assert len(model.asked) == 2


@pytest.mark.parametrize("block", [
    SSE % (b"x" * 10000, b"null"), b"data: " + b"x" * 65536, b": still thinking\n\n" * 1000,
    b'data: {"choices": []}\n\n' * 1000, b"\n" * 65536,
    b'data: {"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": "'
    + b"x" * 1000 + b'"}}]}}]}\n\n',
], ids=["text", "line", "comments", "empty", "newlines", "tool"])
def test_what_has_no_end(server, model, conversation, block):
    before = memory_of(server)
    fails(server, conversation, model, Answer(endless=block), "protocol")
    assert memory_of(server) - before < 500  # a sanitizer keeps 256 MB of what was freed


def test_an_error_without_end(server, model, conversation):
    model.will_say(*[Answer(status=500, endless=b"x" * 65536)] * 3)
    found = events(server, conversation, "Hello?")
    assert datas(found, "error")[0]["reason"] == "protocol"


@pytest.mark.parametrize("when", ["before", "amid"])
def test_case_47_one_that_never_answers(server, model, conversation, when):
    """Over with the model's time, and not asked three times over."""
    error = fails(server, conversation, model, Answer("Half", stall=when), "timeout")
    assert "model" in error["message"] and len(model.asked) == 2


@pytest.mark.parametrize("text", ["", "Half"])
def test_a_line_that_breaks(server, model, conversation, text):
    """A reset is told. Text is never said twice: it is asked again only as long as none came, which
    a reset may take from the system's buffers."""
    model.will_say(*[Answer(text, cut="reset")] * 3)
    found = events(server, conversation, "Hello?")
    assert datas(found, "error")[0]["reason"] == "unavailable"
    said = "".join(d["text"] for d in datas(found, "text.delta"))
    assert said in ("", text)
    assert len(model.asked) == 3 or said


def test_an_error_amid_the_stream(server, model, conversation):
    error = fails(server, conversation, model, Answer("Half", error="overloaded"), "unavailable")
    assert error["message"] == "overloaded"


@pytest.mark.parametrize("status", [401, 403, 404, 400, 418, 302])
def test_a_refusal_is_not_repeated(server, model, conversation, status):
    model.will_say(*[Answer(status=status)] * 5)
    found = events(server, conversation, "Hello?")
    assert str(status) in datas(found, "error")[0]["message"]
    assert len(model.asked) == (2 if status == 400 else 1)  # once more without stream_options


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_fault_is_asked_again(server, model, conversation, status):
    model.will_say(Answer(status=status), "There.")
    found = events(server, conversation, "Hello?")
    assert found[-1][1]["status"] == "ok" and "error" not in names(found)
    assert len(model.asked) == 2


def test_nothing_ran_so_a_status_says_it(server, model, conversation):
    """And asks the client's library not to try by itself: the words are in the conversation."""
    model.will_say(*[Answer(status=500)] * 3)
    answer = server.post(f"/chat/conversations/{conversation}/messages",
                         json={"content": "Hello?"}, timeout=within(60))
    assert answer.status_code == 503 and answer.json()["reason"] == "unavailable"
    assert answer.headers["X-Should-Retry"] == "false"


def test_bad_characters_of_a_model(server, model, conversation):
    """Bytes that are no text, half a surrogate pair, NUL: replaced, and the rest stays."""
    model.will_say(Answer(raw=SSE % (b"a\xff\xed\xa0\x80 \\ud83d b \\u0000", b'"stop"')))
    found = events(server, conversation, "Say it.")
    text = "".join(d["text"] for d in datas(found, "text.delta"))
    assert text.startswith("a\ufffd") and " \ufffd b " in text
    assert found[-1][1]["status"] == "ok"


def test_line_ends_and_bytes_one_by_one(server, model, conversation):
    whole = (SSE % ("Köln 北京".encode(), b'"stop"')).replace(b"\n", b"\r\n")
    model.will_say(Answer(raw=b"\r\n: hello\r\n" + whole + b"data: [DONE]\r\n\r\n"))
    found = events(server, conversation, "Say it.")
    assert datas(found, "text.delta") == [{"text": "Köln 北京"}]
    model.will_say(Answer("Köln 北京", piece=1))
    assert len(datas(events(server, conversation, "Again."), "text.delta")) == 7


def test_one_that_does_not_stream(server, model, conversation):
    model.will_say(Answer("All at once.", streams=False))
    assert datas(events(server, conversation, "Hello?"), "text.delta") == [
        {"text": "All at once."}]


def test_one_that_knows_no_stream_options(server, model, conversation):
    model.will_say(Answer("Old, but here.", old=True))
    found = events(server, conversation, "Hello?")
    assert found[-1][1]["status"] == "ok" and len(model.asked) == 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    home = tmp_path_factory.mktemp("model-tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", home / "key.pem", "-out", home / "cert.pem"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / "cert.pem", home / "key.pem")
    return context


@pytest.mark.parametrize("kind", ["untrusted", "plain", "nobody"])
def test_tls_is_not_waived(spec_path, certificate, kind):
    """A certificate that nobody trusts, no TLS at all, nobody there: told, and nothing is said."""
    other = ModelServer(certificate if kind == "untrusted" else None)
    other.will_say("Secret.")
    url = other.url if kind == "untrusted" else other.url.replace("http://", "https://")
    if kind == "nobody":
        other.close()
    with Server(f"chat-tls-{kind}", "--engine", "process", "--model-url", url,
                env={"JUPYTER_PATH": spec_path}) as server:
        found = events(server, new_conversation(server), "Hello?")
        (error,) = datas(found, "error")
        assert error["reason"] == "unavailable" and "Secret" not in json.dumps(found)
        assert other.asked == []
    if kind != "nobody":
        other.close()


def test_the_gateway_ends_amid_an_answer(spec_path, model):
    """Nothing hangs: the stream ends, and so does the gateway."""
    from chat import open_events
    with Server("chat-end", "--engine", "process", "--model-url", model.url,
                env={"JUPYTER_PATH": spec_path}) as server:
        model.will_say(Answer("Half", stall="amid"))
        answer = open_events(server, new_conversation(server), "Hello?")
        wait(lambda: len(model.asked), lambda n: n == 1, within(10))
    answer.close()


def size_of(messages):
    return sum(len(m["content"].encode()) for m in messages)


def test_what_is_too_long_is_left_out_the_oldest_first(spec_path, model):
    """What the model is for and the question stay; what is left out is said and kept."""
    with Server("chat-history", "--engine", "process", "--model-url", model.url, "--model-history",
                "16K", env={"JUPYTER_PATH": spec_path}) as server:
        c = new_conversation(server)
        for i in range(8):
            model.will_say(f"answer {i} " + "a" * 2000)
            found = events(server, c, f"question {i} " + "é" * 1000)
            last, said = model.asked[-1]["messages"], found[-1][1]
            assert size_of(last) <= 16384 and last[0]["role"] == "system"
            assert last[0] == model.asked[0]["messages"][0]
            told = [m["content"].split(" ")[:2] for m in last[1:]]
            whole = [[who, str(k)] for k in range(i + 1) for who in ("question", "answer")][:-1]
            assert told == whole[len(whole) - len(told):] and told[0][0] == "question"
            left = len(whole) - len(told)
            assert said.get("left_out", {}).get("messages", 0) == left
            assert any("model_history" in d["text"] for d in datas(found, "notice")) == (left > 0)
        assert 6 <= left <= 12 and said["left_out"]["bytes"] > 2000 * left
        messages = server.json(f"/chat/conversations/{c}")["messages"]
        assert len(messages) == 16 and messages[-1]["left_out"] == said["left_out"]
        # A question that is longer than all that may be told is refused, with the option's name.
        asked = len(model.asked)
        answer = server.post(f"/chat/conversations/{c}/messages", json={"content": "x" * 20_000})
        assert answer.status_code == 413 and "model_history" in answer.json()["message"]
        assert len(server.json(f"/chat/conversations/{c}")["messages"]) == 16
        assert len(model.asked) == asked
        # What is not told is there all the same, and short questions go on.
        model.will_say("Yes.")
        assert events(server, c, "Still there?")[-1][1]["status"] == "ok"
