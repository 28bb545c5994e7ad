"""Connections on which nothing is acknowledged are ended; what they did not send is not sent later."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka import errors as kafka_errors
from kafka.net.inet import KafkaNetSocket

from mirrorless.kafka_python import dead_connections
from mirrorless.kafka_python.connection_manager import ConnectionManager
from mirrorless.kafka_python.dead_connections import DeadConnections, retransmissions
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.kafka_python.transport import Plain

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        with ours, theirs:
            theirs.settimeout(10)
            yield ours, theirs


class Connection:
    """One connection of a manager."""

    def __init__(self, sock: socket.socket) -> None:
        self.transport = SimpleNamespace(_sock=sock, host_port=lambda: "10.0.0.1:9092<-5000")
        self.closed_with: Exception | None = None

    def close(self, error: Exception) -> None:
        self.closed_with = error


def test_a_connection_is_ended_after_four_retransmissions(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    sent = {ours: 3, theirs: 3}
    monkeypatch.setattr(dead_connections, "retransmissions", sent.__getitem__)
    monkeypatch.setattr(dead_connections, "_LOOK_EVERY_S", 0.01)
    dead, well = Connection(ours), Connection(theirs)
    opening = SimpleNamespace(transport=None)
    manager: Any = SimpleNamespace(closed=False, _conns={1: dead, 2: well, 3: opening})
    with closing(EventLoop()) as net:
        DeadConnections(net, manager)

        async def wait() -> None:
            await net.sleep(0.1)
            assert dead.closed_with is None
            sent[ours] = 4
            await net.sleep(0.1)

        net.run(wait)
        assert isinstance(dead.closed_with, kafka_errors.KafkaConnectionError)
        assert "10.0.0.1:9092 does not acknowledge" in str(dead.closed_with)
        assert well.closed_with is None


def test_nothing_was_retransmitted_on_a_healthy_connection(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.sendall(b"request")
    assert theirs.recv(16) == b"request"
    assert retransmissions(ours) == 0
    ours.close()
    assert retransmissions(ours) == 0


@pytest.mark.parametrize("ends", ["failed", "idle", "killed"])
def test_what_a_connection_did_not_send_is_dropped(ends: str) -> None:
    """The peer reads nothing until the connection is closed, so that most of the request is still unsent."""
    with socket.create_server(("127.0.0.1", 0)) as server, closing(EventLoop()) as net:
        host, port = server.getsockname()
        config: Any = SimpleNamespace(config={"socket_options": ()}, _net=net)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened: list[socket.socket] = []

        async def connect() -> None:
            opened.append(await ConnectionManager._connected_at(config, KafkaNetSocket(), found, until=None))

        net.run(connect)
        (ours,), (theirs, _) = opened, server.accept()
        theirs.settimeout(10)
        sent = 0
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            try:
                sent += ours.send(bytes(1 << 16))
            except BlockingIOError:
                time.sleep(0.01)
        transport: Any = Plain(net, ours)  # type: ignore[no-untyped-call]
        if ends == "failed":
            transport.abort(kafka_errors.RequestTimedOutError("no answer"))
        elif ends == "idle":
            transport.close()
        else:
            ours.close()  # as the kernel does
        with theirs:
            heard, was_reset = _heard(theirs)
        assert was_reset
        assert heard < sent


def _heard(sock: socket.socket) -> tuple[int, bool]:
    heard = 0
    try:
        while some := sock.recv(1 << 20):
            heard += len(some)
    except ConnectionResetError:
        return heard, True
    return heard, False
