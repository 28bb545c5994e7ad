"""A socket of kafka-python's that no connection came of is closed, not left to the garbage collector."""

from __future__ import annotations

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from kafka import errors as kafka_errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager

import mirrorless.clusters.kafka_admin_client  # noqa: F401 -- it is what closes
from mirrorless.kafka_python.event_loop import EventLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def net() -> Iterator[EventLoop]:
    with contextlib.closing(EventLoop()) as loop:
        yield loop


def fail_to_connect(net: EventLoop, port: int, **config: Any) -> pytest.ExceptionInfo[Any]:  # noqa: ANN401
    """Return what holds all that was under way, so that no garbage collector has a turn."""
    manager = KafkaConnectionManager(net, bootstrap_servers=f"127.0.0.1:{port}", **config)
    (node,) = manager.cluster.bootstrap_brokers()
    with pytest.raises(kafka_errors.KafkaConnectionError) as failure:
        net.run(manager._build_transport, node)
    return failure


def test_one_that_is_refused(net: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[socket.socket] = []
    make: Callable[..., socket.socket] = KafkaNetSocket.socket

    def noticed(self: Any, *kind: Any) -> socket.socket:  # noqa: ANN401 -- the library's
        opened.append(make(self, *kind))
        return opened[-1]

    monkeypatch.setattr(KafkaNetSocket, "socket", noticed)
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        fail_to_connect(net, nobody_listens.getsockname()[1])
    assert [sock.fileno() for sock in opened] == [-1]


def test_one_that_the_other_side_does_not_speak_tls_on(net: EventLoop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as beside:

        def answer() -> socket.socket:
            broker, _ = server.accept()
            broker.settimeout(10)
            broker.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return broker

        answering = beside.submit(answer)
        failure = fail_to_connect(net, server.getsockname()[1], security_protocol="SSL")
        with answering.result(10) as broker, contextlib.suppress(ConnectionResetError):
            while broker.recv(1 << 16):
                pass
        assert "Handshake failed" in str(failure.value)
