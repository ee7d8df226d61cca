"""GET /openapi.json against the running server: every route of ours is in it and the reverse, with
the scopes that are asked for, and what is answered is what it says."""

import jsonschema
import pytest

from chat import events, new_conversation, run
from gateway import READER, wait, within

# Jupyter's own, which its documentation describes; and pages for people.
JUPYTER = {("GET", "/"), ("GET", "/tree"), ("GET", "/api"), ("GET", "/api/status"), ("GET", "/api/me"),
           ("GET", "/api/kernels"), ("POST", "/api/kernels"), ("GET", "/api/kernels/{id}"),
           ("DELETE", "/api/kernels/{id}"), ("POST", "/api/kernels/{id}/interrupt"),
           ("POST", "/api/kernels/{id}/restart"), ("GET", "/api/kernels/{id}/channels"),
           ("GET", "/api/kernelspecs"), ("GET", "/api/kernelspecs/{name}"),
           ("GET", "/kernelspecs/{name}/{file}"), ("GET", "/api/sessions"),
           ("POST", "/api/sessions"), ("GET", "/api/sessions/{id}"),
           ("PATCH", "/api/sessions/{id}"), ("DELETE", "/api/sessions/{id}")}


@pytest.fixture(scope="module")
def server(docker_gateway):
    return docker_gateway


@pytest.fixture(scope="module")
def document(server):
    return server.get("/openapi.json", token=None).json()


def operations(document):
    return {(method.upper(), path): operation for path, item in document["paths"].items()
            for method, operation in item.items() if method != "parameters"}


def test_it_has_the_servers_routes_and_no_others(server, document):
    rows = {(r["method"], r["path"]): r["scopes"] for r in server.show("routes")}
    assert len(rows) == len(server.show("routes")), "a route is there twice"
    assert JUPYTER <= set(rows)
    assert set(operations(document)) == set(rows) - JUPYTER
    for key, operation in operations(document).items():
        said = [s for s in ("read", "run", "admin")
                if f"`{s}`" in operation.get("description", "")]
        assert said == rows[key], key
        assert (operation.get("security") == []) == (rows[key] == []), key


def test_each_answers_as_a_route_does(server, document):
    """Without a token: 401 where one is needed. With one: not 405, nor the words of no route."""
    for (method, path), operation in operations(document).items():
        url = path.replace("{", "").replace("}", "")
        answer = server.http(method, url, token=None)
        assert (answer.status_code == 401) == ("security" not in operation), (method, path)
        answer = server.http(method, url)
        assert answer.status_code != 405 and "nothing is here" not in answer.text or \
            "git" in path or "info" in path, (method, path)
        declared = [p["name"] for p in document["paths"][path].get("parameters", ())]
        assert [f"{{{n}}}" for n in declared] == [s for s in path.split("/") if s[:1] == "{"], path


def check(document, method, path, status, tree):
    """tree is what the document says of that answer, and has no member that it does not name."""
    schema = operations(document)[method, path]["responses"][status]
    schema = schema["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**schema, "components": strict(document)["components"]}
                                    ).validate(tree)


def strict(tree):
    """Every object with members named has no others."""
    if isinstance(tree, list):
        return [strict(t) for t in tree]
    if not isinstance(tree, dict):
        return tree
    tree = {k: strict(v) for k, v in tree.items()}
    if tree.get("type") == "object" and isinstance(tree.get("properties"), dict):
        tree.setdefault("additionalProperties", False)
    return tree


def test_it_is_an_openapi_document(document):
    assert document["openapi"].startswith("3.1")
    for operation in operations(document).values():
        assert operation["summary"] and operation["responses"]["default"]
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_answers_are_as_it_says(server, document):
    c = new_conversation(server)
    run(server, c, "print('x')\n6 * 7")
    found = events(server, c, "1/0", "executions", "code")
    (record,) = found[-1][1]["records"]
    good = wait(lambda: server.json(f"/chat/records/{record}"), lambda r: r["node"], within(20))
    h = good["kernel_id"]
    for path, url in {
            "/history": "/history", "/history/{h}": f"/history/{h}", "/healthz": "/healthz",
            "/history/{h}/nodes/{n}": f"/history/{h}/nodes/HEAD",
            "/chat/conversations": "/chat/conversations",
            "/chat/conversations/{c}": f"/chat/conversations/{c}",
            "/chat/conversations/{c}/records": f"/chat/conversations/{c}/records",
            "/chat/records/{r}": f"/chat/records/{record}"}.items():
        check(document, "GET", path, "200", server.json(url))
    prepared = server.post("/chat/prepare", json={"text": "```python\nprint(“x”)\n```"}).json()
    check(document, "POST", "/chat/prepare", "200", prepared)
    created = server.post("/chat/conversations", json={})
    check(document, "POST", "/chat/conversations", "201", created.json())
    one = f"/chat/conversations/{created.json()['id']}"
    renamed = server.http("PATCH", one, json={"title": "Neu"}).json()
    check(document, "PATCH", "/chat/conversations/{c}", "200", renamed)
    error = document["components"]["schemas"]["Error"]
    for answer in (server.get("/history/none"), server.get("/chat/records/none"),
                   server.post("/chat/prepare", json={}), server.get("/history", token="wrong"),
                   server.post("/chat/prepare", json={"text": "x"}, token=READER)):
        jsonschema.validate(answer.json(), error)
    for url in one, f"/chat/conversations/{c}":
        assert server.delete(url).status_code == 204
