"""The record and commit halves of field cases: what is stored of a run is what it was."""

import subprocess

import pytest

from chat import new_conversation, run, strict
from gateway import wait, within
from test_history import clone_url, executions, git, recorded
from test_json_unicode import raw
from test_wire import say, script
from wire import Run

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


@pytest.fixture
def conversation(server):
    c = new_conversation(server)
    yield c
    assert server.delete(f"/chat/conversations/{c}").status_code == 204


@pytest.fixture
def scripted(process_gateway):
    """A conversation whose kernel does what its code says, byte by byte."""
    c = new_conversation(process_gateway, kernel_name="fake")
    yield c
    assert process_gateway.delete(f"/chat/conversations/{c}").status_code == 204


def committed(server, record):
    return wait(lambda: server.json(f"/chat/records/{record['id']}"), lambda r: r["node"],
                within(20))


def files_of(server, record, tmp_path):
    """What its commit holds, path -> bytes, and what `git show` says of it."""
    record = committed(server, record)
    story = tmp_path / record["id"]
    git("clone", "-q", clone_url(server, record["kernel_id"]), story)
    git("fsck", "--strict", cwd=story)
    names = git("ls-tree", "-r", "--name-only", record["node"], cwd=story).stdout.split("\n")
    shown = subprocess.run(["git", "show", record["node"]], cwd=story, capture_output=True,
                           check=True).stdout
    return {n: subprocess.run(["git", "show", f"{record['node']}:{n}"], cwd=story,
                              capture_output=True, check=True).stdout
            for n in names if n}, shown


def outputs_of(server, kernel_id, n=-1):
    node = executions(server.json(f"/history/{kernel_id}"))[n]["id"]
    return server.json(f"/history/{kernel_id}/nodes/{node}")["outputs"]


def stdout_of(outputs):
    texts = [o["text"] for o in outputs if o["output_type"] == "stream" and o["name"] == "stdout"]
    return "".join(t if isinstance(t, str) else "".join(t) for t in texts)


def test_case_5_two_records_not_three(server, kernel):
    code = 'runs = globals().get("runs", 0) + 1; print("runs", runs)'
    with server.open(kernel) as c:
        c.info()
        head = c.header("execute_request")
        frame = c.encode("shell", head, {}, {}, {"code": code, "silent": False})
        c.runs[head["msg_id"]] = Run(head["msg_id"])
        c.send_frame(frame), c.send_frame(frame)
        c.collect(head["msg_id"])
        c.send_frame(frame)
        assert c.run(code).stdout == "runs 2\n"
    history = recorded(server, kernel, 2)
    assert len(executions(history)) == 2
    assert [stdout_of(outputs_of(server, kernel, n)) for n in (0, 1)] == ["runs 1\n", "runs 2\n"]


def test_case_7_nan_in_a_record_and_its_commit(process_gateway, scripted, tmp_path):
    record = run(process_gateway, scripted, script(
        raw("display_data", b'{"data":{"application/json":{"a":NaN,"b":[Infinity,-Infinity]}},'
            b'"metadata":{"w":NaN}}'), say("after")))
    value = record["outputs"][0]["data"]["application/json"]
    four = [value["a"], *value["b"], record["outputs"][0]["metadata"]["w"]]
    assert four == [None] * 4 and record["stdout"] == "after" and record["stderr"] == ""
    files, _ = files_of(process_gateway, record, tmp_path)
    documents = [strict(text) for name, text in files.items() if name.endswith(".json")]
    (shown,) = [o for d in documents if isinstance(d, list) for o in d
                if o.get("output_type") == "display_data"]
    assert shown["data"]["application/json"] == value


def test_case_7_a_table_leaves_nothing_on_stderr(server, conversation, tmp_path):
    record = run(server, conversation,
                 'import pandas as pd; pd.DataFrame({"v": [1.0, None, float("inf")]})')
    assert record["status"] == "ok" and record["stderr"] == ""
    assert "NaN" in record["outputs"][0]["data"]["text/plain"]
    files, _ = files_of(server, record, tmp_path)
    assert all(strict(t) is not None for n, t in files.items() if n.endswith(".json"))


@pytest.mark.parametrize("text", [b'"L\\ud83dR"', b'"L\xed\xa0\xbdR"'], ids=["escape", "bytes"])
def test_case_8_half_a_pair(process_gateway, scripted, tmp_path, text):
    record = run(process_gateway, scripted, script(
        raw("stream", b'{"name":"stdout","text":' + text + b"}"), say("tail")))
    assert record["stdout"].startswith("L\ufffd") and record["stdout"].endswith("Rtail")
    files, shown = files_of(process_gateway, record, tmp_path)
    for data in (*files.values(), shown):
        data.decode("utf-8", "strict")
        assert not any(b"\xed" + bytes([b]) in data for b in range(0xA0, 0xC0))
    assert any(b"Rtail" in data for data in files.values())


def test_case_8_the_kernel_s_own_trouble_is_shown(server, conversation):
    record = run(server, conversation, 'print("L" + chr(0xD83D) + "R"); print("tail")')
    assert record["stderr"] or record["status"] == "error" or "R" in record["stdout"]
    assert run(server, conversation, 'print("next")')["stdout"] == "next\n"


def test_case_13_nobody_was_there(server, kernel):
    """The line goes down amid a cell, and comes back as another session: the record is whole."""
    with server.open(kernel) as c:
        c.info()
        msg_id = c.execute("import time\nfor k in range(10): print('k', k, flush=True); "
                           "time.sleep(0.1)")
        c.until_text("k 2\n", msg_id)
        c.cut()
    with server.open(kernel) as c:
        c.info()
        assert c.run("'over'").status == "ok"
    recorded(server, kernel, 2)
    assert stdout_of(outputs_of(server, kernel, 0)) == "".join(f"k {k}\n" for k in range(10))


@pytest.mark.parametrize("stop_on_error", [True, False])
def test_case_16_what_did_not_run_says_so(server, kernel, stop_on_error):
    with server.open(kernel) as c:
        c.info()
        burst = [c.execute(code, stop_on_error=stop_on_error) for code in (
            "import time; time.sleep(.4); 1/0", 'print("B")', 'print("C")')]
        for msg_id in burst:
            c.collect(msg_id)
        assert c.run('print("D")').stdout == "D\n"
    nodes = executions(recorded(server, kernel, 4))
    held = ["aborted", "aborted"] if stop_on_error else ["ok", "ok"]
    assert [n["status"] for n in nodes] == ["error", *held, "ok"]
    texts = [stdout_of(outputs_of(server, kernel, n)) for n in range(4)]
    assert texts == ["", *(["", ""] if stop_on_error else ["B\n", "C\n"]), "D\n"]
    for node in nodes[1:3] if stop_on_error else ():
        whole = server.json(f"/history/{kernel}/nodes/{node['id']}")
        assert whole["outputs"] == [] and whole["variables"] is None


def test_case_17_the_commit_is_marked_failed(server, conversation, tmp_path):
    for text in ("%no_such_magic 1", "%%no_such_cell\npass"):
        record = committed(server, run(server, conversation, text))
        assert record["status"] == "error" and record["error"]["ename"] == "UsageError"
        assert "no_such" in record["error"]["evalue"]
        node = server.json(f"/history/{record['kernel_id']}/nodes/{record['node']}")
        assert node["status"] == "error" and node["error"]["ename"] == "UsageError"
    assert run(server, conversation, 'print("ok")')["status"] == "ok"


def test_case_19_killed_and_told(server, conversation):
    run(server, conversation, "kept = 1")
    died = run(server, conversation, 'import os, time; print("begin", flush=True); time.sleep(.3)\n'
               "os.kill(os.getpid(), 9)")
    assert died["status"] == "died" and died["stdout"] == "begin\n"
    fresh = run(server, conversation, "'kept' in dir()")
    assert fresh["outputs"][0]["data"]["text/plain"] == "False"
    assert any("variables of before are gone" in n for n in fresh["notes"])
    assert run(server, conversation, "1")["notes"] == []
    nodes = executions(recorded(server, fresh["kernel_id"], 4))
    assert [n["status"] for n in nodes] == ["ok", "died", "ok", "ok"]
    assert nodes[1]["exit"]["signal"] == 9


def test_case_20_three_ways_to_leave(server, conversation):
    early = run(server, conversation, "x = 1; raise SystemExit(0)")
    assert early["status"] == "ok" and "error" not in early
    assert any("early" in n for n in early["notes"])
    assert run(server, conversation, "x")["outputs"][0]["data"]["text/plain"] == "1"
    halt = run(server, conversation, 'raise SystemExit("halt")')
    assert halt["status"] == "error" and halt["error"]["evalue"] == "halt"
    assert run(server, conversation, "x")["outputs"][0]["data"]["text/plain"] == "1"
    left = run(server, conversation, "exit()")
    assert any("code ended the kernel" in n for n in left["notes"])
    after = run(server, conversation, "x")
    assert after["status"] == "error" and after["error"]["ename"] == "NameError"
    assert any("variables of before are gone" in n for n in after["notes"])


def test_case_25_bytes_that_are_no_text(process_gateway, scripted, server, conversation, tmp_path):
    record = run(process_gateway, scripted, script(
        raw("stream", b'{"name":"stdout","text":"A\xff\xfeB"}'), say("still")))
    assert record["stdout"] in ("A\ufffd\ufffdBstill", "A\ufffdBstill")
    assert run(server, conversation, "import os; os.write(1, bytes([65, 255, 66, 10]))"
               )["status"] == "ok"
    other = run(server, conversation, 'print("still")')
    assert other["stdout"] == "still\n"
    for gateway, one in ((process_gateway, record), (server, other)):
        files, shown = files_of(gateway, one, tmp_path)
        for data in (*files.values(), shown):
            data.decode("utf-8", "strict")
        assert b"still" in shown


def test_case_26_a_progress_bar_folds(server, conversation):
    record = run(server, conversation, "import sys\n"
                 'for s in (" 10%", " 55%", "100%"): sys.stdout.write("\\r" + s); sys.stdout.flush()\n'
                 'sys.stdout.write("\\na\\r\\r\\nb\\r\\n")')
    assert record["stdout"].split("\n")[:3] == ["100%", "a", "b"]


def test_case_32_an_old_id_after_a_restart(server, conversation, tmp_path):
    first = committed(server, run(server, conversation, "display('A0', display_id='d')"))
    kernel = first["kernel_id"]
    assert server.post(f"/api/kernels/{kernel}/restart").status_code == 200
    second = run(server, conversation, "from IPython.display import update_display\n"
                 "update_display('A1', display_id='d')")
    assert second["status"] == "ok" and second["outputs"] == []
    files, shown = files_of(server, second, tmp_path)
    assert not any(b"A0" in data for data in files.values()) and b"A0" not in shown
    node = server.json(f"/history/{kernel}/nodes/{first['node']}")
    assert node["outputs"][0]["data"]["text/plain"] in ("'A0'", ["'A0'"])


def test_case_46_no_controls_in_what_is_committed(server, conversation, tmp_path):
    record = run(server, conversation,
                 "print('\\033[31mred\\033[0m \\033]8;;u\\007link\\033]8;;\\007 \\x9b1mC1')\n"
                 "def f(d): return 1 / d\nf(0)")
    files, shown = files_of(server, record, tmp_path)
    for data in (*files.values(), shown):
        assert not {"\x1b", "\x07"} & set(data.decode("utf-8", "strict"))
    assert b"ZeroDivisionError" in shown and b"return 1 / d" in shown
