"""Servers that take connections and never answer, beside healthy ones: they must not be all that is asked."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.protocol.cluster_client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_NO_FAMILY = 255
"""Addresses of this family no machine can reach: it has no such sockets."""


@pytest.fixture
def net() -> Iterator[EventLoop]:
    with closing(EventLoop()) as loop:
        yield loop


@pytest.fixture
def holes() -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]


@pytest.fixture
def full() -> Iterator[tuple[str, int]]:
    """An address that lets nobody connect, and refuses nobody: the queue of who wants to is full."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address: tuple[str, int] = server.getsockname()
        while True:
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0.5)
            try:
                waiting.connect(address)
            except TimeoutError:
                break
        yield address


@pytest.fixture(autouse=True)
def unlucky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever draws a server gets the first of those it draws from, and whoever shuffles gets what there was."""

    def first(choices: Sequence[object]) -> object:
        return choices[0]

    monkeypatch.setattr(random, "choice", first)
    monkeypatch.setattr(random, "shuffle", lambda _: None)
    monkeypatch.setattr(random, "sample", lambda items, _: items)


def address(hole: socket.socket) -> str:
    return f"127.0.0.1:{hole.getsockname()[1]}"


def wait_until_known(server: str, topic: str, *, partitions: int) -> None:
    admin, until = AdminClient({"bootstrap.servers": server}), time.monotonic() + 60
    while len(admin.list_topics(topic, timeout=60).topics[topic].partitions) < partitions:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_next_bootstrap_server_is_tried_in_time(
    net: EventLoop, source: EmbeddedCluster, holes: list[socket.socket]
) -> None:
    servers = [*map(address, holes), source.bootstrap_servers]
    with closing(ClusterClient(net, cluster="A", config={"bootstrap_servers": servers})) as wire:
        net.run(lambda: wire.connect(timeout_ms=15_000, topics=[]))


def test_the_next_address_of_a_name_is_tried_in_time(
    net: EventLoop, source: EmbeddedCluster, full: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a zone is away whose address comes first, behind one of a kind that this machine does not have (IPv6)."""
    host, _, port = source.bootstrap_servers.rpartition(":")
    lookup = socket.getaddrinfo

    def found(name: str, *rest: Any) -> list[Any]:  # noqa: ANN401
        if name != "a-name-with-three-addresses":
            return lookup(name, *rest)
        there = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in (full, (host, int(port)))]
        return [(_NO_FAMILY, socket.SOCK_STREAM, 6, "", full), *there]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with closing(
        ClusterClient(net, cluster="A", config={"bootstrap_servers": ["a-name-with-three-addresses:9092"]})
    ) as wire:
        net.run(lambda: wire.connect(timeout_ms=6_000, topics=[]))


def test_a_tls_handshake_ends_in_time_too(net: EventLoop, holes: list[socket.socket]) -> None:
    config = {"bootstrap_servers": [address(hole) for hole in holes], "security_protocol": "SSL"}
    with closing(ClusterClient(net, cluster="A", config=config)) as wire:
        with pytest.raises(ClusterUnavailable):
            net.run(lambda: wire.connect(timeout_ms=6_000, topics=[]))
        for hole in holes:
            hole.settimeout(0)
            hole.accept()[0].close()  # which there would be none to do on


@pytest.mark.nightly
def test_metadata_does_not_wait_for_the_broker_that_hangs(net: EventLoop, tmp_path: Path) -> None:
    """While the one that is well has requests in flight, and the one that is not has none."""
    with start_clusters([ClusterSpec(name="two", brokers=2)], directory=tmp_path) as started:
        admin = AdminClient({"bootstrap.servers": started["two"].bootstrap_servers})
        admin.create_topics([NewTopic("topic", 2, 1)])["topic"].result()
        hung, well = started["two"].brokers
        wait_until_known(well.address, "topic", partitions=2)
        wire = ClusterClient(net, cluster="A", config={"bootstrap_servers": well.address})
        manager: Any = wire._manager

        async def fetch(place: TopicPartition) -> None:
            while not manager.closed:
                await wire.fetch(well.node_id, [(place, 0, -1)], max_wait_ms=500)

        async def ask() -> None:
            await wire.connect(timeout_ms=10_000, topics=["topic"])
            (place,) = (place for place in [("topic", 0), ("topic", 1)] if wire.leader(place) == well.node_id)
            net.call_soon(fetch(place))
            for _ in range(5):
                await manager.wait_for(manager.cluster.request_update(), 5_000)

        assert hung.process_id is not None
        os.kill(hung.process_id, signal.SIGSTOP)
        try:
            net.run(ask)
        finally:
            os.kill(hung.process_id, signal.SIGCONT)
            wire.close()
