"""`client.rack=auto` is the id of the zone that Lambda's metadata endpoint has."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.client_settings import client_rack, for_confluent, for_kafka_python
from mirrorless.clusters.zone import zone_id
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

AUTO = Cluster(alias="a", bootstrap_servers="b:1", client={"client.rack": "auto"})


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    zone_id.cache_clear()
    yield
    zone_id.cache_clear()


@contextmanager
def endpoint(answer: bytes, status: int = 200) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['Authorization']}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def test_on_lambda_the_rack_is_the_id_of_the_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    with endpoint(b'{"AvailabilityZoneID": "use1-az4"}') as (host, asked):
        monkeypatch.setenv("AWS_LAMBDA_METADATA_API", host)
        monkeypatch.setenv("AWS_LAMBDA_METADATA_TOKEN", "token")
        assert client_rack(AUTO) == "use1-az4"
        assert for_confluent(AUTO, role="consumer")["client.rack"] == "use1-az4"
        assert for_kafka_python(AUTO, role="consumer")["client_rack"] == "use1-az4"
        assert asked == ["/2026-01-15/metadata/execution-environment Bearer token"]


@pytest.mark.parametrize(("answer", "status"), [(b"", 500), (b"none", 200), (b"[]", 200), (b"{}", 200)])
def test_where_the_zone_is_not_known_leaders_are_read(
    answer: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client_rack(AUTO) is None
    zone_id.cache_clear()
    with endpoint(answer, status) as (host, _):
        monkeypatch.setenv("AWS_LAMBDA_METADATA_API", host)
        monkeypatch.setenv("AWS_LAMBDA_METADATA_TOKEN", "token")
        assert client_rack(AUTO) is None
        assert "client.rack" not in for_confluent(AUTO, role="consumer")


def test_a_rack_that_is_written_out_is_used() -> None:
    assert client_rack(AUTO.model_copy(update={"client": {"client.rack": "use1-az1"}})) == "use1-az1"
