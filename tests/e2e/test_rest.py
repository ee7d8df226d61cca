"""REST as real clients use it: wire-contract 1.2, 1.3 and 1.13."""

import json
import re
import socket
import uuid

import pytest

from gateway import BOB, Server, wait, within

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# JupyterLab's proxy parses this form and no other.
ACTIVITY = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
NOBODY = "00000000-0000-4000-8000-000000000000"


def check_kernel_model(model):
    assert UUID.fullmatch(model["id"])
    assert isinstance(model["name"], str)
    assert ACTIVITY.fullmatch(model["last_activity"]), model["last_activity"]
    assert model["execution_state"] in ("starting", "idle", "busy", "dead")
    assert type(model["connections"]) is int


def check_error(response, status):
    assert response.status_code == status, f"{response.status_code} {response.text}"
    body = response.json()
    assert isinstance(body["message"], str) and body["message"]
    assert "reason" in body


def raw(gateway, request, *, until=b"\r\n\r\n"):
    """Bytes out, bytes back: for what an HTTP library would not send."""
    with socket.create_connection(("127.0.0.1", gateway.port), 30) as s:
        s.sendall(request)
        data = b""
        while until not in data if until else True:
            chunk = s.recv(65536)
            if not chunk:
                break
            data += chunk
        return data


class TestServer:
    def test_api_version(self, process_gateway):
        assert isinstance(process_gateway.json("/api")["version"], str)

    def test_api_needs_no_token(self, process_gateway):
        assert process_gateway.get("/api", token=None).status_code == 200

    def test_status(self, process_gateway, fake_kernel):
        status = process_gateway.json("/api/status")
        assert ACTIVITY.fullmatch(status["started"])
        assert ACTIVITY.fullmatch(status["last_activity"])
        assert type(status["kernels"]) is int and status["kernels"] >= 1
        assert type(status["connections"]) is int

    def test_status_counts_own_kernels_only(self, process_gateway, fake_kernel):
        assert process_gateway.json("/api/status", token=BOB)["kernels"] == 0

    def test_me(self, process_gateway):
        me = process_gateway.json("/api/me?permissions=" + json.dumps({"kernels": ["read"]}))
        identity = me["identity"]
        for name in ("username", "name", "display_name"):
            assert isinstance(identity[name], str) and identity[name]
        assert {"initials", "avatar_url", "color"} <= set(identity)
        assert isinstance(me["permissions"], dict)

    def test_healthz_and_metrics(self, process_gateway):
        assert process_gateway.get("/healthz", token=None).status_code == 200
        metrics = process_gateway.get("/metrics")
        assert metrics.status_code == 200
        assert metrics.headers["Content-Type"].startswith("text/plain")
        assert re.search(r"(?m)^coppice_\w+(\{[^}]*\})? [0-9.e+]+$", metrics.text)
        assert re.search(r"(?m)^coppice_door_requests_total [1-9]\d*$", metrics.text)
        assert process_gateway.show("counters")["door"]["requests"] >= 1

    @pytest.mark.parametrize("path", ["/", "/tree?"])
    def test_pages_that_vs_code_probes(self, process_gateway, path):
        assert process_gateway.get(path).status_code in (200, 404)

    def test_unknown_path_is_json_404(self, process_gateway):
        check_error(process_gateway.get("/api/nothing"), 404)

    @pytest.mark.parametrize("path", [
        "/api/kernels/%c0%af", "/api/kernelspecs/%ff", "/history/%ed%a0%80", "/nothing/%e2%82",
        "/api/kernels?%ff=1", "/history?cursor=%fe", "/api/kernels/x/channels?session_id=%80"])
    def test_url_that_is_no_text(self, process_gateway, path):
        """Answers quote it: they were no JSON, which has to be UTF-8."""
        check_error(process_gateway.get(path), 400)

    @pytest.mark.parametrize("method, path", [
        ("PUT", "/api/kernels"), ("DELETE", "/api/kernelspecs"), ("POST", "/api/status")])
    def test_other_method_is_json_405(self, process_gateway, method, path):
        response = process_gateway.http(method, path)
        check_error(response, 405)
        assert response.headers.get("Allow")

    def test_head_has_no_body(self, process_gateway):
        response = process_gateway.http("HEAD", "/api/kernelspecs")
        assert response.status_code == 200 and response.content == b""

    @pytest.mark.parametrize("query", ["?1795990979000", "?x=1&1795990979000"])
    def test_cache_buster_is_ignored(self, process_gateway, query):
        assert isinstance(process_gateway.json("/api/kernels" + query), list)
        assert "kernelspecs" in process_gateway.json("/api/kernelspecs" + query)


class TestKernelspecs:
    def test_list(self, process_gateway):
        body = process_gateway.json("/api/kernelspecs")
        assert body["default"] in body["kernelspecs"]
        for name, entry in body["kernelspecs"].items():
            assert entry["name"] == name
            assert isinstance(entry["resources"], dict)
            spec = entry["spec"]
            assert isinstance(spec["argv"], list)
            assert isinstance(spec["display_name"], str) and isinstance(spec["language"], str)
            assert isinstance(spec.get("metadata", {}), dict)
            assert isinstance(spec.get("env", {}), dict)
            assert isinstance(spec.get("interrupt_mode", ""), str)

    def test_container_list(self, docker_gateway):
        body = docker_gateway.json("/api/kernelspecs")
        assert body["default"] == "python3"
        assert {"python3", "newest", "foreign"} <= set(body["kernelspecs"])
        # The host's own kernelspecs are nobody's business without the engine `process`.
        assert "fake" not in body["kernelspecs"] and "process-fake" not in body["kernelspecs"]

    def test_one(self, process_gateway):
        entry = process_gateway.json("/api/kernelspecs/fake")
        assert entry["name"] == "fake" and entry["spec"]["display_name"] == "Scripted"

    def test_unknown(self, process_gateway):
        check_error(process_gateway.get("/api/kernelspecs/nothing"), 404)

    def test_alias_python(self, docker_gateway):
        assert docker_gateway.json("/api/kernelspecs/python")["spec"]["language"] == "python"

    def test_proxy_with_user_name(self, process_gateway):
        # JupyterLab's proxy with KERNEL_USERNAME set asks for one spec in this way.
        entry = process_gateway.json("/api/kernelspecs?user=alice/fake")
        assert entry["name"] == "fake"
        assert "kernelspecs" in process_gateway.json("/api/kernelspecs?user=alice")

    def test_resource(self, process_gateway):
        resources = process_gateway.json("/api/kernelspecs/python3")["resources"]
        assert resources["logo-64x64"].endswith("/kernelspecs/python3/logo-64x64.png")
        response = process_gateway.get("/kernelspecs/python3/logo-64x64.png")
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "image/png"
        assert response.content.startswith(b"\x89PNG")

    @pytest.mark.parametrize("name", [
        "nothing.png", "..%2f..%2f..%2fetc%2fpasswd", "../../../../etc/passwd",
        "%2e%2e/fake/kernel.json"])
    def test_resource_outside(self, process_gateway, name):
        answer = raw(process_gateway, (
            f"GET /kernelspecs/python3/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Authorization: token {process_gateway.token}\r\n\r\n").encode(), until=None)
        assert answer.split(b" ")[1] in (b"400", b"404"), answer[:200]
        assert b"root:" not in answer and b"argv" not in answer


class TestKernels:
    @pytest.mark.parametrize("options", [
        {}, {"data": ""}, {"json": {}}, {"json": {"name": "fake"}},
        {"json": {"name": "fake", "path": "a/b.ipynb"}},
        {"json": {"name": "fake", "env": {"KERNEL_LAUNCH_TIMEOUT": "40", "KERNEL_WORKING_DIR": "/x",
                                          "KERNEL_USERNAME": "u"}}},
        {"json": {"name": "fake", "unknown": 1}}, {"json": {"name": None}},
    ], ids=str)
    def test_start(self, process_gateway, options):
        response = process_gateway.post("/api/kernels", **options)
        assert response.status_code == 201, response.text
        model = response.json()
        check_kernel_model(model)
        assert response.headers["Location"].endswith(f"/api/kernels/{model['id']}")
        assert process_gateway.delete(f"/api/kernels/{model['id']}").status_code == 204

    def test_start_chunked(self, process_gateway):
        response = process_gateway.post("/api/kernels", data=iter([b'{"na', b'me": "fa', b'ke"}']),
                                        headers={"Content-Type": "application/json"})
        assert response.status_code == 201 and response.json()["name"] == "fake"
        process_gateway.delete("/api/kernels/" + response.json()["id"])

    @pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b'{"name": 3}', b'{"env": 3}',
                                      b'{"env": {"A": 1}}', b'{"env": {"A": "a\\u0000b"}}',
                                      b"\xff\xfe"])
    def test_start_with_bad_body(self, process_gateway, body):
        check_error(process_gateway.post("/api/kernels", data=body), 400)

    def test_start_unknown_spec(self, process_gateway):
        response = process_gateway.post("/api/kernels", json={"name": "nothing"})
        check_error(response, 404)
        assert "fake" in response.json()["message"], "says which names there are"

    def test_start_with_id(self, process_gateway):
        wanted = str(uuid.uuid4())
        body = {"name": "fake", "kernel_id": wanted}
        assert process_gateway.post("/api/kernels", json=body).json()["id"] == wanted
        check_error(process_gateway.post("/api/kernels", json=body), 409)
        process_gateway.delete(f"/api/kernels/{wanted}")
        check_error(process_gateway.post("/api/kernels", json={**body, "kernel_id": "../x"}), 400)

    def test_list_and_one(self, process_gateway, fake_kernel):
        listed = process_gateway.json("/api/kernels")
        for model in listed:
            check_kernel_model(model)
        assert fake_kernel in [m["id"] for m in listed]
        check_kernel_model(process_gateway.json(f"/api/kernels/{fake_kernel}"))

    @pytest.mark.parametrize("method, tail", [
        ("GET", ""), ("DELETE", ""), ("POST", "/interrupt"), ("POST", "/restart")])
    def test_unknown_kernel(self, process_gateway, method, tail):
        check_error(process_gateway.http(method, f"/api/kernels/{NOBODY}{tail}"), 404)

    def test_malformed_id(self, process_gateway):
        check_error(process_gateway.get("/api/kernels/not-an-id"), 404)

    @pytest.mark.parametrize("options", [{}, {"json": {}}], ids=["none", "empty"])
    def test_interrupt(self, process_gateway, fake_kernel, options):
        process_gateway.wait_state(fake_kernel, "idle")
        response = process_gateway.post(f"/api/kernels/{fake_kernel}/interrupt", **options)
        assert response.status_code == 204 and response.content == b""
        assert response.headers.get("Content-Length", "0") == "0"

    @pytest.mark.parametrize("options", [{}, {"json": {}}], ids=["none", "empty"])
    def test_restart(self, process_gateway, fake_kernel, options):
        process_gateway.wait_state(fake_kernel, "idle")
        response = process_gateway.post(f"/api/kernels/{fake_kernel}/restart", **options)
        assert response.status_code == 200
        check_kernel_model(response.json())
        assert response.json()["id"] == fake_kernel
        process_gateway.wait_state(fake_kernel, "idle")

    def test_delete(self, process_gateway):
        kernel_id = process_gateway.start_kernel("fake")
        response = process_gateway.delete(f"/api/kernels/{kernel_id}")
        assert response.status_code == 204 and response.content == b""
        check_error(process_gateway.get(f"/api/kernels/{kernel_id}"), 404)
        check_error(process_gateway.delete(f"/api/kernels/{kernel_id}"), 404)
        assert kernel_id not in [m["id"] for m in process_gateway.json("/api/kernels")]

    def test_connections_and_activity(self, process_gateway, fake_kernel):
        with process_gateway.open(fake_kernel) as a, process_gateway.open(fake_kernel, "v1") as b:
            a.info(), b.info()
            before = process_gateway.model(fake_kernel)
            assert before["connections"] == 2
            assert process_gateway.json("/api/status")["connections"] >= 2
            # A page refresh asks for kernel_info: that is no activity.
            a.collect(a.send("shell", "kernel_info_request"))
            assert process_gateway.model(fake_kernel)["last_activity"] == before["last_activity"]
            a.run("1")
            after = process_gateway.model(fake_kernel)
            assert after["last_activity"] > before["last_activity"]
        wait(lambda: process_gateway.model(fake_kernel), lambda m: m["connections"] == 0)

    def test_state_follows_the_kernel(self, docker_gateway, kernel, client):
        assert docker_gateway.model(kernel)["execution_state"] == "idle"
        msg_id = client.execute("import time; print('on', flush=True); time.sleep(60)")
        client.until_text("on", msg_id)
        assert docker_gateway.model(kernel)["execution_state"] == "busy"
        docker_gateway.post(f"/api/kernels/{kernel}/interrupt")
        client.collect(msg_id)
        docker_gateway.wait_state(kernel, "idle")

    def test_a_kernel_that_never_starts(self, process_gateway):
        kernel_id = process_gateway.start_kernel("broken")
        model = wait(lambda: process_gateway.get(f"/api/kernels/{kernel_id}"),
                     lambda r: r.json().get("execution_state") == "dead", within(20)).json()
        assert model["reason"], "says why"
        assert process_gateway.delete(f"/api/kernels/{kernel_id}").status_code in (204, 404)

    def test_env_reaches_the_kernel(self, docker_gateway):
        env = {"KERNEL_USERNAME": "ann", "MY_SETTING": "42", "PYTHONHASHSEED": "7"}
        with docker_gateway.kernel("python3", env=env) as kernel_id:
            with docker_gateway.open(kernel_id) as c:
                run = c.run("import os; print(*(os.environ.get(k) for k in "
                            f"{list(env)!r}), os.getcwd())")
                assert run.stdout == "ann 42 7 /work\n", run

    def test_env_stays_with_its_kernel(self, docker_gateway, client):
        with docker_gateway.kernel("python3", env={"MINE": "x"}) as kernel_id:
            with docker_gateway.open(kernel_id) as c:
                c.info()
        assert client.run("import os; print(os.environ.get('MINE'))").stdout == "None\n"

    def test_limit_of_kernels(self, process_server):
        server = process_server("limit", "--max-kernels", "2", "--pool-wait", "0s")
        ids = [server.start_kernel("fake") for _ in range(2)]
        refused = server.post("/api/kernels", json={"name": "fake"})
        check_error(refused, 503)
        assert refused.json()["reason"] == "over_capacity"
        server.delete(f"/api/kernels/{ids[0]}")
        wait(lambda: server.post("/api/kernels", json={"name": "fake"}),
             lambda r: r.status_code == 201, within(10))


class TestSessions:
    def new(self, gateway, path="n.ipynb", **more):
        body = {"path": path, "type": "notebook", "name": "", "kernel": {"name": "fake"}, **more}
        return gateway.post("/api/sessions", json=body)

    def check_model(self, model):
        for name in ("id", "path", "name", "type"):
            assert isinstance(model[name], str)
        check_kernel_model(model["kernel"])
        if model["type"] == "notebook":
            assert model["notebook"]["path"] == model["path"]

    def test_round(self, process_gateway):
        response = self.new(process_gateway)
        assert response.status_code == 201
        model = response.json()
        self.check_model(model)
        path = f"/api/sessions/{model['id']}"
        assert response.headers["Location"].endswith(path)
        assert model["id"] in [m["id"] for m in process_gateway.json("/api/sessions")]
        assert process_gateway.json(path)["kernel"]["id"] == model["kernel"]["id"]

        again = self.new(process_gateway)
        assert again.status_code == 201 and again.json()["id"] == model["id"]

        renamed = process_gateway.http("PATCH", path, json={"path": "m.ipynb", "name": "m"})
        assert renamed.status_code == 200
        self.check_model(renamed.json())
        assert renamed.json()["path"] == "m.ipynb" and renamed.json()["name"] == "m"

        assert process_gateway.delete(path).status_code == 204
        check_error(process_gateway.get(path), 404)
        check_error(process_gateway.get(f"/api/kernels/{model['kernel']['id']}"), 404)
        check_error(process_gateway.delete(path), 404)

    def test_on_a_kernel_that_exists(self, process_gateway, fake_kernel):
        response = self.new(process_gateway, "k.ipynb", kernel={"id": fake_kernel})
        assert response.status_code == 201
        assert response.json()["kernel"]["id"] == fake_kernel
        process_gateway.delete("/api/sessions/" + response.json()["id"])

    def test_change_of_kernel(self, process_gateway, fake_kernel):
        model = self.new(process_gateway, "c.ipynb").json()
        path = f"/api/sessions/{model['id']}"
        by_name = process_gateway.http("PATCH", path, json={"kernel": {"name": "fake"}})
        assert by_name.status_code == 200
        assert by_name.json()["kernel"]["id"] != model["kernel"]["id"]
        wait(lambda: process_gateway.get(f"/api/kernels/{model['kernel']['id']}").status_code,
             lambda code: code == 404)
        by_id = process_gateway.http("PATCH", path, json={"kernel": {"id": fake_kernel}})
        assert by_id.json()["kernel"]["id"] == fake_kernel
        check_error(process_gateway.http("PATCH", path, json={"kernel": {"id": NOBODY}}), 400)
        process_gateway.delete(path)

    def test_kernel_gone_first(self, process_gateway):
        model = self.new(process_gateway, "g.ipynb").json()
        process_gateway.delete(f"/api/kernels/{model['kernel']['id']}")
        assert process_gateway.delete(f"/api/sessions/{model['id']}").status_code in (404, 410)

    @pytest.mark.parametrize("body", [
        {"type": "notebook", "kernel": {"name": "fake"}}, {"path": "x", "kernel": {"name": "fake"}},
        {"path": 1, "type": "notebook"}], ids=str)
    def test_missing_fields(self, process_gateway, body):
        check_error(process_gateway.post("/api/sessions", json=body), 400)

    @pytest.mark.parametrize("change", [
        {"path": 1}, {"name": []}, {"type": {}}, {"kernel": "fake"}, {"kernel": {"name": 3}},
        {"kernel": {"id": 3}}, {"notebook": 1}, {"path": "a\0b"}], ids=str)
    def test_wrong_types(self, process_gateway, change):
        check_error(self.new(process_gateway, **{"path": "w.ipynb", **change}), 400)
        model = self.new(process_gateway, "w.ipynb").json()
        path = f"/api/sessions/{model['id']}"
        check_error(process_gateway.http("PATCH", path, json=change), 400)
        assert process_gateway.json(path) == model
        process_gateway.delete(path)

    def test_unknown_spec(self, process_gateway):
        response = self.new(process_gateway, "u.ipynb", kernel={"name": "nothing"})
        assert response.status_code == 501 and "fake" in response.json()["message"]
        assert response.json()["message"] and "short_message" in response.json()

    def test_unknown(self, process_gateway):
        for method in ("GET", "PATCH", "DELETE"):
            check_error(process_gateway.http(method, f"/api/sessions/{NOBODY}", json={}), 404)


class TestHttp:
    def head(self, gateway, line, *more):
        return "\r\n".join([line, "Host: 127.0.0.1", f"Authorization: token {gateway.token}",
                            *more, "", ""]).encode()

    def test_connection_close(self, process_gateway):
        answer = raw(process_gateway, self.head(process_gateway, "GET /api/kernels HTTP/1.1",
                                                "Connection: close"), until=None)
        assert answer.startswith(b"HTTP/1.1 200")

    def test_two_requests_on_one_connection(self, process_gateway):
        for _ in range(3):
            assert process_gateway.get("/api/kernels").status_code == 200

    def test_error_answer_leaves_the_connection_right(self, process_gateway):
        for _ in range(3):
            check_error(process_gateway.post("/api/kernels", data=b"{"), 400)
            assert process_gateway.get("/api/kernels").status_code == 200

    @pytest.mark.parametrize("name, size", [("X-Long", 8000), ("Cookie", 60000)])
    def test_long_header(self, process_gateway, name, size):
        # JSON web tokens pass 4 KB; to localhost browsers send the cookies of all its servers.
        response = process_gateway.get("/api/kernels", headers={name: "x" * size})
        assert response.status_code == 200

    @pytest.mark.parametrize("data", [
        b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/kernels HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", b"\0" * 64,
        b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n"], ids=lambda d: repr(d[:12]))
    def test_nonsense_harms_nobody(self, process_gateway, data):
        with socket.create_connection(("127.0.0.1", process_gateway.port), 10) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
            except OSError:
                pass
        assert process_gateway.get("/api/kernels").status_code == 200

    def test_too_large_body(self, process_server):
        server = process_server("small", "--message-limit", "1M")
        response = server.post("/api/kernels", data=b" " * (3 << 20))
        check_error(response, 413)
        assert server.get("/api/kernels").status_code == 200

    def test_base_url(self, process_server):
        server = process_server("base", base_url="/lab/one/")
        assert server.url.endswith("/lab/one")
        response = server.post("/api/kernels", json={"name": "fake"})
        assert response.status_code == 201
        kernel_id = response.json()["id"]
        assert response.headers["Location"].endswith(f"/lab/one/api/kernels/{kernel_id}")
        resources = server.json("/api/kernelspecs/python3")["resources"]
        assert resources["logo-64x64"].startswith("/lab/one/kernelspecs/")
        with server.open(kernel_id) as c:
            assert c.run("1").status == "ok"
        server.url = server.url[:-len("/lab/one")]
        assert server.get("/api/kernels").status_code == 404


def test_both_engines(spec_path):
    with Server("both", "--engine", "docker,process", env={"JUPYTER_PATH": spec_path}) as server:
        names = set(server.json("/api/kernelspecs")["kernelspecs"])
        assert "process-fake" in names and "fake" not in names and "python3" in names
        with server.kernel("process-fake") as kernel_id, server.open(kernel_id) as c:
            assert c.run("1").status == "ok"


class TestHalfABody:
    """A request whose body never comes whole. What it leaves behind is the leak checker's to find
    when this gateway ends."""

    def half(self, server, authorization):
        with socket.create_connection(("127.0.0.1", server.port), within(5)) as s:
            s.sendall(b"POST /api/kernels HTTP/1.1\r\nHost: x\r\n" + authorization +
                      b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"name\":")
            s.settimeout(within(0.3))
            try:
                return s.recv(4096)
            except TimeoutError:
                return b""

    def test_of_an_owner_is_waited_for_and_dropped(self, process_server):
        server = process_server("half")
        for _ in range(5):
            assert self.half(server, f"Authorization: token {server.token}\r\n".encode()) == b""
        assert server.get("/api/kernels").json() == []

    def test_of_a_stranger_is_refused_at_once(self, process_server):
        server = process_server("half-stranger")
        assert self.half(server, b"").startswith(b"HTTP/1.1 401 ")
        assert server.get("/api/kernels").json() == []
