"""The container engine is killed and restarted under running kernels: a second dockerd, so that
nobody else's containers are touched. With live-restore nothing is lost; without it kernels die, and
their pages hear of it."""

import json
import signal

import pytest

import engine
from gateway import Server, wait, within
from own_engine import OwnEngine
from test_survival import again, assert_whole, complete, cut, follow, reconnected, seen_ticks, ticker

pytestmark = pytest.mark.timeout(300)
FOREIGN = """[kernelspec foreign]
image = coppice-kernel
argv = ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
"""
HOWS = signal.SIGKILL, signal.SIGTERM


@pytest.fixture(scope="module")
def own(container_engine):
    own = OwnEngine()
    try:
        yield own
    finally:
        own.close()


@pytest.fixture
def serve(own, monkeypatch):
    """Starts the engine, and a gateway that uses it."""
    def serve(name, live_restore):
        own.start(live_restore)
        own.take_image("coppice-kernel")
        monkeypatch.setattr(engine, "SOCKET", own.socket)
        return Server(name, "--engine", "docker", "--pool-floor", "0", "--engine-socket",
                      own.socket, config=FOREIGN)

    yield serve
    if own.process:
        own.stop()


def restart(own, live_restore, how):
    own.stop(how)
    own.start(live_restore)


def assert_serves(server):
    """A kernel can be started."""
    with server.kernel("python3") as other, server.open(other) as c:
        c.info()
        assert c.run("print(6 * 7)").stdout == "42\n"


def test_with_live_restore_nothing_is_lost(own, serve):
    with serve("engine-live", live_restore=True) as server:
        kernel_id, foreign_id = server.start_kernel("python3"), server.start_kernel("foreign")
        with server.open(kernel_id) as c, server.open(foreign_id) as foreign:
            for client in (c, foreign):
                client.info()
                assert client.run("kept = 'intact'").status == "ok"
            for how in HOWS:
                runs = [(client, client.execute(ticker())) for client in (c, foreign)]
                for client, run in runs:
                    assert follow(client, run, lambda r: seen_ticks(r, 3))
                restart(own, True, how)
                for client, run in runs:
                    assert follow(client, run, complete)
                    assert_whole(client.runs[run])
                    assert client.run("print(kept, seen)").stdout == "intact 60\n"
            assert_serves(server)
            assert server.delete(f"/api/kernels/{foreign_id}").status_code == 204
            run = c.execute(ticker())
            assert follow(c, run, lambda r: seen_ticks(r, 3))
            own.stop(signal.SIGKILL)
            cut(server, signal.SIGKILL)
            follow(c, run, complete)
        again(server)
        with reconnected(server, kernel_id, c) as c:
            assert follow(c, run, complete)
            assert_whole(c.runs[run])
            assert c.run("print(kept)").stdout == "intact\n"
            # A restart is a new process in the same container.
            assert server.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
            c.info()
            assert c.run("print('kept' in globals())").stdout == "False\n"
            own.start(live_restore=True)
            assert c.run("print('on')").stdout == "on\n"
        assert_serves(server)
        assert [r["Names"] for r in engine.containers(server.run_dir)] == [
            [f"/{server.container_of(kernel_id)}"]]


@pytest.mark.parametrize("how", HOWS, ids=["kill", "term"])
def test_without_it_a_kernel_dies_and_its_pages_hear_why(own, serve, how):
    with serve(f"engine-{how.name}", live_restore=False) as server:
        kernel_id = server.start_kernel("python3")
        with server.open(kernel_id) as c:
            c.info()
            run = c.execute("print('begun')\nimport time\ntime.sleep(600)")
            held = c.execute("print('never')")
            c.until_text("begun", run)
            before = server.container_of(kernel_id)
            restart(own, False, how)
            for msg_id in (run, held):
                assert c.collect(msg_id, within(20)).status == "aborted"
            said = "\n".join(json.dumps(m.content) for m in c.messages)
            print(said)
            assert "The kernel died" in said
        server.wait_state(kernel_id, "idle", within(30))
        with server.open(kernel_id) as c:
            c.info()
            assert c.run("print('back')").stdout == "back\n"
        assert_serves(server)
        assert server.container_of(kernel_id) != before
        wait(lambda: len(engine.containers(server.run_dir)), lambda n: n == 1, within(10))
