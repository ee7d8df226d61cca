"""A conversation as a client has it: events, records."""

import json

import requests

from gateway import ALICE, within


def code(text):
    return f"Here it is.\n\n```python\n{text}\n```\n"


def strict(text):
    """JSON as the standard has it, nothing that Python takes beside."""
    def refuse(word):
        raise ValueError(word)
    return json.loads(text, parse_constant=refuse)


def read_events(answer, last=0):
    """(name, data) as they come; ids must rise, all must be UTF-8 and JSON."""
    waiting = b""
    for piece in answer.iter_content(None):
        *blocks, waiting = (waiting + piece).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(": ", 1) for line in block.decode("utf-8").split("\n")
                          if line and line[0] != ":")
            if fields:
                assert int(fields["id"]) > last
                last = int(fields["id"])
                yield fields["event"], strict(fields["data"])
    assert not waiting.strip(), waiting


def open_events(server, conversation, content, path="messages", key="content", timeout=60):
    return requests.post(f"{server.url}/chat/conversations/{conversation}/{path}",
                         json={key: content}, stream=True, timeout=within(timeout),
                         headers={"Authorization": f"token {ALICE}",
                                  "Accept": "text/event-stream"})


def events(server, conversation, content, path="messages", key="content"):
    """What comes until the turn is over."""
    with open_events(server, conversation, content, path, key) as answer:
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        found = list(read_events(answer))
    assert found[-1][0] == "message.end"
    return found


def run(server, conversation, text):
    """Runs code without a model; its record."""
    answer = server.post(f"/chat/conversations/{conversation}/executions", json={"code": text},
                         timeout=within(120))
    assert answer.status_code == 200, answer.text
    return strict(answer.content)


def names(found):
    """In order, each run of the same one once."""
    return [n for i, (n, _) in enumerate(found) if i == 0 or found[i - 1][0] != n]


def datas(found, name):
    return [data for n, data in found if n == name]


def records(server, found):
    return [server.json(f"/chat/records/{r}") for r in found[-1][1]["records"]]


def new_conversation(server, **wish):
    answer = server.post("/chat/conversations", json={"title": "Test", **wish})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]
