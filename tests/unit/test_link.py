"""The relay that stands for a link between regions in tests and benchmarks: it delays, limits, cuts and resets."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from tests.support.link import Link, LinkTerms

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def echo(terms: LinkTerms) -> Iterator[Link]:
    """A server that answers with what it hears, behind a link."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with suppress(OSError), client:
            while heard := client.recv(1 << 16):
                client.sendall(heard)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    link = Link(terms)
    try:
        link.connect(server.getsockname()[1])
        yield link
    finally:
        link.close()
        server.close()


def exchange(client: socket.socket, data: bytes) -> float:
    """Send, and return the seconds until all of it has come back."""
    began = time.monotonic()
    threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
    heard = b""
    while len(heard) < len(data):
        heard += client.recv(1 << 16)
    assert heard == data
    return time.monotonic() - began


def test_a_connection_is_open_after_one_round_trip_and_answers_after_another() -> None:
    with echo(LinkTerms(round_trip_s=0.1)) as link, socket.create_connection(("127.0.0.1", link.port)) as client:
        assert exchange(client, b"first") >= 0.2
        assert exchange(client, b"second") >= 0.1


def test_a_window_lets_one_pass_in_each_round_trip() -> None:
    terms = LinkTerms(round_trip_s=0.1, window_bytes=10_000)
    with echo(terms) as link, socket.create_connection(("127.0.0.1", link.port)) as client:
        assert exchange(client, bytes(50_000)) >= 0.1 + 4 * 0.1


def test_a_bandwidth_is_shared_by_all_connections() -> None:
    with echo(LinkTerms(bytes_per_second=1_000_000)) as link:
        clients = [socket.create_connection(("127.0.0.1", link.port)) for _ in range(2)]
        began = time.monotonic()
        threads = [threading.Thread(target=exchange, args=(client, bytes(100_000))) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - began >= 0.2
        for client in clients:
            client.close()


def test_a_cut_delays_and_a_reset_ends() -> None:
    with echo(LinkTerms()) as link, socket.create_connection(("127.0.0.1", link.port)) as client:
        exchange(client, b"open")
        link.cut(0.3)
        assert exchange(client, b"held") >= 0.25
        assert link.stats()["open"] == 1
        assert link.reset() == 1
        client.settimeout(10)
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_after_a_cut_a_connection_waits_for_its_next_retransmission() -> None:
    """At 0.2, 0.6 and 1.4 s; a new connection's SYN follows after 1 s."""
    with echo(LinkTerms()) as link, socket.create_connection(("127.0.0.1", link.port)) as client:
        exchange(client, b"open")
        link.cut(0.7, retransmits=True)
        with socket.create_connection(("127.0.0.1", link.port)) as new:
            assert 0.9 <= exchange(new, b"new") < 1.35
        assert exchange(client, b"open again") < 0.1
        link.cut(0.7, retransmits=True)
        assert 1.3 <= exchange(client, b"held") < 1.9
        assert exchange(client, b"open") < 0.1
