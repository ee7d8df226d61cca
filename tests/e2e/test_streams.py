"""Streams: field case 26, floods, and slow readers."""

import pytest

from gateway import within


def test_case_26_carriage_returns_are_left_alone(any_client):
    run = any_client.run('import sys\n'
                         'for s in (" 10%", " 55%", "100%"):\n'
                         '    sys.stdout.write("\\r" + s); sys.stdout.flush()\n'
                         'sys.stdout.write("\\na\\r\\r\\nb\\r\\n")')
    assert run.stdout == "\r 10%\r 55%\r100%\na\r\r\nb\r\n"


def test_colours_are_left_alone(any_client):
    text = "\x1b[31mred\x1b[0m \x1b]8;;u\x07link\x1b]8;;\x07 \x9b1mC1"
    assert any_client.run(f"print({text!r})").stdout == text + "\n"


def test_flood_of_lines_is_whole(v1_client):
    run = v1_client.run("for k in range(20000): print(k, flush=True)", timeout=120)
    assert run.stdout == "".join(f"{k}\n" for k in range(20000))
    assert run.status == "ok"


def test_five_megabytes_at_once(any_client):
    run = any_client.run("print('0123456789' * 500000)", timeout=60)
    assert len(run.stdout) == 5000001 and run.status == "ok"


def test_scripted_flood(process_gateway, fake_client):
    """20,000 messages as fast as a kernel can, a comm message every 100."""
    block = [{"send": "iopub", "type": "stream", "content": '{"name": "stdout", "text": "x"}',
              "times": 100}, {"send": "iopub", "type": "comm_msg",
                              "content": '{"comm_id": "c", "data": {}}'}]
    import json
    run = fake_client.run(json.dumps(block * 200), timeout=120)
    assert len(run.stdout) == 20000 and len(run.iopub("comm_msg")) == 200
    assert run.states == ["busy", "idle"]


@pytest.mark.parametrize("framing", ["legacy", "v1"])
def test_a_slow_reader_loses_nothing_and_holds_nobody(docker_gateway, kernel, framing):
    """One client does not read at all while another takes the flood."""
    with docker_gateway.open(kernel, framing) as slow, docker_gateway.open(kernel) as quick:
        slow.info(), quick.info()
        run = quick.run("for k in range(100000): print('line', k)", timeout=120)
        expected = "".join(f"line {k}\n" for k in range(100000))
        assert run.stdout == expected
        with docker_gateway.kernel("python3") as other, docker_gateway.open(other) as o:
            assert o.run("1+1", timeout=within(15)).result == "2"
        slow.until(lambda m: m.type == "status" and m.parent_id == run.msg_id
                   and m.content["execution_state"] == "idle", 120)
        assert slow.runs[run.msg_id].stdout == expected


def test_order_of_streams_and_displays(any_client):
    run = any_client.run("import sys\nfrom IPython.display import display\n"
                         "print('a'); sys.stdout.flush(); display(1); print('b', file=sys.stderr);"
                         "sys.stderr.flush(); print('c'); 9")
    assert run.outline() == ["busy", "execute_input", ("stdout", "a\n"), "display_data",
                             ("stderr", "b\n"), ("stdout", "c\n"), "execute_result", "idle"]


def test_output_after_idle_arrives(any_client):
    run = any_client.run("import threading, time\n"
                         "def late():\n    time.sleep(.3); print('late', flush=True)\n"
                         "threading.Thread(target=late).start()")
    any_client.until_text("late", run.msg_id, within(5))


def test_clear_output_and_updates_pass(any_client):
    run = any_client.run("from IPython.display import clear_output, display\n"
                         "h = display('A0', display_id=True)\n"
                         "clear_output(wait=True); h.update('A1')")
    assert run.iopub("clear_output")[0].content["wait"] is True
    (update,) = run.iopub("update_display_data")
    assert update.content["transient"]["display_id"] == \
        run.iopub("display_data")[0].content["transient"]["display_id"]


def test_memory_stays_bounded_in_a_flood(docker_gateway, kernel, client):
    """A reader that is away costs the gateway its journal's memory, not the flood's."""
    with docker_gateway.open(kernel) as stalled:
        stalled.info()
        before = resident_mb(docker_gateway.process.pid)
        client.run("s = 'y' * 10000\nfor k in range(8000): print(s)", timeout=120)
        grown = resident_mb(docker_gateway.process.pid) - before
        # 80 MB went through; memory of a kernel's journal is 8 MiB. Sanitizers keep freed blocks.
        assert grown < 64 or "asan" in str(docker_gateway.argv[0]), f"{grown} MB"


def resident_mb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


@pytest.mark.parametrize("harm", [
    "sys.stdout = None", "sys.stderr = None", "del sys.stderr",
    "sys.stdout = open('/dev/null', 'w'); sys.stdout.close()",
    "sys.stdout = sys.stderr = type('Writes', (), {'write': lambda self, text: None})()",
    "print('first'); sys.stdout.close(); sys.stdout = None"])
def test_a_cell_ends_whatever_stands_in_place_of_a_stream(any_client, harm):
    """ipykernel flushes both before it replies and before it says idle: it did neither then, and all
    later cells waited for it."""
    run = any_client.run(f"import sys\n{harm}")
    assert run.status == "ok" and run.states == ["busy", "idle"]
    assert "could not be flushed" in run.stderr
    assert any_client.run("1 + 1").result == "2"


def test_a_closed_stream_says_so_and_no_more(any_client):
    any_client.run("import sys\nprint('first'); sys.stdout.close()")
    run = any_client.run("print('second')")
    assert run.status == "error" and "closed file" in run.reply.content["evalue"]
    assert any_client.run("1 + 1").result == "2"
