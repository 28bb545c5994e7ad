"""A flow goes from MirrorMaker 2 to us, back, and to us again, while records keep coming: none is lost or repeated."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorless.client import MirrorClient
from mirrorless.settings import Cluster
from tests.support.peer import ConnectWorker, MirrorMaker, peer_settings
from tests.support.processes import Mirrorless
from tests.support.world import fill, producer, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from tests.support.world import World

pytestmark = pytest.mark.timeout(400)
PARTITIONS = 3
_PATIENCE_S = 150


class Stream:
    """Records that keep coming, about three hundred a second, until the context is left."""

    def __init__(self, world: World, topic: str) -> None:
        self._producer = producer(world.source, linger_ms=20, compression_type="lz4")
        self._topic = topic
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.written = 0

    def _run(self) -> None:
        while not self._ending.wait(0.02):
            for _ in range(6):
                number = self.written
                headers: list[tuple[str, str | bytes | None]] = [("n", b"%d" % number), ("n", b"again")]
                self._producer.produce(
                    self._topic,
                    value=b"%d" % number,
                    key=b"%d" % (number % 100),
                    partition=number % PARTITIONS,
                    headers=headers,
                )
                self.written += 1
            self._producer.poll(0)

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        assert self._producer.flush(30) == 0


def replicated(world: World, topic: str) -> int:
    """Committed records that the remote topic holds, 0 if there is none yet."""
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    if world.remote(topic) not in admin.list_topics(timeout=60).topics:
        return 0
    return sum(map(len, read(world.target, world.remote(topic), isolation="read_committed").values()))


def wait_until(condition: Callable[[], bool], peer: MirrorMaker | ConnectWorker) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not condition():
        peer.check()
        assert time.monotonic() < until
        time.sleep(0.5)


def let_peer_settings(world: World, topic: str, stream: Stream, **settings: str) -> None:
    """Have MirrorMaker 2 copy until it has copied records that came while it ran, and stop it."""
    with MirrorMaker(world.folder, peer_settings(world, **settings)) as peer:
        begun = stream.written
        wait_until(lambda: replicated(world, topic) > begun, peer)


@pytest.mark.parametrize("exactly_once", [pytest.param("disabled", marks=pytest.mark.nightly), "enabled"])
def test_there_and_back_again(world: World, exactly_once: str) -> None:
    topic = world.topic(partitions=PARTITIONS)
    settings = {f"{world.target_alias}.exactly.once.source.support": exactly_once}
    with Stream(world, topic) as stream:
        let_peer_settings(world, topic, stream, **settings)
        take_over(world, topic)
        let_peer_settings(world, topic, stream, **settings)
        take_over(world, topic)
    take_over(world, topic)
    assert_equal(world, topic, stream)


def take_over(world: World, topic: str) -> None:
    """Copy twice, the second time from our own progress."""
    before = replicated(world, topic)
    for _ in range(2):
        assert {report.state for report in world.copy()} <= {"caught up"}
    assert replicated(world, topic) >= before


def assert_equal(world: World, topic: str, stream: Stream) -> None:
    source = read(world.source, topic)
    assert read(world.target, world.remote(topic), isolation="read_committed") == source
    assert sum(map(len, source.values())) == stream.written


@pytest.mark.parametrize("stopped", [pytest.param("worker", marks=pytest.mark.nightly), "connector"])
def test_there_and_back_again_with_a_connect_cluster(world: World, stopped: str) -> None:
    topic = world.topic(partitions=PARTITIONS)
    offsets_topic = f"{topic}-connect-offsets"
    own = "-own" if stopped == "connector" else ""
    connector = {
        "name": f"mirror {topic}",
        "config": {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": world.source_alias,
            "target.cluster.alias": world.target_alias,
            "source.cluster.bootstrap.servers": world.source.bootstrap_servers,
            "target.cluster.bootstrap.servers": world.target.bootstrap_servers,
            "topics": topic,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "heartbeats.replication.enabled": "false",
            # Of its own (KIP-618), or what nobody but us reads: the worker's.
            "offsets.storage.topic" if stopped == "connector" else "offset.storage.topic": f"{offsets_topic}{own}",
            "tasks.max": "2",
        },
    }
    # From here on the world's file is what was posted to Connect.
    world.write_json(connector)

    def worker() -> ConnectWorker:
        return ConnectWorker(world.folder, world.target, offsets_topic=offsets_topic)

    def let_copy(peer: ConnectWorker) -> None:
        begun = stream.written
        wait_until(lambda: replicated(world, topic) > begun, peer)

    with Stream(world, topic) as stream:
        if stopped == "worker":
            for _ in range(2):
                with worker() as peer:
                    peer.start(connector)
                    let_copy(peer)
                take_over(world, topic)
        else:
            with worker() as peer:
                peer.start(connector)
                for _ in range(2):
                    let_copy(peer)
                    peer.stop_connector(connector)
                    take_over(world, topic)
                    peer.resume_connector(connector)
                let_copy(peer)
                peer.stop_connector(connector)
    take_over(world, topic)
    assert_equal(world, topic, stream)


def test_files_of_a_connect_cluster_are_used_as_they_are(world: World) -> None:
    """The JSON that was posted to Connect, and the properties file of its worker, without a changed line."""
    topic = world.topic(partitions=PARTITIONS)
    group = f"{topic}-group"
    ends = {
        "source.cluster.alias": world.source_alias,
        "target.cluster.alias": world.target_alias,
        "source.cluster.bootstrap.servers": world.source.bootstrap_servers,
        "target.cluster.bootstrap.servers": world.target.bootstrap_servers,
    }
    own = {
        "MirrorSourceConnector": {
            "topics": topic,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "heartbeats.replication.enabled": "false",
            "offset.lag.max": "0",
            "tasks.max": "2",
        },
        "MirrorCheckpointConnector": {
            "groups": group,
            "checkpoints.topic.replication.factor": "1",
            "emit.checkpoints.interval.seconds": "1",
            "refresh.groups.interval.seconds": "1",
        },
    }
    connectors: list[dict[str, Any]] = [
        {
            "name": f"{kind} of {topic}",
            "config": {"connector.class": f"org.apache.kafka.connect.mirror.{kind}", **ends, **settings},
        }
        for kind, settings in own.items()
    ]
    files = [world.folder / f"{number}.json" for number in range(len(connectors))]
    for file, connector in zip(files, connectors, strict=True):
        file.write_text(json.dumps(connector))

    def let_connect_copy(stream: Stream) -> Path:
        """Have Connect copy, and write checkpoints of a group in what it copied; return its worker's file."""
        begun = stream.written
        with ConnectWorker(world.folder, world.target, offsets_topic=f"{topic}-connect-offsets") as peer:
            for connector in connectors:
                peer.start(connector)
            wait_until(lambda: replicated(world, topic) > begun, peer)
            wait_until(is_translated, peer)
        return peer.file

    def is_translated() -> bool:
        """Move the group on: before the first offset sync that it has read, MirrorMaker 2 translates nothing."""
        move(world, topic, group)
        return bool(checkpoints(world, topic, group))

    def run_mirrorless(worker: Path) -> None:
        """Copy twice, the second time from our own progress."""
        before = replicated(world, topic)
        for _ in range(2):
            with Mirrorless(*files, worker, "--available-now", "--engine", "functions") as run:
                assert run.wait() == 0, run.text()
            assert not any("offset.storage.topic is not set" in line for line in run.strays())
        assert replicated(world, topic) > before

    with Stream(world, topic) as stream:
        for _ in range(2):
            worker = let_connect_copy(stream)
            run_mirrorless(worker)
    there = move(world, topic, group)
    with Mirrorless(*files, worker, "--available-now", "--engine", "functions") as run:
        assert run.wait() == 0, run.text()
    assert_equal(world, topic, stream)
    assert (0, there) in checkpoints(world, topic, group)


def move(world: World, topic: str, group: str) -> int:
    """Commit an offset of a group a little before the end of what is on the target; returns it."""
    offset = max(1, len(read(world.target, world.remote(topic), isolation="read_committed")[0]) - 5)
    client = Consumer({"bootstrap.servers": world.source.bootstrap_servers, "group.id": group})
    client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    client.close()
    return offset


def checkpoints(world: World, topic: str, group: str) -> set[tuple[int, int]]:
    """Partitions and offsets at which the group would continue on the target; none before the first checkpoint."""
    cluster = Cluster(alias=world.target_alias, bootstrap_servers=world.target.bootstrap_servers)
    with MirrorClient(cluster) as client:
        if f"{world.source_alias}.checkpoints.internal" not in client.checkpoint_topics():
            return set()
        found = client.translate_offsets(world.source_alias, group)
    return {(partition, offset) for (name, partition), (offset, _) in found.items() if name == world.remote(topic)}


@pytest.mark.parametrize(
    "alias", [pytest.param("site", id="named", marks=pytest.mark.nightly), pytest.param("", id="empty")]
)
def test_a_source_with_another_alias_for_mirrormaker2(world: World, alias: str) -> None:
    topic = world.topic(partitions=PARTITIONS)
    # An empty alias and an empty separator keep topic names.
    own = {"source.cluster.alias": alias} | ({} if alias else {"replication.policy.separator": ""})
    beats = {"emit.heartbeats.enabled": "false", "heartbeats.replication.enabled": "false"}
    world.write_settings(**own)
    settings = peer_settings(world, **own, **beats)
    # What the flow is called here.
    world.flow = f"{alias or world.source_alias}->{world.target_alias}"
    remote = f"{alias}.{topic}" if alias else topic

    def there() -> list[bytes]:
        admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
        if remote not in admin.list_topics(timeout=60).topics:
            return []
        return sorted(record.value or b"" for part in read(world.target, remote).values() for record in part)

    for round_ in range(2):
        first = 1_000 * round_
        fill(world.source, topic, (b"%05d" % number for number in range(first, first + 500)), partitions=PARTITIONS)
        with MirrorMaker(world.folder, settings) as peer:
            while len(there()) < first + 500:
                peer.check()
                time.sleep(0.5)
        fill(
            world.source,
            topic,
            (b"%05d" % number for number in range(first + 500, first + 1_000)),
            partitions=PARTITIONS,
        )
        for _ in range(2):
            assert {report.state for report in world.copy()} <= {"caught up"}
        assert there() == [b"%05d" % number for number in range(first + 1_000)]

    target, source = (
        AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=60).topics
        for cluster in (world.target, world.source)
    )
    assert {name for name in target if topic in name} == {remote}
    names = {f"mm2-offset-syncs{sign}{world.target_alias}{sign}internal" for sign in ("", ".")}
    assert len(names & source.keys()) == 1
