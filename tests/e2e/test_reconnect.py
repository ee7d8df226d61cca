"""Field case 13: what happened while the line was down. The rule for each kind of newcomer is that of
docs/PROTOCOL.md under `session_id`. And the client that ends its line itself at each message over
10 MiB, to come back for it."""

import contextlib
import json

import pytest

import engine
from gateway import wait, within
from test_survival import complete, follow, reconnected
from wire import Run

FRAMINGS = ("legacy", "v1")
# The case's own cell; after `k 2` it waits until the line is down, so that no message is on its way
# to a client that has just gone.
CODE = """
import os, time
for k in range(10):
    print("k", k, flush=True)
    while k == 2 and not os.path.exists("/work/down"): time.sleep(0.02)
    time.sleep(0.3)
"""
LINES = "".join(f"k {k}\n" for k in range(10))
MIB = 1 << 20
PROXY = {"User-Agent": "Tornado/6.5"}
PROXY_MAX = 10 * MIB


def begun(client):
    run = client.execute(CODE)
    client.until_text("k 2\n", run)
    return run


def lost(server, kernel_id, client):
    """Its line goes down; the gateway has seen it. What this machine's TCP has not acknowledged comes
    again, by the rule; a pong carries the acknowledgement of all that was received."""
    client.ws.pong(b"")
    client.cut()
    server.wait_show("clients", lambda rows: not row_of(rows, client)["attached"], within(10))


def row_of(rows, client):
    (row,) = [r for r in rows if r["session_id"] == client.session]
    return row


def on(server, kernel_id):
    assert engine.run(server.container_of(kernel_id), "touch", "/work/down") == 0


def more_was_said(server, client, n=3):
    server.wait_show("clients", lambda rows: row_of(rows, client)["behind"] >= n, within(20))


def over(server, run):
    """The cell's reply has come too: only then the gateway takes it for ended."""
    server.wait_show("executions", lambda rows: all(
        r["state"] == "done" for r in rows if r["msg_id"] == run), within(20))


def end(client, run):
    """Follows that run to its end: everything once."""
    assert follow(client, run, complete)
    client.drain()
    of = client.runs[run].messages
    assert client.runs[run].stdout == LINES
    assert client.runs[run].outline() == ["busy", "execute_input", ("stdout", LINES), "idle"]
    assert [m.type for m in of].count("execute_reply") == 1 and client.runs[run].status == "ok"
    ids = [m.header["msg_id"] for m in of]
    assert len(ids) == len(set(ids)), "a message came twice"


@pytest.mark.parametrize("framing", FRAMINGS)
def test_case_13_the_same_session(docker_gateway, kernel, framing):
    first = docker_gateway.open(kernel, framing)
    first.info()
    run = begun(first)
    lost(docker_gateway, kernel, first)
    on(docker_gateway, kernel)
    more_was_said(docker_gateway, first)
    with reconnected(docker_gateway, kernel, first) as again:
        end(again, run)
        assert again.run("print('on')").stdout == "on\n"


@pytest.mark.parametrize("framing", FRAMINGS)
def test_case_13_another_session(docker_gateway, kernel, framing):
    """Another session gets the running cell from its start, but not the asker's reply, and takes
    nothing away from the one that is gone; after the cell's end it begins there."""
    first = docker_gateway.open(kernel, framing)
    first.info()
    run = begun(first)
    lost(docker_gateway, kernel, first)
    on(docker_gateway, kernel)
    more_was_said(docker_gateway, first)
    with docker_gateway.open(kernel, framing) as other:
        other.until(lambda m: m.parent_id == run and other.runs[run].idle, within(20))
        assert other.messages[0].content == {"execution_state": "busy"}
        other.drain()
        assert other.runs[run].outline() == ["busy", "execute_input", ("stdout", LINES), "idle"]
        assert other.runs[run].reply is None
    over(docker_gateway, run)
    with docker_gateway.open(kernel, framing) as late:
        late.drain()
        assert run not in late.runs, late.messages
    with reconnected(docker_gateway, kernel, first) as again:
        end(again, run)


def test_any_number_of_sessions(docker_gateway, kernel):
    """Eight of both framings: cut one by one, they come back in another order, twice, and one of
    them is the asker."""
    pages = [docker_gateway.open(kernel, FRAMINGS[i % 2]) for i in range(8)]
    for page in pages:
        page.info()
    run = pages[0].execute(CODE)
    for page in pages:
        page.runs.setdefault(run, Run(run))
        page.until_text("k 2\n", run)
        lost(docker_gateway, kernel, page)
    on(docker_gateway, kernel)
    more_was_said(docker_gateway, pages[0])
    for i in (3, 0, 6):  # these are there while it goes on, and are cut once more
        back = reconnected(docker_gateway, kernel, pages[i])
        back.until_text("k 3\n", run)
        back.drain()
        lost(docker_gateway, kernel, back)
    docker_gateway.wait_state(kernel, "idle", within(20))
    for page in reversed(pages):
        with reconnected(docker_gateway, kernel, page) as back:
            assert follow(back, run, lambda r: r.idle)
            back.drain()
            assert back.runs[run].stdout == LINES
            assert back.runs[run].states == ["busy", "idle"]
            ids = [m.header["msg_id"] for m in back.runs[run].messages]
            assert len(ids) == len(set(ids)), "a message came twice"
            assert (back.runs[run].reply is not None) == (page is pages[0])


def files_bytes(server, kernel_id):
    total = 0
    for f in (server.data_dir / "journals" / kernel_id).glob("*.seg"):
        with contextlib.suppress(FileNotFoundError):  # cut meanwhile
            total += f.stat().st_size
    return total


def test_case_13_with_nobody_back_it_stays_under_its_cap(docker_server):
    """A tab that was closed for good, and a cell that says six times what is kept."""
    server = docker_server("cap", "--journal-memory", "1M", "--journal-disk", "4M")
    with server.kernel("python3") as kernel_id:
        gone = server.open(kernel_id)
        gone.info()
        run = gone.execute("print('k 2')\n" + CODE.replace("k == 2", "k == 0") +
                           "for k in range(3000): print('y' * 8000, flush=True)\n"
                           "display({'text/plain': 'last'}, raw=True)")
        gone.until_text("k 0\n", run)
        lost(server, kernel_id, gone)
        on(server, kernel_id)

        def looked():
            (row,) = server.rows_of("kernels", kernel_id)
            assert row["journal_memory_bytes"] <= 2 * MIB, row
            # Cut after each write, in quarters: one that is being removed, and what was written.
            assert row["journal_disk_bytes"] <= 6 * MIB, row
            assert files_bytes(server, kernel_id) <= 6 * MIB
            return row

        row = wait(looked, lambda r: r["execution_state"] == "idle", within(60))
        assert row["journal_first"] > 2000, "it was never full"
        wait(lambda: files_bytes(server, kernel_id), lambda n: 0 < n <= 4 * MIB, within(10))
        with server.open(kernel_id, session=gone.session) as back:
            back.runs = gone.runs
            notice = back.until(lambda m: m.type == "stream" and "missing here" in
                                m.content["text"], within(20))
            assert notice.content["name"] == "stderr"
            back.collect(run, within(20))
            assert back.runs[run].status == "ok"
            assert back.runs[run].iopub("display_data")


# ---- JupyterLab's server before the gateway: wire-contract 1.10 ----

OUTPUT = {"send": "iopub", "type": "display_data",
          "content": '{"data": {"text/plain": "@fill"}, "metadata": {}}'}
REPLY = {"send": "shell", "type": "execute_reply", "content":
         '{"status": "ok", "execution_count": 1, "payload": ["@fill"], "user_expressions": {}}'}


def kept_back(run):
    return [m.content["text"] for m in run.iopub("stream") if "was kept back" in m.content["text"]]


def ask_as_the_proxy(server, kernel_id, *steps):
    """That run as the proxy has it, and as an ordinary client of v1 has it. Nothing that the proxy
    would reset its line for comes, nor when it comes again with its session."""
    with server.open(kernel_id, headers=PROXY) as c, server.open(kernel_id, "v1") as other:
        c.info(), other.info()
        run = c.execute(json.dumps(steps))
        c.collect(run)
        c.cut()
        other.until(lambda m: m.parent_id == run and other.runs[run].idle, within(20))
        with server.open(kernel_id, session=c.session, headers=PROXY) as again:
            assert again.run("1").status == "ok"
            for m in c.messages + again.messages:
                assert len(m.raw) <= PROXY_MAX, f"{m.type} of {len(m.raw)} bytes"
        return c.runs[run], other.runs[run]


def test_the_proxy_is_spared_what_resets_it(process_gateway, fake_kernel):
    """An output and a reply of 11 MiB: a line for each, and an answer, so that the request ends."""
    run, others = ask_as_the_proxy(
        process_gateway, fake_kernel, {**OUTPUT, "fill": 11 * MIB}, {**OUTPUT, "fill": 9 * MIB},
        {**REPLY, "fill": 11 * MIB}, {"no_reply": True})
    lines = kept_back(run)
    assert [line.split()[2] for line in lines] == ["display_data", "execute_reply"], lines
    assert all(str(10 * MIB) in line for line in lines)
    assert len(run.iopub("display_data")) == 1 and run.status == "error"
    sizes = [len(m.content["data"]["text/plain"]) for m in others.iopub("display_data")]
    assert sizes == [11 * MIB, 9 * MIB] and not kept_back(others)


@pytest.mark.parametrize("id_bytes", [36, 255])
def test_at_the_limit_the_proxy_gets_it_whole_or_a_line(process_gateway, fake_kernel, id_bytes):
    head = {"msg_id": "i" * id_bytes, "msg_type": "t" * id_bytes, "session": "s", "username": "u",
            "version": "5.4", "date": "2024-01-01T00:00:00.000000Z"}
    step = {**OUTPUT, "header": json.dumps(head)}
    with process_gateway.open(fake_kernel) as c:
        run = c.run(json.dumps([step]))
        (m,) = [m for m in run.messages if m.type == head["msg_type"]]
        fits = PROXY_MAX - len(m.raw)
    for more in (-5000, 0, 1, 100, 5000):
        run, _ = ask_as_the_proxy(process_gateway, fake_kernel, {**step, "fill": fits + more})
        got = [len(m.raw) for m in run.messages if m.type == head["msg_type"]]
        assert len(got) + len(kept_back(run)) == 1
        assert got == [PROXY_MAX + more] or more > -5000
