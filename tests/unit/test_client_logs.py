"""Failed connections are not on stderr, several times a second, unless they are asked for."""

from __future__ import annotations

import logging
import socket
import time
from typing import TYPE_CHECKING

import pytest

from mirrorless import client_logs
from mirrorless.clusters.admin import Admin
from mirrorless.errors import ClusterUnavailable
from mirrorless.protocol.cluster_client import ClusterClient
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.kafka_python.event_loop import EventLoop


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Handlers and levels of both libraries are process-wide."""
    monkeypatch.delenv(client_logs.VERBOSE, raising=False)
    loggers = (client_logs.KAFKA_PYTHON, client_logs.LIBRDKAFKA)
    before = [(one.level, one.propagate, list(one.handlers)) for one in loggers]
    yield
    for one, (level, propagate, handlers) in zip(loggers, before, strict=True):
        one.setLevel(level)
        one.propagate = propagate
        one.handlers[:] = handlers
    monkeypatch.delenv(client_logs.VERBOSE, raising=False)


@pytest.fixture
def server() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{free.getsockname()[1]}"


def fail_with_both(loop: EventLoop, server: str) -> None:
    client = ClusterClient(loop, cluster="a", config={"bootstrap_servers": [server]})
    with pytest.raises(ClusterUnavailable):
        loop.run(lambda: client.connect(timeout_ms=300, topics=[]))
    client.close()
    admin = Admin(Cluster(alias="a", bootstrap_servers=server))
    with pytest.raises(ClusterUnavailable):
        admin.metadata(timeout_s=0.5)
    until = time.monotonic() + 5
    while time.monotonic() < until and admin.client.poll(0.1):
        pass


def test_by_default_nothing_is_on_stderr_also_where_the_root_logger_writes_there(
    loop: EventLoop, server: str, capfd: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    handler = logging.StreamHandler()
    root.addHandler(handler)
    try:
        client_logs.set_up()
        fail_with_both(loop, server)
    finally:
        root.removeHandler(handler)
    assert capfd.readouterr().err == ""


def test_verbose_shows_what_both_libraries_log(loop: EventLoop, server: str, capfd: pytest.CaptureFixture[str]) -> None:
    client_logs.show()
    client_logs.set_up()
    fail_with_both(loop, server)
    lines = capfd.readouterr().err.splitlines()
    assert any(" kafka.net.manager: " in line and "failed" in line for line in lines), lines
    assert any(" mirrorless.librdkafka: " in line and "Connect to" in line for line in lines), lines


def test_a_handler_of_the_application_gets_them_without_verbose(loop: EventLoop, server: str) -> None:
    client_logs.set_up()
    heard: list[str] = []

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    client_logs.KAFKA_PYTHON.addHandler(Heard())
    fail_with_both(loop, server)
    assert any("Connection failed" in text for text in heard)


def test_processes_that_are_started_show_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(client_logs.VERBOSE, "1")  # as they inherit it
    handlers = list(client_logs.KAFKA_PYTHON.handlers)
    client_logs.set_up()
    client_logs.set_up()
    assert len(client_logs.KAFKA_PYTHON.handlers) == len(handlers) + 1
