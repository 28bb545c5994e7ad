"""Remote topics that are written by hand, with whatever a copy should not have done."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import last_stable_offsets
from mirrorless.settings import Cluster
from tests.support.world import producer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World

Headers = list[tuple[str, str | bytes | None]]
BEGAN_MS = int(time.time() * 1000) - 3_600_000  # retention leaves it alone


class Record(NamedTuple):
    """What a producer can say of a record."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


def record(number: int) -> Record:
    """A record that no other number has; headers of the same name come twice, and some values are null or empty."""
    headers: Headers = [("a", b"1"), ("b", b"%d" % number), ("a", None)] if number % 10 < 3 else []
    value = None if number % 50 == 7 else b"value %d" % number
    return Record(b"" if number % 20 == 3 else b"key %d" % number, value, headers, BEGAN_MS + number)


def write(cluster: EmbeddedCluster, topic: str, records: Iterable[Record], *, partition: int = 0) -> None:
    """Produce exactly these records."""
    client = producer(cluster)
    for one in records:
        client.produce(
            topic, key=one.key, value=one.value, headers=one.headers, timestamp=one.timestamp_ms, partition=partition
        )
    assert client.flush(30) == 0


def plant(world: World, topic: str, first: int, count: int, edit: Callable[[list[Record]], list[Record]]) -> int:
    """Write records to the source, and to the target by hand, as `edit` has them; returns how many those are."""
    records = [record(number) for number in range(first, first + count)]
    write(world.source, topic, records)
    edited = edit(list(records))
    write(world.target, world.remote(topic), edited)
    return len(edited)


def ends(cluster: EmbeddedCluster, topics: Iterable[str]) -> dict[tuple[str, int], int]:
    """The next offset of partition 0 of each topic."""
    admin = Admin(Cluster(alias="any", bootstrap_servers=cluster.bootstrap_servers))
    found, missing = last_stable_offsets(admin, [(topic, 0) for topic in topics])
    assert not missing
    return found
