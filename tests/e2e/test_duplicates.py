"""The same message twice: field case 5."""

import json

from gateway import within
from wire import Run

CODE = 'runs = globals().get("runs", 0) + 1; print("runs", runs)'


def test_case_5(any_client):
    c = any_client
    head = c.header("execute_request")
    frame = c.encode("shell", head, {}, {}, {"code": CODE, "silent": False, "store_history": True,
                                            "allow_stdin": False, "stop_on_error": True})
    c.runs[head["msg_id"]] = Run(head["msg_id"])
    c.send_frame(frame)
    first = c.collect(head["msg_id"])
    assert first.stdout == "runs 1\n"
    seen = len(c.messages)
    c.send_frame(frame)
    # The first reply once more, or words that name the id.
    outcome = c.until(lambda m: (m.parent_id == head["msg_id"] and m.type == "execute_reply")
                      or head["msg_id"] in json.dumps(m.content), within(2), skip=seen)
    assert outcome is not None
    assert c.run(CODE).stdout == "runs 2\n"
    assert "".join(m.content["text"] for m in c.messages if m.type == "stream"
                   and m.content["name"] == "stdout") == "runs 1\nruns 2\n"


def test_case_5_in_one_burst(any_client):
    c = any_client
    head = c.header("execute_request")
    frame = c.encode("shell", head, {}, {}, {"code": CODE, "silent": False})
    c.runs[head["msg_id"]] = Run(head["msg_id"])
    c.send_frame(frame)
    c.send_frame(frame)
    c.collect(head["msg_id"])
    assert c.run(CODE).stdout == "runs 2\n"


def test_same_id_on_another_kind(any_client):
    """An id is used up by its message, whatever its type: still an answer, no hang."""
    c = any_client
    msg_id = c.execute("1")
    c.collect(msg_id)
    seen = len(c.messages)
    head = {**c.header("complete_request"), "msg_id": msg_id}
    c.send_frame(c.encode("shell", head, {}, {}, {"code": "pri", "cursor_pos": 3}))
    c.until(lambda m: m.parent_id == msg_id or msg_id in json.dumps(m.content), within(3),
            skip=seen)
    assert c.run("print('fine')").stdout == "fine\n"
