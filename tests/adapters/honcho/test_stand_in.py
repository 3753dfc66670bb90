"""The stand-in is a Honcho server as far as memoryd can tell: it keeps to the API's description and has the measured habits."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from memoryd.testing.honcho import Fault, HonchoServer
from memoryd.testing.honcho._shapes import ABSENT, ANSWERS, BODIES, ROUTES, Field

DESCRIPTION = Path(__file__).parents[4] / "shared" / "data" / "honcho-openapi.json"
W = "/v3/workspaces/memoryd"


def described() -> dict[str, Any]:
    """The API's own description where it lies beside the project; else what the project says of it, so that its form is checked."""
    if DESCRIPTION.exists():
        found: dict[str, Any] = json.loads(DESCRIPTION.read_text("utf-8"))
        return found
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {"paths": paths, "components": {"schemas": _schemas()}}


def _operation(route: Any) -> dict[str, Any]:
    body = {"application/json": {"schema": {"$ref": f"#/components/schemas/{route.body}"}}} if route.body else {}
    return {"requestBody": {"content": body}, "responses": {str(route.status): {}}}


def _schemas() -> dict[str, Any]:
    kinds = {"text": "string", "id": "string", "time": "string", "whole": "integer", "number": "number", "object": "object", "list": "array"}
    shapes = {
        name: {"properties": {field: {"type": kinds[rule.kind]} for field, rule in fields.items()}, "required": [f for f, r in fields.items() if r.required]}
        for name, fields in BODIES.items()
    }
    return shapes | {name: {"required": list(fields)} for name, fields in ANSWERS.items()}


API = described()
SCHEMAS = API["components"]["schemas"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.does)
def test_every_route_is_one_of_the_api(route: Any) -> None:
    operation = API["paths"][route.path][route.method.lower()]
    assert str(route.status) in operation["responses"]
    content = operation.get("requestBody", {}).get("content", {})
    assert route.body in json.dumps(content)
    assert bool(route.body) == bool(content)


def test_every_route_of_the_api_is_known() -> None:
    ours = {(route.method.lower(), route.path) for route in ROUTES}
    for path, operations in API["paths"].items():
        for method in operations:
            assert (method, path) in ours or ABSENT.fullmatch(path.replace("{", "").replace("}", "")), f"{method} {path}"


@pytest.mark.parametrize("shape", BODIES)
def test_every_body_has_the_fields_and_rules_of_the_api(shape: str) -> None:
    schema = SCHEMAS[shape]
    assert set(BODIES[shape]) == set(schema["properties"])
    assert {name for name, field in BODIES[shape].items() if field.required} == set(schema.get("required", ()))
    if DESCRIPTION.exists():
        for name, field in BODIES[shape].items():
            assert _rules(schema["properties"][name]) == (_kind(field), field.least, field.most)


def _kind(field: Field) -> str:
    return {"id": "string", "text": "string", "time": "string", "whole": "integer", "list": "array"}.get(field.kind, field.kind)


def _rules(schema: dict[str, Any]) -> tuple[str, int | None, int | None]:
    for option in schema.get("anyOf", [schema]):
        if "$ref" in option:
            return "object", None, None
        if option.get("type") != "null":
            least = option.get("minLength", option.get("minItems", option.get("minimum")))
            return option.get("type", "object"), least, option.get("maxLength", option.get("maxItems", option.get("maximum")))
    return "object", None, None


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_answer_has_what_the_api_promises(kind: str) -> None:
    assert set(SCHEMAS[kind].get("required", ())) <= set(ANSWERS[kind])


# -- habits -----------------------------------------------------------------------------------------------------------------


def post(honcho: HonchoServer, path: str, body: object, method: str = "POST") -> httpx.Response:
    return httpx.request(method, honcho.url + path, json=body, trust_env=False)


def say(honcho: HonchoServer, *contents: str, session: str = "s", **metadata: Any) -> httpx.Response:
    messages = [{"content": content, "peer_id": "ann", "metadata": metadata} for content in contents]
    return post(honcho, f"{W}/sessions/{session}/messages", {"messages": messages})


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v3/workspaces", {"id": "a b"}, 422),
        ("POST", "/v3/workspaces", {}, 422),
        ("POST", "/v3/workspaces", "text", 422),
        ("POST", f"{W}/sessions/s/messages", {"messages": []}, 422),
        ("POST", f"{W}/sessions/s/messages", {"messages": [{"content": "x", "peer_id": "a"}] * 101}, 422),
        ("POST", f"{W}/sessions/s/messages", {"messages": [{"content": "x" * 25_001, "peer_id": "a"}]}, 422),
        ("POST", f"{W}/sessions/s/messages", {"messages": [{"content": "x", "peer_id": "a", "created_at": "noon"}]}, 422),
        ("POST", f"{W}/sessions/s/messages", {"messages": [{"content": "<|endoftext|>", "peer_id": "a"}]}, 422),
        ("POST", f"{W}/sessions/s/messages", {"messages": [{"content": "<|fim_prefix|>", "peer_id": "a"}]}, 500),
        ("POST", f"{W}/search", {"query": "<|fim_prefix|>"}, 422),
        ("POST", f"{W}/search", {"query": "x", "limit": 101}, 422),
        ("POST", f"{W}/sessions/list?size=101", {}, 422),
        ("POST", f"{W}/sessions/s/messages/list", {"filters": {"content": "x"}}, 422),
        ("POST", f"{W}/conclusions/query", {"query": "x", "distance": 2}, 422),
        ("DELETE", f"{W}/sessions/none", None, 404),
        ("DELETE", f"{W}/sessions/s/messages/m", None, 404),
        ("GET", f"{W}/peers/none/card", None, 404),
        ("POST", f"{W}/peers/a/chat", {"query": "x"}, 501),
        ("GET", "/v4/workspaces", None, 404),
        ("GET", "/health", None, 200),
    ],
)
def test_statuses(honcho: HonchoServer, method: str, path: str, body: object, status: int) -> None:
    assert post(honcho, path, body, method).status_code == status
    assert honcho.messages() == []


def test_a_422_echoes_the_input(honcho: HonchoServer) -> None:
    found = say(honcho, "private " * 4000)
    assert found.status_code == 422
    assert "private private" in found.text


def test_filters_and_their_traps(honcho: HonchoServer) -> None:
    for number, user in enumerate(("ann", "bob")):
        say(honcho, f"of {user}", u=user, n=number, flag=False)

    def found(filters: object) -> list[str]:
        answer = post(honcho, f"{W}/sessions/s/messages/list", {"filters": filters})
        return [item["content"] for item in answer.json()["items"]] if answer.status_code == 200 else [str(answer.status_code)]

    assert found({"metadata": {"u": "ann"}}) == ["of ann"]
    assert found({"metadata": {"u": "*"}}) == ["of ann", "of bob"], "a star means everything"
    assert found({"metadata": {"n": "1"}}) == []
    assert found({"metadata": {"n": {"in": [1, 2]}}}) == ["of bob"]
    assert found({"metadata": {"flag": False, "u": {"ne": "ann"}}}) == ["of bob"]
    assert found({"metadata": {"missing": {"ne": "x"}}}) == []
    assert found({"NOT": [{"metadata": {"missing": "x"}}]}) == ["of ann", "of bob"]
    assert found({"OR": [{"metadata": {"u": "bob"}}, {"metadata": {"n": 0}}]}) == ["of ann", "of bob"]
    assert found({"metadata": {"u": {"icontains": "AN"}}}) == ["of ann"]
    assert found({"metadata": {"u": {"gt": 1}}}) == ["500"]
    assert found({"nothing": 1}) == ["422"]


def test_writing_twice_is_two_messages_and_metadata_is_replaced(honcho: HonchoServer) -> None:
    say(honcho, "same", a=1)
    message = say(honcho, "same", a=1).json()[0]
    assert len(honcho.messages()) == 2
    post(honcho, f"{W}/sessions/s/messages/{message['id']}", {"metadata": {"b": 2}}, "PUT")
    assert honcho.messages()[1]["metadata"] == {"b": 2}


def test_a_deleted_session_is_readable_until_the_worker_comes(honcho: HonchoServer) -> None:
    honcho.modes.worker = False
    say(honcho, "still there")
    assert post(honcho, f"{W}/sessions/s", None, "DELETE").status_code == 202
    assert post(honcho, f"{W}/sessions/list", {}).json()["total"] == 0
    assert post(honcho, f"{W}/sessions/s/messages/list", {}).json()["total"] == 1
    assert say(honcho, "again").status_code == 404
    honcho.erase_deleted()
    assert post(honcho, f"{W}/sessions/s/messages/list", {}).json()["total"] == 0
    assert say(honcho, "again").status_code == 201


def test_pages(honcho: HonchoServer) -> None:
    say(honcho, *map(str, range(100)))
    first = post(honcho, f"{W}/sessions/s/messages/list?size=30&page=4", {}).json()
    assert ([item["content"] for item in first["items"]], first["total"], first["pages"]) == ([str(n) for n in range(90, 100)], 100, 4)
    newest = post(honcho, f"{W}/sessions/s/messages/list?size=1&reverse=true", {}).json()
    assert newest["items"][0]["content"] == "99"


def test_search_gives_the_nearest_however_far(honcho: HonchoServer) -> None:
    say(honcho, "the zebra crossing", "the lion's den", "zebras and zebra")
    found = post(honcho, f"{W}/search", {"query": "zebra crossing", "limit": 2}).json()
    assert [message["content"] for message in found] == ["the zebra crossing", "zebras and zebra"]
    assert len(post(honcho, f"{W}/search", {"query": "unrelated"}).json()) == 3


def test_health_is_shallow(honcho: HonchoServer) -> None:
    honcho.modes.database = False
    assert post(honcho, "/health", None, "GET").json() == {"status": "ok"}
    assert say(honcho, "x").status_code == 500


def test_a_connection_is_gone_after_a_500(honcho: HonchoServer) -> None:
    honcho.faults.append(Fault("lock"))
    connection = http.client.HTTPConnection(honcho.url.removeprefix("http://"))
    with closing(connection):
        connection.request("GET", "/health")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (500, None), "nothing says so"
        answer.read()
        connection.auto_open = 0
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            connection.request("GET", "/health")
            connection.getresponse()


def test_a_request_that_was_cut_off_is_none(honcho: HonchoServer) -> None:
    say(honcho, "kept", mark="m")
    (message,) = honcho.messages()
    path = f"{W}/sessions/s/messages/{message['id']}"
    host, port = honcho.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"PUT {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert [found["metadata"] for found in honcho.messages()] == [{"mark": "m"}]


def test_faults_count(honcho: HonchoServer) -> None:
    honcho.faults += [Fault("status", on="health", status=418, skip=1, times=2), Fault("status", on="search", status=400)]
    assert [post(honcho, "/health", None, "GET").status_code for _ in range(4)] == [200, 418, 418, 200]
    assert len(honcho.faults) == 1


def test_a_restart_keeps_everything(honcho: HonchoServer) -> None:
    say(honcho, "kept")
    url = honcho.url
    honcho.stop()
    with pytest.raises(httpx.ConnectError):
        say(honcho, "lost")
    honcho.start()
    assert honcho.url == url
    assert say(honcho, "too").status_code == 201
    assert [message["content"] for message in honcho.messages()] == ["kept", "too"]
