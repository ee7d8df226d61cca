"""What a run cost and waited for, in each kind of record and in the metrics (R43)."""

import re
import threading

import pytest

from chat import code, new_conversation, open_events, read_events, records, run
from gateway import wait, within
from model_server import Answer, ModelServer

pytestmark = pytest.mark.timeout(300)
MIB = 1 << 20


@pytest.fixture(scope="module")
def model():
    model = ModelServer()
    yield model
    model.close()


@pytest.fixture(autouse=True)
def fresh(model):
    model.answers, model.asked = [], []


@pytest.fixture(scope="module")
def server(container_engine, model):
    from gateway import Server
    with Server("chat-cost", "--engine", "docker", "--pool-floor", "0", "--model-url", model.url,
                "--model-name", "scripted") as server:
        yield server


@pytest.fixture
def conversation(server):
    c = new_conversation(server)
    yield c
    assert server.delete(f"/chat/conversations/{c}").status_code == 204


def metrics(server):
    """Name and labels -> value."""
    rows = re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", server.get("/metrics").text, re.M)
    return {name: float(value) for name, value in rows}


def grown(server, before):
    now = metrics(server)
    return {name: now[name] - before.get(name, 0) for name in now}


def known(server, record):
    """The record once its commit and its memory are told, in the pause after it."""
    return wait(lambda: server.json(f"/chat/records/{record['id']}"),
                lambda r: r["node"] and r["peak_memory_bytes"], within(20))


def check(record, ran=True):
    """What each kind says."""
    assert record["queue_position"] >= 0 and record["duration_ms"] == record["timings"]["ran_ms"]
    assert set(record["bytes"]) == {"stdout", "stderr", "outputs"}
    assert set(record["usage"]) == {"prompt_tokens", "completion_tokens"}
    assert all(isinstance(v, int) and v >= 0 for v in record["timings"].values())
    if ran:
        assert 10 * MIB < record["peak_memory_bytes"] < 2048 * MIB
        assert record["record_ms"] is None or 0 < record["record_ms"] < within(60_000)
    else:
        assert record["peak_memory_bytes"] is None


def test_one_that_ran_and_one_that_failed(server, conversation):
    before = metrics(server)
    small = known(server, run(server, conversation, "print('x' * 1000)\n7"))
    check(small)
    assert small["bytes"]["stdout"] == 1001 and small["bytes"]["outputs"] > 0
    assert small["record_ms"] > 0  # null only where another gateway recorded it
    heavy = known(server, run(server, conversation,
                              "block = bytearray(b'x' * (200 << 20)); del block; 1/0"))
    check(heavy)
    assert heavy["status"] == "error"
    assert heavy["peak_memory_bytes"] > small["peak_memory_bytes"] + 150 * MIB
    # history has the same.
    url = f"/history/{heavy['kernel_id']}/nodes"
    for record in small, heavy:
        node = wait(lambda r=record: server.json(f"{url}/{r['node']}"),
                    lambda n: n["peak_memory_bytes"], within(20))
        assert node["peak_memory_bytes"] == record["peak_memory_bytes"]
        assert node["queue_position"] == record["queue_position"] == 0
    found = grown(server, before)
    assert found["coppice_execution_peak_memory_bytes_count"] == 2
    assert found["coppice_execution_peak_memory_bytes_sum"] == (
        small["peak_memory_bytes"] + heavy["peak_memory_bytes"])
    assert found["coppice_chat_executions_total"] == 2
    assert found['coppice_chat_output_bytes_total{kind="stdout"}'] == 1001
    assert found["coppice_execution_record_seconds_count"] >= 2
    assert found["coppice_execution_run_seconds_count"] == 2


def test_one_that_waited_behind_a_page(server, conversation):
    kernel = run(server, conversation, "1")["kernel_id"]
    before = metrics(server)
    with server.open(kernel) as page:
        page.info()
        busy = page.execute("print('on', flush=True); import time; time.sleep(1)")
        page.until_text("on", busy)
        record = known(server, run(server, conversation, "print('after')"))
        page.collect(busy)
    check(record)
    assert record["queue_position"] == 1 and record["timings"]["waited_ms"] > 300
    assert record["timings"]["ran_ms"] < record["timings"]["waited_ms"]
    found = grown(server, before)
    assert found["coppice_execution_queue_position_sum"] == 1
    assert found["coppice_execution_wait_seconds_sum"] > 0.3
    assert found['coppice_execution_wait_seconds_bucket{le="+Inf"}'] == 2


def test_one_that_was_aborted(server, conversation):
    """Case 16: it neither ran nor printed, and its record says so."""
    kernel = run(server, conversation, "1")["kernel_id"]
    answers = []
    with server.open(kernel) as page:
        page.info()
        page.execute("print('on', flush=True); import time; time.sleep(3); 1/0")
        page.until_type("stream")
        thread = threading.Thread(
            target=lambda: answers.append(run(server, conversation, "print('never')")))
        thread.start()
        thread.join()
    (record,) = answers
    check(record, ran=False)
    assert record["status"] == "aborted" and record["queue_position"] == 1
    assert record["bytes"] == {"stdout": 0, "stderr": 0, "outputs": 0}
    assert record["stdout"] == "" and record["outputs"] == []


def test_one_whose_kernel_died(server, conversation):
    record = run(server, conversation, "import os, time; print('begin', flush=True); time.sleep(.3)\n"
                 "os.kill(os.getpid(), 9)")
    check(record, ran=False)
    assert record["status"] == "died" and record["bytes"]["stdout"] == 6
    assert record["timings"]["ran_ms"] > 0
    record = known(server, run(server, conversation, "1"))
    check(record)
    assert any("anew" in n for n in record["notes"])


def test_one_that_was_stopped(server, conversation):
    with open_events(server, conversation, "import time\nprint('on', flush=True)\ntime.sleep(600)",
                     "executions", "code") as answer:
        for name, data in read_events(answer):
            if "on" in data.get("stdout", ""):
                assert server.post(
                    f"/chat/conversations/{conversation}/interrupt").status_code == 204
            if name == "message.end":
                assert data["status"] == "stopped"
                (record,) = data["records"]
    record = known(server, {"id": record})
    check(record)
    assert record["status"] == "error" and record["error"]["ename"] == "KeyboardInterrupt"


def test_one_of_a_model_and_its_repair(server, model, conversation):
    before = metrics(server)
    model.gate.clear()
    model.will_say(Answer(code("1/0"), usage=(11, 7)), Answer(code("print('b')"), usage=(30, 5)),
                   Answer("So.", usage=(50, 1)))
    with open_events(server, conversation, "Divide.") as answer:
        found = []
        for name, data in read_events(answer):
            found.append((name, data))
            # The model takes so long that its code's pause is one.
            if name == "message.start":
                model.gate.set()
            if name == "code":
                model.gate.clear()
            if name == "execution.end":
                known(server, {"id": data["record"]})
                model.gate.set()
    failed, good = records(server, found)
    check(failed), check(good)
    assert failed["usage"] == {"prompt_tokens": 11, "completion_tokens": 7}
    assert good["usage"] == {"prompt_tokens": 30, "completion_tokens": 5}
    assert good["timings"]["model_ms"] >= good["timings"]["model_first_ms"] > 0
    got = grown(server, before)
    assert got['coppice_chat_tokens_total{kind="prompt"}'] == 91
    assert got['coppice_chat_tokens_total{kind="completion"}'] == 13
    assert got["coppice_chat_repairs_total"] == 1 and got["coppice_chat_model_calls_total"] == 3
    assert got['coppice_chat_answers_total{status="ok"}'] == 1
    assert got["coppice_chat_executions_total"] == 2


def test_through_a_kill(server, conversation):
    """What was told after the record was written is kept, as the record is."""
    import signal
    from test_survival import again, cut
    record = known(server, run(server, conversation, "print('kept')"))
    cut(server, signal.SIGKILL)
    again(server)
    assert server.json(f"/chat/records/{record['id']}") == record
    check(record)


def test_what_is_unknown_is_null(process_gateway):
    """A kernel that is not ours does not say its memory."""
    c = new_conversation(process_gateway, kernel_name="plain")
    record = run(process_gateway, c, "print('x')")
    record = wait(lambda: process_gateway.json(f"/chat/records/{record['id']}"),
                  lambda r: r["node"], within(20))
    check(record, ran=False)
    assert record["record_ms"] > 0
    assert process_gateway.delete(f"/chat/conversations/{c}").status_code == 204


def test_metrics_are_prometheus_own_text(server, conversation):
    """Each histogram is one: its buckets rise, the last is the count."""
    run(server, conversation, "1")
    text, found = server.get("/metrics").text, metrics(server)
    histograms = re.findall(r"^# TYPE (\w+) histogram$", text, re.M)
    assert len(histograms) == 6
    for name in histograms:
        buckets = [float(v) for v in re.findall(rf'^{name}_bucket{{le="[^"]+"}} (\S+)$', text, re.M)]
        bounds = [float(b) for b in re.findall(rf'^{name}_bucket{{le="([^"]+)"}}', text, re.M)]
        assert buckets == sorted(buckets) and bounds == sorted(bounds) and bounds[-1] == float("inf")
        assert buckets[-1] == found[f"{name}_count"] and found[f"{name}_sum"] >= 0
