"""Tokens, owners, origins, TLS: wire-contract 1.4, requirement R37."""

import subprocess

import pytest
import websocket

from gateway import ALICE, BOB, READER, Server, within
from test_rest import NOBODY, check_error
from wire import open_socket


def ws_status(url, **options):
    """The HTTP status that an upgrade is answered with."""
    try:
        ws = open_socket(url, **options)
        ws.close()
        return 101
    except websocket.WebSocketBadStatusException as e:
        return e.status_code


class TestToken:
    @pytest.mark.parametrize("headers", [
        {"Authorization": f"token {ALICE}"}, {"Authorization": f"Bearer {ALICE}"},
        {"Authorization": f"bearer {ALICE}"}, {"Authorization": f"Token {ALICE}"}], ids=str)
    def test_header(self, process_gateway, headers):
        assert process_gateway.get("/api/kernels", token=None, headers=headers).status_code == 200

    def test_query(self, process_gateway):
        assert process_gateway.get(f"/api/kernels?token={ALICE}", token=None).status_code == 200

    def test_query_wins(self, process_gateway):
        # JupyterLab's proxy always sends an Authorization header, at times an empty one.
        for header in ("token ", "token wrong"):
            response = process_gateway.get(f"/api/kernels?token={ALICE}", token=None,
                                           headers={"Authorization": header})
            assert response.status_code == 200

    @pytest.mark.parametrize("headers", [
        {}, {"Authorization": "token "}, {"Authorization": "token wrong"},
        {"Authorization": f"token {ALICE}x"}, {"Authorization": f"token {ALICE[:-1]}"},
        {"Authorization": f"Basic {ALICE}"}, {"Authorization": ALICE},
        {"Cookie": f"token={ALICE}"}], ids=str)
    @pytest.mark.parametrize("path", ["/api/kernels", "/api/status", "/api/sessions",
                                      "/api/kernelspecs", "/admin/show/kernels",
                                      f"/api/kernels/{NOBODY}"])
    def test_refused(self, process_gateway, headers, path):
        check_error(process_gateway.get(path, token=None, headers=headers), 401)

    def test_refused_in_query(self, process_gateway):
        check_error(process_gateway.get("/api/kernels?token=wrong", token=None), 401)
        check_error(process_gateway.get("/api/kernels?token=", token=None), 401)

    def test_refused_start_starts_nothing(self, process_gateway):
        before = len(process_gateway.show("kernels"))
        check_error(process_gateway.post("/api/kernels", json={"name": "fake"}, token=None), 401)
        assert len(process_gateway.show("kernels")) == before

    def test_refused_upgrade(self, process_gateway, fake_kernel):
        url = process_gateway.channels_url(fake_kernel)
        assert ws_status(url) == 401
        assert ws_status(url + "?token=wrong") == 401
        assert ws_status(url, headers={"Authorization": "token wrong"}) == 401
        assert ws_status(url + f"?token={ALICE}") == 101

    def test_never_in_the_log(self, process_gateway, fake_kernel):
        with process_gateway.open(fake_kernel, in_query=True) as c:
            c.info()
        process_gateway.get(f"/api/kernels?token={BOB}", token=None)
        process_gateway.get("/api/kernels?token=wrong-token-text", token=None)
        # The answer to one more request marks that the lines before it were written.
        process_gateway.get("/api/nothing-to-see")
        log = process_gateway.log()
        assert ALICE not in log and BOB not in log and "wrong-token-text" not in log
        assert "/api/kernels" in log, "there is an access log"


class TestScopes:
    def test_read_only_may_look(self, process_gateway):
        assert process_gateway.get("/api/kernels", token=READER).status_code == 200
        assert process_gateway.get("/api/kernelspecs", token=READER).status_code == 200

    def test_read_only_may_not_run(self, process_gateway):
        check_error(process_gateway.post("/api/kernels", json={}, token=READER), 403)
        check_error(process_gateway.post("/api/sessions", token=READER, json={
            "path": "r", "type": "notebook", "kernel": {"name": "fake"}}), 403)

    @pytest.mark.parametrize("view", ["kernels", "executions", "clients", "slots", "sessions",
                                      "engine", "counters", "config"])
    def test_admin_is_a_scope(self, process_gateway, view):
        assert process_gateway.get(f"/admin/show/{view}").status_code == 200
        check_error(process_gateway.get(f"/admin/show/{view}", token=BOB), 403)

    def test_admin_view_tells_no_secret(self, process_gateway, fake_kernel):
        for view in ("kernels", "clients", "config", "sessions"):
            text = process_gateway.get(f"/admin/show/{view}").text
            assert ALICE not in text and BOB not in text

    def test_unknown_view(self, process_gateway):
        check_error(process_gateway.get("/admin/show/nothing"), 404)


class TestOwners:
    def test_lists_are_apart(self, process_gateway, fake_kernel):
        assert process_gateway.json("/api/kernels", token=BOB) == []
        with process_gateway.kernel("fake", token=BOB) as theirs:
            assert [m["id"] for m in process_gateway.json("/api/kernels", token=BOB)] == [theirs]
            mine = [m["id"] for m in process_gateway.json("/api/kernels")]
            assert fake_kernel in mine and theirs not in mine

    @pytest.mark.parametrize("method, tail", [
        ("GET", ""), ("DELETE", ""), ("POST", "/interrupt"), ("POST", "/restart")])
    def test_the_others_kernel_is_not_there(self, process_gateway, fake_kernel, method, tail):
        answer = process_gateway.http(method, f"/api/kernels/{fake_kernel}{tail}", token=BOB)
        check_error(answer, 404)
        # Not even by the words: the same as for an id that is nobody's.
        nobody = process_gateway.http(method, f"/api/kernels/{NOBODY}{tail}", token=BOB)
        assert answer.text.replace(fake_kernel, NOBODY) == nobody.text
        assert process_gateway.model(fake_kernel)["execution_state"] != "dead"

    def test_the_others_socket_is_not_there(self, process_gateway, fake_kernel):
        url = process_gateway.channels_url(fake_kernel)
        assert ws_status(url + f"?token={BOB}") == 404
        nobody = process_gateway.channels_url(NOBODY)
        assert ws_status(nobody + f"?token={BOB}") == 404

    def test_the_others_session_id_opens_nothing(self, process_gateway, fake_kernel):
        with process_gateway.open(fake_kernel, session="s-alice") as c:
            c.info()
            with process_gateway.kernel("fake", token=BOB) as theirs:
                with process_gateway.open(theirs, session="s-alice", token=BOB) as d:
                    d.info()
                    run = c.run('[{"send": "iopub", "type": "stream", '
                                '"content": "{\\"name\\": \\"stdout\\", \\"text\\": \\"mine\\"}"}]')
                    assert run.stdout == "mine"
                    d.drain()
                    assert not any("mine" in str(m.content) for m in d.messages)

    def test_sessions_are_apart(self, process_gateway, fake_kernel):
        body = {"path": "same.ipynb", "type": "notebook", "kernel": {"name": "fake"}}
        mine = process_gateway.post("/api/sessions", json=body).json()
        theirs = process_gateway.post("/api/sessions", json=body, token=BOB).json()
        assert mine["id"] != theirs["id"] and mine["kernel"]["id"] != theirs["kernel"]["id"]
        assert [m["id"] for m in process_gateway.json("/api/sessions", token=BOB)] == [theirs["id"]]
        path = f"/api/sessions/{mine['id']}"
        check_error(process_gateway.get(path, token=BOB), 404)
        check_error(process_gateway.http("PATCH", path, json={"name": "x"}, token=BOB), 404)
        check_error(process_gateway.delete(path, token=BOB), 404)
        stolen = process_gateway.http("PATCH", f"/api/sessions/{theirs['id']}", token=BOB,
                                      json={"kernel": {"id": fake_kernel}})
        assert stolen.status_code in (400, 404)
        on_mine = process_gateway.post("/api/sessions", token=BOB, json={
            **body, "path": "other.ipynb", "kernel": {"id": fake_kernel}})
        assert on_mine.status_code in (400, 404)
        process_gateway.delete(path)
        process_gateway.delete(f"/api/sessions/{theirs['id']}", token=BOB)

    def test_the_others_id_cannot_be_taken(self, process_gateway, fake_kernel):
        response = process_gateway.post("/api/kernels", token=BOB,
                                        json={"name": "fake", "kernel_id": fake_kernel})
        assert response.status_code in (400, 404, 409)
        assert process_gateway.model(fake_kernel)["id"] == fake_kernel


class TestOrigin:
    @pytest.fixture(scope="class")
    def server(self, spec_path):
        server = Server("origin", "--engine", "process", "--allow-origin", "http://ui.test",
                        "--allow-origin-pattern", r"https://[a-z]+\.colab\.test",
                        env={"JUPYTER_PATH": spec_path}).start()
        yield server
        server.stop()

    PREFLIGHT = {"Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization,content-type"}

    def test_preflight_needs_no_token(self, server):
        """Field case 2."""
        before = server.json("/api/kernels")
        r = server.http("OPTIONS", "/api/kernels", token=None,
                        headers={"Origin": "http://ui.test", **self.PREFLIGHT})
        assert r.status_code in (200, 204)
        assert r.headers["Access-Control-Allow-Origin"] == "http://ui.test"
        methods = r.headers["Access-Control-Allow-Methods"].upper()
        assert all(m in methods for m in ("GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"))
        allowed = r.headers["Access-Control-Allow-Headers"].lower()
        assert all(h in allowed for h in ("authorization", "content-type", "x-xsrftoken"))
        assert server.json("/api/kernels") == before
        r = server.get("/api/kernels", token=None, headers={"Origin": "http://ui.test"})
        assert r.status_code in (401, 403)
        r = server.http("OPTIONS", "/api/kernels", token=None,
                        headers={"Origin": "http://other.test", **self.PREFLIGHT})
        assert "Access-Control-Allow-Origin" not in r.headers

    def test_pattern(self, server):
        for origin, allowed in (("https://x.colab.test", True),
                                ("https://x.colab.test.evil", False),
                                ("https://evil/x.colab.test", False)):
            r = server.http("OPTIONS", "/api/kernels", token=None,
                            headers={"Origin": origin, **self.PREFLIGHT})
            assert (r.headers.get("Access-Control-Allow-Origin") == origin) == allowed, origin

    def test_answer_names_the_origin(self, server):
        r = server.get("/api/kernels", headers={"Origin": "http://ui.test"})
        assert r.status_code == 200
        assert r.headers["Access-Control-Allow-Origin"] == "http://ui.test"

    def test_token_is_enough(self, server):
        # A token in the request is no browser's doing: Jupyter skips the origin check.
        assert server.get("/api/kernels", headers={"Origin": "http://evil.test"}).status_code == 200
        with server.kernel("fake") as kernel_id:
            assert ws_status(server.channels_url(kernel_id), origin="http://evil.test",
                             suppress_origin=False,
                             headers={"Authorization": f"token {ALICE}"}) == 101

    def test_options_anywhere(self, server):
        for path in ("/api/kernels/" + NOBODY, "/api/sessions", "/api/kernelspecs", "/api/nothing"):
            r = server.http("OPTIONS", path, token=None, headers={"Origin": "http://ui.test"})
            assert r.status_code in (200, 204), path


class TestStart:
    """What the process does before it serves."""

    def fails(self, tmp_path, *args):
        server = Server("refused", *args)
        result = subprocess.run(server.argv, env=server.env, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=within(15))
        server._remove()
        assert result.returncode not in (0, None) and result.returncode > 0, result
        return result.stdout + result.stderr

    def test_public_bind_without_token_is_refused(self, tmp_path):
        empty = tmp_path / "none.ini"
        empty.touch(mode=0o600)
        text = self.fails(tmp_path, "--engine", "process", "--listen", "0.0.0.0:0",
                          "--token-file", empty)
        assert "token" in text.lower()

    def test_public_bind_with_a_short_token_is_refused(self, tmp_path):
        file = tmp_path / "tokens.ini"
        file.touch(mode=0o600)
        file.write_text(f"[token good]\nsecret = {'x' * 40}\nscopes = read run admin\n"
                        "[token weak]\nsecret = abcdefgh\nscopes = read\n")
        text = self.fails(tmp_path, "--engine", "process", "--listen", "0.0.0.0:0",
                          "--token-file", file)
        assert "`weak`" in text and "abcdefgh" not in text

    def test_token_file_that_others_may_read_is_refused(self, tmp_path):
        file = tmp_path / "open.ini"
        file.write_text("[token a]\nsecret = abcdefgh\ntier = none\nscopes = read\n")
        file.chmod(0o644)
        text = self.fails(tmp_path, "--engine", "process", "--token-file", file)
        assert str(file) in text and "abcdefgh" not in text

    @pytest.mark.parametrize("args, word", [
        (["--memory", "1K"], "memory"), (["--listen", "nowhere"], "listen"),
        (["--no-such-option"], "no-such-option"), (["--engine", "podmanx"], "engine"),
        (["--cull-interval", "soon"], "cull"), (["--tls-cert", "/nonexistent.pem"], "tls")])
    def test_bad_option_names_itself(self, tmp_path, args, word):
        assert word in self.fails(tmp_path, *args)

    def test_first_start_makes_the_token(self, spec_path):
        server = Server("first", "--engine", "process", tokens=None,
                        env={"JUPYTER_PATH": spec_path})
        with server:
            file = server.data_dir / "tokens.ini"
            assert file.stat().st_mode & 0o777 == 0o600
            text = file.read_text()
            assert "[token owner]" in text
            secret = next(line.split("=", 1)[1].strip() for line in text.splitlines()
                          if line.replace(" ", "").startswith("secret="))
            assert len(secret) >= 32
            assert server.get("/api/kernels", token=secret).status_code == 200
            assert server.get("/admin/show/kernels", token=secret).status_code == 200
            assert secret not in server.log()


class TestTls:
    @pytest.fixture(scope="class")
    def server(self, spec_path, tmp_path_factory):
        home = tmp_path_factory.mktemp("tls")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", home / "key.pem", "-out", home / "cert.pem"],
                       check=True, capture_output=True)
        server = Server("tls", "--engine", "process", "--tls-cert", home / "cert.pem",
                        "--tls-key", home / "key.pem", env={"JUPYTER_PATH": spec_path},
                        scheme="https")
        server.ca = str(home / "cert.pem")
        server.start()
        yield server
        server.stop()

    def test_https_and_wss(self, server):
        assert server.url.startswith("https://")
        with server.kernel("fake") as kernel_id:
            for framing in ("legacy", "v1"):
                with server.open(kernel_id, framing) as c:
                    assert c.run("1").status == "ok"

    def test_plain_http_gets_nothing(self, server):
        import socket
        with socket.create_connection(("127.0.0.1", server.port), 10) as s:
            s.sendall(b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n")
            s.settimeout(within(5))
            try:
                assert b"version" not in s.recv(4096)
            except OSError:
                pass
        assert server.get("/api").status_code == 200
