"""A session of fetches with a real broker: what it leaves out of its answers, and what becomes of one it forgot."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.cluster_client import ClusterClient
from mirrorless.protocol.fetch import Fetch
from mirrorless.protocol.fetch_session import FetchSession
from mirrorless.settings import Cluster
from tests.support.world import delete, producer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from mirrorless.protocol.requests import Fetched
    from tests.support.world import World


class Reader:
    """Fetches all partitions of one topic from where it stands, one request after the other."""

    def __init__(self, net: EventLoop, wire: ClusterClient, topic: str, partitions: int) -> None:
        self._net, self._wire, self._topic = net, wire, topic
        self.session = FetchSession()
        self.positions = dict.fromkeys(range(partitions), 0)
        self._connect()

    def _connect(self) -> None:
        self._net.run(lambda: self._wire.connect(timeout_ms=10_000, topics=[self._topic]))
        self.node = self._wire.leader((self._topic, 0))
        until = time.monotonic() + 60
        while any(one.error_code for one in self._fetch(None)):  # brokers tell of partitions before they serve them
            assert time.monotonic() < until

    def read(self) -> dict[int, tuple[int, int]]:
        """Last stable offset and bytes of each partition of which the answer tells."""
        return {one.place[1]: (one.last_stable_offset, len(one.records)) for one in self._fetch(self.session)}

    def _fetch(self, session: FetchSession | None) -> list[Fetched]:
        wanted = [((self._topic, partition), offset, -1) for partition, offset in self.positions.items()]

        async def ask() -> list[Fetched]:
            assert self.node is not None
            return await self._wire.fetch(self.node, wanted, session=session)

        found: list[Fetched] = self._net.run(ask)
        return found

    def forget(self, session: FetchSession) -> None:
        async def say() -> None:
            assert self.node is not None
            await self._wire.forget(self.node, session)

        self._net.run(say)

    def learn_of_another_topic(self) -> None:
        before, until = self._wire.topic_id(self._topic), time.monotonic() + 60
        while self._wire.topic_id(self._topic) in (before, None):
            assert time.monotonic() < until
            self._wire.refresh_leaders()
            self._net.run(lambda: self._net.sleep(0.1))


@contextmanager
def reader(world: World, topic: str, partitions: int) -> Iterator[Reader]:
    net = EventLoop()
    cluster = Cluster(alias="A", bootstrap_servers=world.source.bootstrap_servers)
    wire = ClusterClient(net, cluster="A", config=for_kafka_python(cluster, role="consumer"))
    try:
        yield Reader(net, wire, topic, partitions)
    finally:
        wire.close()
        net.close()


def append(world: World, topic: str, partition: int, *values: bytes) -> None:
    client = producer(world.source)
    for value in values:
        client.produce(topic, value=value, partition=partition)
    assert client.flush(60) == 0


def test_an_answer_tells_what_is_new(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[int] = []
    encode = Fetch.encode

    def counted(self: Fetch, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        named.append(len(self._asked.positions))
        return encode(self, *arguments, **options)

    topic = world.topic(partitions=100)
    append(world, topic, 3, b"a", b"b")
    with reader(world, topic, 100) as reads:
        monkeypatch.setattr(Fetch, "encode", counted)
        assert reads.read().keys() == set(range(100))
        told = reads.read()  # of what was there before too: its position did not change
        assert told.keys() == {3}
        assert told[3][0] == 2
        reads.positions[3] = 2
        assert reads.read() == {}
        append(world, topic, 7, b"c")
        assert {place: end for place, (end, _) in reads.read().items()} == {7: 1}
        del reads.positions[7]
        assert reads.read() == {}
        reads.positions[7] = 0
        assert reads.read().keys() == {7}
        reads.positions[7] = 1
        reads.session.renew((topic, 7))
        assert reads.read().keys() == set(range(100))
        assert reads.read() == {}
    assert named == [100, 0, 1, 0, 0, 1, 100, 0]


def test_a_session_that_the_leader_forgot_is_begun_anew_unnoticed(world: World) -> None:
    topic = world.topic(partitions=5)
    with reader(world, topic, 5) as reads:
        reads.read()
        assert reads.read() == {}
        reads.forget(reads.session)
        assert reads.read().keys() == set(range(5))
        assert reads.read() == {}


def test_two_readers_do_not_disturb_each_other(world: World) -> None:
    topic = world.topic(partitions=2)
    with reader(world, topic, 2) as one, reader(world, topic, 2) as other:
        one.read()
        other.read()
        append(world, topic, 1, b"a")
        assert one.read().keys() == {1}
        assert other.read().keys() == {1}


def test_a_topic_that_was_made_again_is_told_of_from_its_begin(world: World) -> None:
    topic = world.topic(partitions=2)
    append(world, topic, 1, b"a")
    with reader(world, topic, 2) as reads:
        reads.read()
        delete(world.source, topic)
        admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
        reads.learn_of_another_topic()
        assert {place: end for place, (end, _) in reads.read().items()} == {0: 0, 1: 0}
