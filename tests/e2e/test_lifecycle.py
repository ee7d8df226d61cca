"""Interrupt, restart, DELETE, culling, ordered ends: wire-contract 1.12, field case 35."""

import signal
import threading
import time

import pytest

import engine
from gateway import wait, within
from test_handshake import upgrade
from wire import Closed


def containers_of(server):
    return engine.containers(server.run_dir)


def names_of(server):
    return {name.lstrip("/") for r in containers_of(server) for name in r["Names"]}


def strays_of(server):
    """Containers that belong neither to a kernel nor to the pool."""
    names = names_of(server)
    rows = server.show("slots") + server.show("pool")["kernels"]
    return names - {r["slot"]["container"] for r in rows if r["slot"]}


class TestInterrupt:
    @pytest.mark.parametrize("code", [
        "import time; print('on', flush=True); time.sleep(60)",
        "print('on', flush=True)\nwhile True: pass",
        "import subprocess; print('on', flush=True); subprocess.run(['sleep', '60'])"],
        ids=["sleep", "loop", "child"])
    def test_long_cell(self, docker_gateway, kernel, any_client, code):
        msg_id = any_client.execute(code)
        held = any_client.execute("print('held')")
        any_client.until_text("on", msg_id)
        assert docker_gateway.post(f"/api/kernels/{kernel}/interrupt").status_code == 204
        run = any_client.collect(msg_id, within(10))
        assert run.status == "error" and run.reply.content["ename"] == "KeyboardInterrupt"
        assert any_client.collect(held, within(5)).status == "aborted"
        assert any_client.run("print('fine')").stdout == "fine\n"

    def test_by_control_message(self, any_client):
        msg_id = any_client.execute("import time; print('on', flush=True); time.sleep(60)")
        any_client.until_text("on", msg_id)
        any_client.ask("interrupt_request", channel="control")
        assert any_client.collect(msg_id, within(10)).status == "error"

    def test_code_that_swallows_it_is_told(self, docker_gateway, kernel, any_client):
        msg_id = any_client.execute(
            "import time; print('on', flush=True)\n"
            "end = time.time() + 100\n"
            "while time.time() < end:\n"
            "    try:\n"
            "        while time.time() < end: time.sleep(.01)\n"
            "    except KeyboardInterrupt: pass")
        any_client.until_text("on", msg_id)
        docker_gateway.post(f"/api/kernels/{kernel}/interrupt")
        notice = any_client.until(
            lambda m: m.type == "stream" and "interrupt" in m.content["text"].lower(), within(12))
        assert notice.content["name"] == "stderr"
        assert docker_gateway.post(f"/api/kernels/{kernel}/restart").status_code == 200
        assert any_client.run("print('fine')", timeout=within(15)).stdout == "fine\n"

    def test_signal_mode(self, process_gateway):
        with process_gateway.kernel("plain") as kernel_id, process_gateway.open(kernel_id) as c:
            c.info()
            assert c.run("import os; print(os.environ.get('FROM_SPEC'))").stdout == "yes\n"
            msg_id = c.execute("import time; print('on', flush=True); time.sleep(60)")
            c.until_text("on", msg_id)
            process_gateway.post(f"/api/kernels/{kernel_id}/interrupt")
            assert c.collect(msg_id, within(10)).reply.content["ename"] == "KeyboardInterrupt"


class TestRestart:
    def test_same_socket_goes_on(self, docker_gateway, kernel, any_client):
        any_client.run("a = 1")
        response = docker_gateway.post(f"/api/kernels/{kernel}/restart")
        assert response.status_code == 200
        assert response.json()["id"] == kernel
        run = any_client.run("print('a' in dir())")
        assert run.stdout == "False\n" and run.reply.content["execution_count"] == 1

    def test_is_no_death(self, docker_gateway, kernel, any_client):
        """On `restarting` JupyterLab says that the kernel appears to have died, over the page."""
        seen = len(any_client.messages)
        docker_gateway.post(f"/api/kernels/{kernel}/restart")
        any_client.info()
        states = [m.content["execution_state"] for m in any_client.messages[seen:]
                  if m.type == "status"]
        assert "restarting" not in states and "dead" not in states, states

    def test_every_other_client_is_told(self, docker_gateway, kernel, client):
        with docker_gateway.open(kernel, "v1") as other:
            other.info()
            seen = len(other.messages)
            docker_gateway.post(f"/api/kernels/{kernel}/restart")
            other.until(lambda m: (m.type == "status" and m.content["execution_state"] in
                                   ("restarting", "starting")) or m.type == "shutdown_reply",
                        within(10), skip=seen)
            assert other.run("1+1").result == "2"
            assert client.run("2+2").result == "4"

    def test_request_in_flight_ends(self, docker_gateway, kernel, any_client):
        msg_id = any_client.execute("import time; print('on', flush=True); time.sleep(60)")
        held = any_client.execute("print('held')")
        any_client.until_text("on", msg_id)
        docker_gateway.post(f"/api/kernels/{kernel}/restart")
        assert any_client.collect(msg_id, within(10)).status in ("aborted", "error")
        assert any_client.collect(held, within(10)).status in ("aborted", "error")
        assert any_client.run("print('fine')").stdout == "fine\n"

    def test_new_socket_after_it(self, docker_gateway, kernel, client):
        """JupyterLab opens a new socket of the same session after a restart."""
        docker_gateway.post(f"/api/kernels/{kernel}/restart")
        with docker_gateway.open(kernel, session=client.session) as again:
            again.info()
            assert again.run("print('fine')").stdout == "fine\n"

    def test_of_a_kernel_that_starts(self, docker_gateway):
        with docker_gateway.kernel("python3") as kernel_id:
            assert docker_gateway.post(f"/api/kernels/{kernel_id}/restart").status_code == 200
            with docker_gateway.open(kernel_id) as c:
                assert c.run("print('fine')").stdout == "fine\n"

    def test_twice_at_once(self, docker_gateway, kernel, client):
        codes = []
        threads = [threading.Thread(target=lambda: codes.append(
            docker_gateway.post(f"/api/kernels/{kernel}/restart").status_code)) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert set(codes) <= {200, 409, 503} and 200 in codes
        assert client.run("print('fine')", timeout=within(15)).stdout == "fine\n"

    def test_polite_request_of_a_client(self, any_client, docker_gateway, kernel):
        """shutdown_request with restart on control: the kernel goes and comes back."""
        # The first start's own "starting" may come after its readiness: control answers first.
        before = len(any_client.messages)
        any_client.send("control", "shutdown_request", {"restart": True})
        any_client.until_type("shutdown_reply", timeout=within(10), skip=before)
        any_client.until(lambda m: m.type == "status" and m.content["execution_state"] in
                         ("restarting", "starting"), within(10), skip=before)
        assert any_client.run("print('fine')", timeout=within(15)).stdout == "fine\n"


class TestDelete:
    @pytest.mark.parametrize("framing", ["legacy", "v1"])
    def test_sockets_are_closed_after_dead(self, docker_gateway, framing):
        kernel_id = docker_gateway.start_kernel("python3")
        with docker_gateway.open(kernel_id, framing) as a, docker_gateway.open(kernel_id) as b:
            a.info(), b.info()
            assert docker_gateway.delete(f"/api/kernels/{kernel_id}").status_code == 204
            for c in (a, b):
                closed = c.until_closed(within(8))
                assert closed.code == 1000, closed
                states = [m.content["execution_state"] for m in c.messages if m.type == "status"]
                assert states[-1] == "dead"

    def test_cell_in_flight_ends_first(self, docker_gateway):
        kernel_id = docker_gateway.start_kernel("python3")
        with docker_gateway.open(kernel_id) as c:
            c.info()
            msg_id = c.execute("import time; print('on', flush=True); time.sleep(60)")
            c.until_text("on", msg_id)
            docker_gateway.delete(f"/api/kernels/{kernel_id}")
            assert c.until_closed(within(8)).code == 1000
            assert c.runs[msg_id].reply and c.runs[msg_id].idle

    def test_container_goes(self, docker_gateway):
        kernel_id = docker_gateway.start_kernel("python3")
        with docker_gateway.open(kernel_id) as c:
            c.info()
        container = docker_gateway.container_of(kernel_id)
        assert container in names_of(docker_gateway)
        docker_gateway.delete(f"/api/kernels/{kernel_id}")
        wait(lambda: names_of(docker_gateway), lambda names: container not in names, within(8))

    def test_of_a_kernel_that_starts(self, docker_gateway):
        ids = [docker_gateway.start_kernel("python3") for _ in range(3)]
        for kernel_id in ids:
            assert docker_gateway.delete(f"/api/kernels/{kernel_id}").status_code == 204
        wait(lambda: strays_of(docker_gateway), lambda strays: not strays, within(15))

    def test_upgrade_after_it_is_404(self, docker_gateway):
        kernel_id = docker_gateway.start_kernel("python3")
        docker_gateway.delete(f"/api/kernels/{kernel_id}")
        assert upgrade(docker_gateway, kernel_id)[0] == 404

    def test_kernel_that_shuts_itself_down(self, docker_gateway):
        """shutdown_request without restart, as jupyter_client's clients send it."""
        with docker_gateway.kernel("python3") as kernel_id, docker_gateway.open(kernel_id) as c:
            c.info()
            c.send("control", "shutdown_request", {"restart": False})
            try:
                c.until(lambda m: m.type == "status" and m.content["execution_state"] in
                        ("dead", "restarting", "starting"), within(10))
            except Closed:
                pass


class TestCulling:
    """Field case 35: idle limit 2 s, looked for every 0.5 s."""

    @pytest.fixture
    def server(self, docker_server):
        return docker_server("cull", "--cull-idle-timeout", "2s", "--cull-interval", "500ms")

    def test_case_35(self, server):
        a, b, c = (server.start_kernel("python3") for _ in range(3))
        stop = threading.Event()

        def poll():
            while not stop.wait(0.3):
                server.get(f"/api/kernels/{c}")

        with server.open(a) as work, server.open(b) as open_tab:
            work.info(), open_tab.info()
            # Only B's socket stays; polling C is no use of it.
            msg_id = work.execute("import time; print('on', flush=True); time.sleep(6)\n"
                                  "print('kept')")
            work.until_text("on", msg_id)
            thread = threading.Thread(target=poll)
            thread.start()
            try:
                wait(lambda: c in [m["id"] for m in server.json("/api/kernels")],
                     lambda there: not there, within(6))
                assert server.get(f"/api/kernels/{c}").status_code == 404
                assert upgrade(server, c)[0] == 404
            finally:
                stop.set()
                thread.join()
            assert server.model(a)["execution_state"] == "busy", "a long silent cell is work"
            run = work.collect(msg_id, within(10))
            assert run.stdout == "on\nkept\n"
            ended = time.monotonic()
            work.close()
            wait(lambda: server.get(f"/api/kernels/{a}").status_code, lambda s: s == 404, within(6))
            # The idle clock begins at busy -> idle, so it is not gone the moment its cell ended.
            assert time.monotonic() - ended > 1.5
            # B has a client; that counts as use (cull_connected is off).
            assert server.model(b)["execution_state"] == "idle"
        wait(lambda: server.json("/api/kernels"), lambda rows: rows == [], within(6))
        wait(lambda: containers_of(server), lambda rows: rows == [], within(8))
        # What it ran stays.
        node = server.json(f"/history/{a}/nodes/HEAD")
        assert node["status"] == "ok"
        assert [o["text"] for o in node["outputs"]] in (["on\nkept\n"], [["on\n", "kept\n"]])

    def test_connected_ones_when_asked(self, docker_server):
        server = docker_server("cull-connected", "--cull-idle-timeout", "1s", "--cull-interval",
                               "500ms", "--cull-connected")
        kernel_id = server.start_kernel("python3")
        with server.open(kernel_id) as c:
            c.info()
            assert c.until_closed(within(8)).code == 1000
            assert "dead" in {m.content.get("execution_state") for m in c.messages}, "told"


class TestOrderedEnd:
    def test_with_open_clients(self, docker_server):
        server = docker_server("end")
        kernels = [server.start_kernel("python3") for _ in range(2)]
        clients = [server.open(k, f) for k in kernels for f in ("legacy", "v1")]
        for c in clients:
            c.info()
        clients[0].execute("import time; time.sleep(60)")
        server.process.send_signal(signal.SIGINT)
        for c in clients:
            assert c.until_closed(within(10)).code == 1001
        server.exit_code = server.process.wait(within(15))
        assert server.exit_code == 0, server.log()[-4000:]
        assert containers_of(server) == []
        server.kill()

    def test_for_a_successor(self, docker_server):
        """SIGTERM: pages are told to come again, kernels live on amid their cells."""
        server = docker_server("end-term")
        kernels = [server.start_kernel("python3") for _ in range(2)]
        clients = [server.open(k, f) for k in kernels for f in ("legacy", "v1")]
        for c in clients:
            c.info()
        clients[0].execute("import time; time.sleep(60)")
        before = names_of(server)
        server.process.send_signal(signal.SIGTERM)
        for c in clients:
            assert c.until_closed(within(10)).code == 1012
        server.exit_code = server.process.wait(within(15))
        assert server.exit_code == 0, server.log()[-4000:]
        assert len(before) == 2 and names_of(server) == before
        server.kill()

    def test_while_kernels_start(self, docker_server):
        server = docker_server("end-early")
        for _ in range(3):
            server.start_kernel("python3")
        server.stop()

    def test_with_a_request_half_sent(self, process_server):
        import socket
        server = process_server("end-half")
        server.start_kernel("fake")
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall(b"POST /api/kernels HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            server.stop()

    def test_twice_interrupted(self, docker_server):
        server = docker_server("end-twice")
        with server.open(server.start_kernel("python3")) as c:
            c.info()
            server.process.send_signal(signal.SIGINT)
            server.process.send_signal(signal.SIGINT)
            code = server.exit_code = server.process.wait(within(15))
            assert code in (0, 1, 130)
        server.kill()


def test_leftovers_of_a_killed_gateway_are_swept(docker_server):
    """kill -9 of the gateway, and what it had written down of its kernels is gone too; the next one
    of the same run folder leaves no orphan. (Kernels with a row are adopted: test_survival.)"""
    import shutil
    import subprocess
    server = docker_server("killed")
    with server.open(server.start_kernel("python3")) as c:
        c.info()
    assert containers_of(server)
    server.process.kill()
    server.process.wait()
    shutil.rmtree(server.data_dir / "kernels")
    again = subprocess.Popen(server.argv, env=server.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=server.home)
    try:
        line = ""
        while "Coppice is ready" not in line:
            line = again.stdout.readline().decode()
            assert line, "it did not come up"
        wait(lambda: containers_of(server), lambda rows: rows == [], within(10))
    finally:
        again.send_signal(signal.SIGINT)
        again.stdout.read()
        server.exit_code = again.wait(within(10))
        server.kill()
    assert server.exit_code == 0
