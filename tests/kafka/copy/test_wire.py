"""The raw wire against a real broker."""

from __future__ import annotations

import socket
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from kafka import errors as kafka_errors
from kafka.net import selector

from mirrorless.batches.stamp import Stamped
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python import transport
from mirrorless.kafka_python.connection_manager import ExtraConnection, Node
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.cluster_client import EARLIEST, EARLIEST_LOCAL, LATEST, READ_UNCOMMITTED, ClusterClient
from mirrorless.protocol.leaders import TROUBLE
from mirrorless.protocol.produce import Produce
from mirrorless.protocol.requests import AppendResult, Offset
from mirrorless.settings import Cluster
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.local.embedded_kafka import EmbeddedCluster


@pytest.fixture
def net() -> Iterator[Any]:
    selector = EventLoop()
    yield selector
    selector.close()


def wire_to(net: Any, servers: str, **client: str) -> ClusterClient:  # noqa: ANN401 -- the library has no types
    client = {key.replace("_", "."): value for key, value in client.items()}
    cluster = Cluster(alias="A", bootstrap_servers=servers, client=client)
    return ClusterClient(net, cluster="A", config=for_kafka_python(cluster, role="consumer"))


def test_offsets_of_every_kind(net: Any, world: World) -> None:  # noqa: ANN401
    topic = world.topic()
    fill(world.source, topic, (b"%d" % n for n in range(7)))
    wire = wire_to(net, world.source.bootstrap_servers)

    async def ask() -> list[Offset]:
        await wire.connect(timeout_ms=10_000, topics=[topic])
        node = wire.leader((topic, 0))
        assert node is not None
        kinds = EARLIEST, EARLIEST_LOCAL, LATEST
        return [(await wire.offsets(node, [(topic, 0)], at=at))[topic, 0] for at in kinds]

    assert net.run(ask) == [Offset(0, 0), Offset(0, 0), Offset(7, 0)]
    wire.close()


def test_partitions_of_topics_in_turn_are_served_in_the_order_of_the_request(net: Any, world: World) -> None:  # noqa: ANN401
    topics = [world.topic(partitions=2), world.topic(partitions=2)]
    for topic in topics:
        fill(world.source, topic, [bytes(300_000)] * 2, partitions=2)
    places = [(topic, partition) for partition in range(2) for topic in topics]
    wire = wire_to(net, world.source.bootstrap_servers)

    async def ask(order: list[tuple[str, int]]) -> list[tuple[str, int]]:
        await wire.connect(timeout_ms=10_000, topics=topics)
        node = wire.leader(places[0])
        assert node is not None
        answer = await wire.fetch(node, [(place, 0, -1) for place in order], max_bytes=400_000)
        assert [part.place for part in answer] == order
        return [part.place for part in answer if len(part.records) >= 300_000]

    for order in (places, places[::-1]):
        until = time.monotonic() + 30
        while (found := net.run(lambda order=order: ask(order))) != order[:1]:
            assert time.monotonic() < until, found
    wire.close()


def test_without_any_connection_the_bootstrap_servers_are_asked_again(net: Any, world: World) -> None:  # noqa: ANN401
    topic = world.topic()
    wire = wire_to(net, world.source.bootstrap_servers)
    net.run(lambda: wire.connect(timeout_ms=10_000, topics=[topic]))
    net.run(lambda: wire.offsets(1, [(topic, 0)], at=LATEST))
    first = wire._manager._bootstrap_future
    net.run(lambda: wire.connect(timeout_ms=10_000, topics=[topic]))
    assert wire._manager._bootstrap_future is first
    for connection in list(wire._manager._conns.values()):
        connection.close()
    net.run(lambda: wire.connect(timeout_ms=10_000, topics=[topic]))
    assert wire._manager._bootstrap_future is not first
    assert wire.leader((topic, 0)) is not None
    wire.close()


def test_a_topic_that_is_not_there_does_not_keep_the_others_from_connecting(net: Any, world: World) -> None:  # noqa: ANN401
    topic = world.topic()
    wire = wire_to(net, world.source.bootstrap_servers)
    net.run(lambda: wire.connect(timeout_ms=10_000, topics=[topic, "never-made"]))
    assert wire.leader((topic, 0)) is not None
    assert wire.leader(("never-made", 0)) is None
    wire.close()


def test_a_listener_that_says_nothing_is_given_up_in_time(net: Any, source: EmbeddedCluster) -> None:  # noqa: ANN401
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        wire = wire_to(net, f"127.0.0.1:{port}")
        began = time.monotonic()
        with pytest.raises(ClusterUnavailable, match=f"no answer from 127.0.0.1:{port}"):
            net.run(lambda: wire.connect(timeout_ms=1_000, topics=[]))
        assert time.monotonic() - began < 5
        wire.close()


def test_the_library_comes_by_what_is_replaced_of_it(
    net: Any,  # noqa: ANN401
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise it would do these things its own way, which is right too, and slow."""
    topic = world.topic()
    fill(world.source, topic, (b"%d" % n for n in range(100)), linger_ms=500)  # one batch, on a busy machine too
    came_by: Counter[str] = Counter()

    def watch(owner: Any, name: str) -> None:  # noqa: ANN401
        replaced = getattr(owner, name)

        def counted(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            came_by[name] += 1
            return replaced(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)

    hooks = {
        selector: ["log_trace"],
        transport: ["read_answers", "write_pieces"],
        transport.Plain: ["write"],
        transport.Protocol: ["send_bytes"],
        EventLoop: ["_unschedule", "_schedule_tasks", "register_event", "wakeup"],
    }
    for owner, names in hooks.items():
        for name in names:
            watch(owner, name)
    wire = wire_to(net, world.source.bootstrap_servers)

    async def fetch_and_append() -> bytes | memoryview:
        await wire.connect(timeout_ms=10_000, topics=[topic])
        node = wire.leader((topic, 0))
        assert node is not None
        fetched = await wire.fetch_one(node, ((topic, 0), 0, -1), isolation=READ_UNCOMMITTED)
        batch = bytes(fetched.records)
        (appended,) = await wire.append(
            node, [((topic, 0), Stamped(batch[:61], batch[61:], len(batch)))], timeout_ms=10_000
        )
        assert appended.base_offset == 100
        return fetched.records

    assert isinstance(net.run(fetch_and_append), memoryview)
    assert came_by.keys() == {name for names in hooks.values() for name in names}
    wire.close()


def test_appends_over_both_connections_to_a_broker_are_heard_of_in_order(
    net: Any,  # noqa: ANN401
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And never within the call, also where it is refused: the caller is in the middle of something."""
    topic = world.topic(2)
    fill(world.source, topic, (b"%d" % n for n in range(100)), linger_ms=500)  # one batch, on a busy machine too
    wire = wire_to(net, world.source.bootstrap_servers, request_timeout_ms="12345")
    asked: list[Any] = []
    send = wire._manager.send

    def note(request: Any, *where: Any) -> Any:  # noqa: ANN401
        asked.append(request)
        return send(request, *where)

    monkeypatch.setattr(wire._manager, "send", note)
    heard: list[tuple[int, int | None, type[BaseException] | None]] = []

    def append(node: Node, partition: int, batch: bytes) -> bool:
        before = len(heard)

        def hear(answers: list[AppendResult] | BaseException) -> None:
            if isinstance(answers, BaseException):
                heard.append((partition, None, type(answers)))
            else:
                heard.append((partition, answers[0].base_offset, None))

        stamped = Stamped(batch[:61], batch[61:], len(batch))
        sent = wire.append_at_once(node, [((topic, partition), stamped)], heard=hear)
        assert len(heard) == before
        return sent

    async def appends() -> int:
        await wire.connect(timeout_ms=10_000, topics=[topic])
        node = wire.leader((topic, 0))
        assert node is not None
        ends = await wire.offsets(node, [(topic, 0), (topic, 1)], at=LATEST)
        written = next(place for place in ends if ends[place].offset)
        batch = bytes(await wire.read_at(node, written, 0))
        for _ in range(5):
            assert append(node, 0, batch)
            assert append(ExtraConnection(node, 2), 1, batch)
        assert not append(node + 1, 7, batch)
        while len(heard) < 11:
            await net.sleep(0.01)
        connections = wire._manager._conns
        assert connections[node].transport is not connections[ExtraConnection(node, 2)].transport
        return ends[topic, 0].offset

    first = net.run(appends)
    assert {one.timeout_ms for one in asked if isinstance(one, Produce)} == {12_345}
    assert heard[0] == (7, None, kafka_errors.UnknownBrokerIdError)
    assert str(kafka_errors.UnknownBrokerIdError(ExtraConnection(3, 2))).endswith("3 (connection 2)")
    records = 100
    for partition, begins in ((0, first), (1, records - first)):
        offsets = [offset for number, offset, _ in heard if number == partition]
        assert offsets == [begins + records * number for number in range(5)]
    wire.close()


def test_a_broker_that_stalls_in_the_middle_of_a_request_loses_its_connection_at_once(net: Any, world: World) -> None:  # noqa: ANN401
    """With all that was still to be written to it: the next request finds a new connection, or none."""
    topic = world.topic()
    config = {"bootstrap_servers": world.source.bootstrap_servers, "request_timeout_ms": 500}
    wire = ClusterClient(net, cluster="A", config=config)

    async def stall() -> list[type[BaseException]]:
        await wire.connect(timeout_ms=10_000, topics=[topic])
        node = wire.leader((topic, 0))
        assert node is not None
        connection = await wire._manager.get_connection(node)
        connection.transport._sock_send = lambda: (0, None)  # as if its socket took nothing more
        large = Stamped(bytes(61), bytes(1 << 20), 61 + (1 << 20))
        found: list[type[BaseException]] = []
        for _ in range(2):
            try:
                await wire.append(node, [((topic, 0), large)], timeout_ms=10_000)
            except kafka_errors.KafkaError as error:
                found.append(type(error))
        return found

    (error,) = net.run(stall)  # of the first one
    assert issubclass(error, TROUBLE)
    wire.close()


def test_an_answer_that_makes_no_sense_passes(net: Any, world: World) -> None:  # noqa: ANN401
    """It ends the connection, and so what all partitions of that leader were asked for: none of them halts for it."""
    topic = world.topic()
    wire = ClusterClient(net, cluster="A", config={"bootstrap_servers": world.source.bootstrap_servers})
    found: list[type[BaseException]] = []

    async def fetch() -> int:
        await wire.connect(timeout_ms=10_000, topics=[topic])
        node = wire.leader((topic, 0))
        assert node is not None
        connection = await wire._manager.get_connection(node)
        connection.transport._sock_recv = lambda: (b"", kafka_errors.InvalidReceiveError("a frame of -2 bytes"))
        try:
            await wire.fetch(node, [((topic, 0), 0, -1)])
        except kafka_errors.KafkaError as error:
            found.append(type(error))
        return len(await wire.fetch(node, [((topic, 0), 0, -1)]))

    assert net.run(fetch) == 1  # by another connection
    assert found == [kafka_errors.InvalidReceiveError]
    assert issubclass(found[0], TROUBLE)
    wire.close()
