"""Messages of formats v0 and v1, which brokers of today keep and hand out but take from nobody: planted in a log."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirrorless.batches.codecs import GZIP
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.progress.records import Progress
from tests.kafka.copy.test_resume_at_target import write_progress
from tests.support.world import World, fill, read
from tests.unit.batches.test_legacy import One, plain, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def old_source() -> Iterator[EmbeddedCluster]:
    with start_clusters([ClusterSpec(name="old-source")]) as started:
        yield started["old-source"]


@pytest.fixture
def world(old_source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path) -> World:
    return World(old_source, target, tmp_path)


def plant(cluster: EmbeddedCluster, topic: str, messages: bytes) -> None:
    """Stop the broker, write what is in a partition's log, and start it again; it makes the indexes anew.

    In order: one that was killed is elected out of sync seconds later, and may cut what it had not known as replicated.
    """
    until = time.monotonic() + 60
    while not (segments := list(Path(cluster.directory).rglob(f"{topic}-0/*.log"))):
        assert time.monotonic() < until, f"{topic}-0 has no log"
        time.sleep(0.05)
    cluster.stop_broker(1)
    (segment,) = segments
    segment.write_bytes(messages)
    for suffix in (".index", ".timeindex"):
        segment.with_suffix(suffix).unlink()
    cluster.start_broker(1)


def numbered(start: int, end: int) -> list[tuple[int, One]]:
    return [(offset, One(key=b"%d" % offset, value=b"old %d" % offset)) for offset in range(start, end)]


def assert_equal(world: World, topic: str, records: int) -> None:
    """A message of v0 has no timestamp, which a record of v2 says with a -1."""
    (ours,), (theirs,) = read(world.source, topic).values(), read(world.target, world.remote(topic)).values()
    assert theirs == [one._replace(timestamp=(1, -1)) if not one.timestamp[0] else one for one in ours]
    assert len(theirs) == records


def test_they_arrive_as_a_consumer_sees_them_and_a_copy_that_lost_its_progress_counts_them(world: World) -> None:
    topic = world.topic(retention_ms="-1")  # they are from 2017
    sets = wrapped(0, GZIP, numbered(40, 50)) + wrapped(1, GZIP, numbered(50, 70)) + wrapped(1, GZIP, numbered(75, 80))
    plant(world.source, topic, plain(0, numbered(0, 20)) + plain(1, numbered(20, 40)) + sets)
    fill(world.source, topic, (b"new %d" % number for number in range(20)), linger_ms=300)
    (report,) = [one for one in world.copy() if one.topic == topic]
    assert (report.state, report.records) == ("caught up", 95)
    assert_equal(world, topic, 95)

    for more, known in enumerate((None, 10, 45, 69, 79), start=1):
        progress = None
        if known is not None:
            records = known + 1 - (5 if known > 70 else 0)  # there is a hole
            progress = Progress(last_offset=known, sequence=records, epoch=0, last_downstream=records - 1).to_bytes()
        write_progress(world, topic, progress)
        fill(world.source, topic, [b"newest"])
        (report,) = [one for one in world.copy() if one.topic == topic]
        assert (report.state, report.records, report.error) == ("caught up", 1, None), known
        assert_equal(world, topic, 95 + more)
