"""What passes a strict parser: field cases 7, 8 and 25. wire.Client itself is the strict parser."""

import base64

from test_wire import say, script
from wire import strict_json


def raw(msg_type, content, **more):
    return {"send": "iopub", "type": msg_type,
            "content64": base64.b64encode(content).decode(), **more}


def test_case_7_nan_from_a_kernel(fake_client):
    run = fake_client.run(script(
        raw("display_data",
            b'{"data":{"application/json":{"a":NaN,"b":[Infinity,-Infinity]}},'
            b'"metadata":{"w":NaN}}',
            metadata='{"m": NaN}'), say("after")))
    (m,) = run.iopub("display_data")
    value = m.content["data"]["application/json"]
    four = [value["a"], *value["b"], m.content["metadata"]["w"]]
    # One rule (docs/PROTOCOL.md): all null, or all texts.
    assert four == [None] * 4 or all(isinstance(v, str) for v in four), four
    assert run.stdout == "after" and run.status == "ok"


def test_case_7_nan_in_strings_is_left_alone(fake_client):
    text = b'{"data":{"text/plain":"NaN, Infinity \\" NaN"},"metadata":{}}'
    run = fake_client.run(script(raw("display_data", text)))
    assert run.iopub("display_data")[0].content["data"]["text/plain"] == 'NaN, Infinity " NaN'


def test_case_7_table(any_client):
    run = any_client.run('import pandas as pd; pd.DataFrame({"v": [1.0, None, float("inf")]})',
                         timeout=60)
    assert run.status == "ok" and run.stderr == ""
    data = run.iopub("execute_result")[0].content["data"]
    assert "NaN" in data["text/plain"] and "<table" in data["text/html"]


def test_case_7_real_nan(any_client):
    run = any_client.run("from IPython.display import display\n"
                         "display({'application/json': {'a': float('nan')}}, raw=True)")
    assert run.status == "ok" and len(run.iopub("display_data")) == 1


def test_case_8_lone_surrogate_escape(fake_client):
    run = fake_client.run(script(raw("stream", b'{"name":"stdout","text":"L\\ud83dR"}'),
                                 say("tail")))
    assert run.stdout.startswith("L") and "R" in run.stdout and run.stdout.endswith("tail")
    assert run.stdout[1] in ("\ufffd", "\ud83d")
    for m in run.messages:
        assert not any(b"\xed" + bytes([b]) in m.raw for b in range(0xA0, 0xC0))


def test_case_8_surrogate_bytes(fake_client):
    run = fake_client.run(script(
        raw("stream", b'{"name":"stdout","text":"L\xed\xa0\xbdR"}'), say("tail")))
    assert "\ufffd" in run.stdout and run.stdout.endswith("Rtail")
    for m in run.messages:
        assert not any(b"\xed" + bytes([b]) in m.raw for b in range(0xA0, 0xC0))


def test_case_8_real_pair_is_kept(fake_client):
    run = fake_client.run(script(raw("stream", b'{"name":"stdout","text":"\\ud83e\\uddea"}')))
    assert run.stdout == "\U0001f9ea"


def test_case_8_print(any_client):
    run = any_client.run('print("L" + chr(0xD83D) + "R"); print("tail")', timeout=15)
    # This kernel loses the text and says why on stderr: never an empty success.
    assert run.stderr or run.reply.content["status"] == "error" or "R" in run.stdout, run
    assert any_client.run('print("next")', timeout=15).stdout == "next\n"


def test_case_25_bytes_that_are_no_text(fake_client):
    run = fake_client.run(script(raw("stream", b'{"name":"stdout","text":"A\xff\xfeB"}'),
                                 say("still")))
    assert run.stdout in ("A\ufffd\ufffdBstill", "A\ufffdBstill")


def test_case_25_shell_line(any_client):
    run = any_client.run("!printf 'A\\377B\\n'")
    assert run.reply and run.stdout.startswith("A") and run.stdout.rstrip().endswith("B"), run


def test_case_25_raw_write(any_client):
    assert any_client.run("import os; os.write(1, bytes([65, 255, 66, 10]))").status == "ok"
    assert any_client.run('print("still")').stdout == "still\n"


def test_bad_frames_of_a_kernel_are_dropped_and_counted(process_gateway, fake_kernel, fake_client):
    """A wrong signature, no delimiter, no JSON: dropped, told once, and all after it arrives."""
    def b64(data):
        return base64.b64encode(data).decode()

    run = fake_client.run(script(
        say("one "), {**say("forged "), "bad_key": True}, {"raw64": [b64(b"x")]},
        {"raw64": [b64(b"x"), b64(b"<IDS|MSG>"), b64(b"")]},
        {"raw64": [b64(b"topic"), b64(b"no"), b64(b"delimiter")]},
        raw("stream", b"[1, 2]"), raw("stream", b"{"), say("two")))
    assert run.stdout == "one two" and run.status == "ok"
    # Some of them under other parents, none of them with the forged text.
    assert not any("forged" in str(m.content) for m in fake_client.messages
                   if m.type != "execute_input")
    assert process_gateway.slot_of(fake_kernel)["bad_frames"] >= 3


def test_rest_bodies_are_strict(process_gateway, fake_kernel):
    for path in ("/api/kernels", "/api/kernelspecs", "/api/status", "/admin/show/kernels"):
        strict_json(process_gateway.get(path).content)


def test_status_that_lab_throws_on(fake_client):
    """A state of the kernel's own making never reaches a page, which would throw on it."""
    run = fake_client.run(script(raw("status", b'{"execution_state":"sleepy"}'), say("end")))
    assert run.stdout == "end" and run.states == ["busy", "idle"]
