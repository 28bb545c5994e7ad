"""What the server answers, to whom, and with which headers."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from mirrorless.errors import PrerequisiteError
from mirrorless.web.security import SHORTEST_TOKEN, is_loopback
from mirrorless.web.server import ServerTerms, check_files
from mirrorless.web.snapshot import FlowState
from tests.support.pages import (
    FakeGatherer,
    ask,
    drill,
    flow,
    group,
    halted,
    served_page,
    snapshot,
    topic,
    wait_until_read,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.web.server import WebServer

TOKEN = "a-token-that-is-long-enough"  # noqa: S105 -- of this test alone
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def gatherer() -> FakeGatherer:
    rows = {"groups": (group("g"),), "halted": (halted(),), "drills": (drill(), drill(1, flow="B->A"))}
    return FakeGatherer(snapshot(topics=(topic(), topic("t", flow="B->A")), **rows))


@pytest.fixture(scope="module")
def server(gatherer: FakeGatherer) -> Iterator[WebServer]:
    with served_page(gatherer) as made:
        wait_until_read(made)
        yield made


@pytest.fixture(scope="module")
def guarded(gatherer: FakeGatherer) -> Iterator[WebServer]:
    with served_page(gatherer, token=TOKEN, actions=True) as made:
        yield made


@pytest.fixture(scope="module")
def described(server: WebServer) -> dict[str, Any]:
    document: dict[str, Any] = ask(server, "/api/openapi.json").json()
    validate(document)
    return document


def schema_of(described: dict[str, Any], path: str, status: int = 200) -> dict[str, Any]:
    answers = described["paths"][path]["get"]["responses"]
    schema: dict[str, Any] = answers[str(status)]["content"]["application/json"]["schema"]
    return {**schema, "components": described["components"]}


@pytest.mark.parametrize(
    "path",
    [
        *("/api/snapshot", "/api/clusters", "/api/flows", "/api/topics?flow=A->B", "/api/halted", "/api/groups"),
        *("/api/operations", "/api/drills", "/api/events", "/api/settings", "/api/session", "/healthz", "/readyz"),
        *("/api/partitions?flow=A->B&topic=orders", "/api/positions?flow=A->B&group=g"),
        "/api/drill?flow=A->B&began_ms=1790000000000",
    ],
)
def test_answers_are_as_described(server: WebServer, described: dict[str, Any], path: str) -> None:
    answer = ask(server, path.replace(">", "%3E"))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    OAS31Validator(schema_of(described, path.partition("?")[0])).validate(answer.json())


def test_a_table_is_that_of_one_flow(server: WebServer) -> None:
    assert [row["topic"] for row in ask(server, "/api/topics?flow=B-%3EA").json()["topics"]] == ["t"]
    assert [row["began_ms"] for row in ask(server, "/api/drills?flow=B-%3EA").json()["drills"]] == [1]


@pytest.mark.parametrize(
    "path",
    [
        *("/api/partitions?flow=A&topic=x", "/api/positions", "/api/report", "/other", "/api/x", "/api/drill"),
        "/api/drill?flow=A-%3EB&began_ms=../..",
    ],
)
def test_what_there_is_not_is_an_error(server: WebServer, path: str) -> None:
    assert ask(server, path).status == 404


def test_it_is_ready_once_every_flow_was_read(described: dict[str, Any]) -> None:
    with served_page(FakeGatherer(missing={"A->B": "cluster A: no answer"})) as server:
        answer = ask(server, "/readyz")
        assert (answer.status, answer.json()["unread"]) == (503, {"A->B": "cluster A: no answer"})
        OAS31Validator(schema_of(described, "/readyz", 503)).validate(answer.json())
        assert ask(server, "/healthz").status == 200


def test_an_empty_table_says_what_could_not_be_read(described: dict[str, Any]) -> None:
    down = snapshot(
        flows=(flow(error="cluster A: no answer", lag_records=None),),
        topics=(),
        notes=("operations: cluster B: no answer", "groups of A->B: cluster A: no answer"),
    )
    with served_page(FakeGatherer(down, missing={"B->A": "not read yet"})) as server:
        wait_until_read(server)
        flows = {"A->B": "cluster A: no answer", "B->A": "not read yet"}
        for name, unread in (
            ("halted", flows),
            ("topics", flows),
            ("groups", flows | {"groups of A->B": "cluster A: no answer"}),
            ("operations", {"operations": "cluster B: no answer"}),
        ):
            answer = ask(server, f"/api/{name}").json()
            assert answer == {name: [], "unread": unread}
            OAS31Validator(schema_of(described, f"/api/{name}")).validate(answer)


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/flows", "/api/x", "/healthz"])
def test_every_answer_has_the_headers(server: WebServer, path: str) -> None:
    headers = ask(server, path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(("form", "kind"), [("html", "text/html; charset=utf-8"), ("", "application/json")])
def test_a_stored_report_can_do_nothing(server: WebServer, form: str, kind: str) -> None:
    answer = ask(server, f"/api/drill?flow=A-%3EB&began_ms=1790000000000&form={form}")
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert answer.headers["content-security-policy"] == (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "sandbox"
    )
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", ""])
def test_another_host_name_is_refused_on_loopback(server: WebServer, host: str) -> None:
    assert ask(server, "/", Host=host).status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:9"])
def test_names_of_this_machine_are_accepted(server: WebServer, host: str) -> None:
    assert ask(server, "/api/flows", Host=host).status == 200


def test_nothing_but_the_page_and_health_is_shown_without_the_token(guarded: WebServer) -> None:
    for path in (
        "/api/snapshot",
        "/api/stream",
        "/api/settings",
        "/api/partitions",
        "/api/report",
        "/api/drill",
        "/api/none",
    ):
        assert ask(guarded, path).status == 401, path
        assert ask(guarded, path, Authorization="Bearer wrong-token-of-some-length").status == 401
    for path in ("/", "/app.js", "/healthz", "/readyz", "/api/openapi.json"):
        assert ask(guarded, path).status == 200, path
    session = ask(guarded, "/api/session").json()
    assert (session["token_required"], session["file"], session["csrf"]) == (True, None, None)


def test_the_token_opens_everything_and_becomes_a_cookie(guarded: WebServer) -> None:
    wait_until_read(guarded, "/api/openapi.json")
    assert ask(guarded, "/api/settings", **BEARER).status == 200
    answer = ask(guarded, "/api/session", method="POST", **BEARER)
    assert answer.status == 204
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    name_and_value = cookie.partition(";")[0]
    assert name_and_value.startswith(f"mirrorless_{guarded.port}=")
    assert ask(guarded, "/api/settings", Cookie=name_and_value).status == 200
    assert ask(guarded, "/api/settings", Cookie=f"mirrorless_{guarded.port}=x").status == 401


def test_another_site_cannot_sign_in(guarded: WebServer) -> None:
    assert ask(guarded, "/api/session", method="POST").status == 401
    assert ask(guarded, "/api/session", method="POST", Sec_Fetch_Site="cross-site", **BEARER).status == 401


def signed_in(server: WebServer) -> dict[str, str]:
    cookie = ask(server, "/api/session", method="POST", **BEARER).headers["set-cookie"].partition(";")[0]
    csrf = ask(server, "/api/session", Cookie=cookie).json()["csrf"]
    return {"Cookie": cookie, "X_CSRF_Token": csrf}


def test_a_flow_is_paused_and_resumed(guarded: WebServer, gatherer: FakeGatherer) -> None:
    page = signed_in(guarded)
    gatherer.written.clear()
    for action in ("pause", "resume"):
        answer = ask(guarded, f"/api/flows/{action}", method="POST", body={"flow": "A->B"}, **page)
        assert answer.status == 200, answer
    answer = ask(guarded, "/api/flows/pause", method="POST", body={"flow": "A->B"}, **BEARER)
    assert answer.json() == {"flow": "A->B", "state": "PAUSED"}
    assert gatherer.written == [("A->B", "PAUSED"), ("A->B", "STARTED"), ("A->B", "PAUSED")]


def test_a_flow_that_waits_for_its_turn_is_not_resumed(guarded: WebServer, gatherer: FakeGatherer) -> None:
    page, before = signed_in(guarded), gatherer.known
    stopped = tuple(replace(one, state=FlowState.STOPPED) for one in before.flows)
    gatherer.known = replace(before, flows=stopped)
    try:
        answer = ask(guarded, "/api/flows/resume", method="POST", body={"flow": "A->B"}, **page)
    finally:
        gatherer.known = before
    assert (answer.status, "waits for its turn" in answer.json()["error"]) == (409, True), answer


def test_requests_of_other_sites_do_nothing(guarded: WebServer, gatherer: FakeGatherer) -> None:
    page = signed_in(guarded)
    gatherer.written.clear()

    def act(**headers: str) -> int:
        return ask(guarded, "/api/flows/pause", method="POST", body={"flow": "A->B"}, **headers).status

    assert act(Cookie=page["Cookie"]) == 403
    assert act(Cookie=page["Cookie"], X_CSRF_Token="0" * 64) == 403
    assert act(**page, Origin="http://evil.example") == 403
    assert act(**page, Sec_Fetch_Site="cross-site") == 403
    assert act(**page, Sec_Fetch_Site="same-site") == 403
    assert act(X_CSRF_Token=page["X_CSRF_Token"]) == 401
    assert ask(guarded, "/api/flows/pause", **BEARER).status == 405
    assert gatherer.written == []


@pytest.mark.parametrize(
    "body", [None, [], {}, {"flow": "X->Y"}, {"flow": ["A->B"]}, {"flow": "A->B", "x": "y" * 5_000}]
)
def test_a_request_that_makes_no_sense_does_nothing(guarded: WebServer, gatherer: FakeGatherer, body: object) -> None:
    gatherer.written.clear()
    assert ask(guarded, "/api/flows/pause", method="POST", body=body, **BEARER).status == 404
    assert gatherer.written == []


def test_without_actions_nothing_can_be_changed(server: WebServer, gatherer: FakeGatherer) -> None:
    gatherer.written.clear()
    assert ask(server, "/api/flows/pause", method="POST", body={"flow": "A->B"}).status == 403
    with served_page(gatherer, token=TOKEN) as with_token:
        answer = ask(with_token, "/api/flows/pause", method="POST", body={"flow": "A->B"}, **BEARER)
        assert answer.status == 403
    assert gatherer.written == []


def test_a_token_is_made_where_one_is_needed() -> None:
    assert ServerTerms().resolved().token is None
    for terms in (ServerTerms(actions=True), ServerTerms(address="0.0.0.0")):  # noqa: S104 -- not bound
        made = terms.resolved().token
        assert made is not None
        assert len(made) > SHORTEST_TOKEN
        assert made != terms.resolved().token
    assert ServerTerms(actions=True, token=TOKEN).resolved().token == TOKEN


def test_addresses_of_this_machine_alone() -> None:
    cases: list[tuple[str, bool]] = [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 -- not bound
        ("::", False),
        ("a.b", False),
    ]
    assert [(address, is_loopback(address)) for address, _ in cases] == cases


def test_the_printed_address_has_a_new_token_and_never_one_that_was_given(gatherer: FakeGatherer) -> None:
    with served_page(gatherer, actions=True) as server:
        assert server.url.startswith(f"http://localhost:{server.port}/#token=")
    with served_page(gatherer, token=TOKEN) as server:
        assert server.url == f"http://localhost:{server.port}/"


def test_a_port_in_use_is_an_error_of_one_line(server: WebServer, gatherer: FakeGatherer) -> None:
    with (
        pytest.raises(PrerequisiteError, match=f"cannot listen on 127.0.0.1 port {server.port} for the page"),
        served_page(gatherer, port=server.port),
    ):
        pass


def test_updates_follow_until_the_server_ends(gatherer: FakeGatherer) -> None:
    received = bytearray()
    with served_page(gatherer) as server, socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while received.count(b"event: delta") < 2:
            received += connection.recv(65_536)
        ended = threading.Thread(target=lambda: received.extend(iter_all(connection)))
        ended.start()
    ended.join(5)
    assert not ended.is_alive()
    assert received.count(b"event: snapshot") == 1
    assert b"content-type: text/event-stream" in received


def iter_all(connection: socket.socket) -> bytes:
    content = b""
    try:
        while part := connection.recv(65_536):
            content += part
    except OSError:
        pass
    return content


def self_signed(file: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(private + certificate.public_bytes(encoding))
    return file


def test_tls_by_certificate_files(tmp_path: Path, gatherer: FakeGatherer) -> None:
    pem = self_signed(tmp_path / "server.pem")
    check_files(ServerTerms(cert=str(pem), key=str(pem)))
    with served_page(gatherer, cert=str(pem), key=str(pem), token=TOKEN) as server:
        context = ssl.create_default_context(cafile=str(pem))
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=10)
        connection.request("POST", "/api/session", headers=BEARER)
        assert "; secure" in (connection.getresponse().headers["set-cookie"] or "").lower()
        connection.close()


def test_files_that_are_no_certificates_are_an_error_of_one_line(tmp_path: Path) -> None:
    wrong = tmp_path / "x.pem"
    wrong.write_text("nothing")
    with pytest.raises(PrerequisiteError, match=r"cannot use .*x\.pem and .*x\.pem for TLS"):
        check_files(ServerTerms(cert=str(wrong), key=str(wrong)))
