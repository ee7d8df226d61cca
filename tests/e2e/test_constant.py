"""What a gateway holds does not grow with what it has done: descriptors and memory after a thousand
reconnects and hundreds of kernels are those of before. The plain build, since a sanitizer keeps what
is freed. Memory is what was asked for and not given back, by the allocator's own count: what is
resident goes up and down by some hundred KiB from round to round, which would hide a leak of one
small block in each, or be taken for one."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import process_env
from gateway import BUILD, Server, wait, within
from test_kills import descriptors

pytestmark = pytest.mark.timeout(600)
RECONNECTS, STARTS = 1000, 300
AT_ONCE = 4
# The least block there is, 32 bytes, for each reconnect and start is more than the first of these;
# freed blocks that threads keep at hand count as taken.
NOISE_BYTES = 40 << 10
RECORDER_NOISE_BYTES = 128 << 10  # caches of sqlite and libgit2, which are bounded: 42 to 54 KB
MAPS_NOISE = STARTS // 10  # what is not the allocator's


def heap(server):
    text = server.get("/metrics").text
    return int(re.search(r"^coppice_heap_bytes (\d+)$", text, re.M)[1])


def maps(server):
    return len(Path(f"/proc/{server.process.pid}/maps").read_text().splitlines())


def all_gone(server):
    wait(lambda: (server.json("/api/kernels"), server.show("clients"), server.show("slots")),
         lambda found: not any(found), within(30))
    wait(lambda: server.show("counters")["unrecorded"], lambda n: n == 0, within(60))


def reconnect(server, kernel_id, count):
    """Pages of one session after another, and the same session again and again."""
    session = None
    for i in range(count):
        with server.open(kernel_id, ("legacy", "v1")[i % 2], session=session) as c:
            if i % 10 == 0:
                assert c.run("1").status == "ok"
        session = c.session if i % 2 else None


def start_and_end(server, count):
    def one(i):
        with server.kernel("fake") as kernel_id:
            with server.open(kernel_id, ("legacy", "v1")[i % 2]) as c:
                assert c.run("1", within(30)).status == "ok"
                if i % 5 == 0:
                    assert server.post(f"/api/kernels/{kernel_id}/restart").status_code == 200

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, range(count)))


@pytest.fixture
def gateway(spec_path, monkeypatch):
    monkeypatch.setenv("COPPICE_BIN", str(BUILD / "coppice"))
    return lambda *args: Server("constant", "--engine", "process", *args,
                                env=process_env(spec_path))


def both(server, reconnects, starts):
    with server.kernel("fake") as kernel_id:
        reconnect(server, kernel_id, reconnects)
    start_and_end(server, starts)
    all_gone(server)


@pytest.mark.parametrize("record,noise", [("false", NOISE_BYTES),
                                          ("true", RECORDER_NOISE_BYTES)],
                         ids=["unrecorded", "recorded"])
def test_reconnects_and_starts_leave_nothing(gateway, record, noise):
    # A history that waits to be packed is a note of some 230 bytes: here it does not wait for long.
    with gateway(f"--record={record}", "--pack-idle", "1s") as server:
        both(server, RECONNECTS, STARTS)  # tables and pools have their size by now
        fds, heap_before, maps_before = descriptors(server.process.pid), heap(server), maps(server)
        both(server, RECONNECTS, STARTS)
        wait(lambda: descriptors(server.process.pid), lambda found: found <= fds, within(20))  # one was closing, perhaps
        grown = heap(server) - heap_before
        assert grown <= noise, f"{grown} bytes more than before"
        assert maps(server) - maps_before <= MAPS_NOISE
