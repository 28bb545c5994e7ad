"""A pair of flows that replicate one topic both ways under its own name, with `mirrorless.both.directions=skip`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from tests.support.world import World, read, values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.local.embedded_kafka import EmbeddedCluster


def numbered(origin: str, start: int, end: int) -> list[bytes]:
    return [f"{origin}{number}".encode() for number in range(start, end)]


class BothWays:
    """A world whose file has the flow back too; each of the two copies by leases that remember nothing."""

    def __init__(self, world: World, *, partitions: int = 1, **config: str) -> None:
        self.there = world
        self.topic = world.topic(partitions, **config)
        self.back = copy.copy(world)
        self.back.source, self.back.target = world.target, world.source
        self.back.flow = back = f"{world.target_alias}->{world.source_alias}"
        world.write_settings(
            **{
                "replication.policy.class": "IdentityReplicationPolicy",
                "mirrorless.both.directions": "skip",
                f"{back}.enabled": "true",
                f"{back}.topics": self.topic,
                f"{back}.sync.topic.configs.enabled": "false",
            }
        )
        world.discover()

    def copy(self) -> None:
        """Copy in both directions, to the ends of both sides."""
        self.there.copy_to_the_end()
        self.back.copy_to_the_end()

    def written(self, cluster: EmbeddedCluster, origin: bytes) -> list[bytes]:
        """Values on a cluster that begin with `origin`, in the order of partition 0's log."""
        return [
            one for one in values(read(cluster, self.topic, isolation="read_committed")[0]) if one and one[:1] == origin
        ]

    def check(self, ours: Iterable[bytes], theirs: Iterable[bytes]) -> None:
        """Compare what both sides have of each origin with what was written there."""
        for cluster in (self.there.source, self.there.target):
            assert self.written(cluster, b"a") == list(ours)
            assert self.written(cluster, b"b") == list(theirs)


def progress_records(world: World) -> list[tuple[bytes | None, bytes | None]]:
    """The newest progress records of a flow."""
    newest = {one.key: one.value for records in read(world.target, world.progress_topic).values() for one in records}
    return [(key, value) for key, value in newest.items() if value is not None and b'"sequence"' in value]


def write_progress_records(world: World, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
    """Write progress records again, each into the partition where its key is."""
    where = {one.key: partition for partition, some in read(world.target, world.progress_topic).items() for one in some}
    client = Producer({"bootstrap.servers": world.target.bootstrap_servers})
    for key, value in records:
        client.produce(world.progress_topic, key=key, value=value, partition=where[key])
    assert client.flush(30) == 0
