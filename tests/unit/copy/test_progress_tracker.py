"""When progress is written: each partition at most once a second, and never so many at once that copying waits."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, cast

import pytest

from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.partition.state import PartitionCopy
from mirrorless.copy.slot.progress_tracker import ProgressTracker
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from mirrorless.progress.writer import ProgressWriter

FLOW = Flow(
    source=Cluster(alias="A", bootstrap_servers="a:9092"), target=Cluster(alias="B", bootstrap_servers="b:9092")
)
PARTITIONS = 20


class Slow:
    """A journal that takes a millisecond for each record, and keeps whose they are."""

    def __init__(self) -> None:
        self.partitions: list[int] = []

    def write(self, key: bytes, _value: bytes) -> None:
        time.sleep(0.001)
        self.partitions.append(json.loads(key)[1]["partition"])

    def poll(self) -> None: ...


@pytest.fixture
def progress_writer() -> Slow:
    return Slow()


@pytest.fixture
def tracker(progress_writer: Slow) -> ProgressTracker:
    return ProgressTracker(cast("ProgressWriter", progress_writer), FLOW)


def copy_of(partition: int) -> PartitionCopy:
    copy = PartitionCopy(LeaseRow(topic="t", partition=partition, remote_topic="A.t", source_end=1_000), 1 << 61, {})
    copy.resume_at(10, epoch=0, sequence=0, last_downstream=-1, node=1)
    return copy


def test_many_are_written_in_turns(tracker: ProgressTracker, progress_writer: Slow) -> None:
    copies = [copy_of(partition) for partition in range(PARTITIONS)]
    for copy in copies:
        tracker.moved(copy)
    began = time.monotonic()
    tracker.tick(began)
    at_once = len(progress_writer.partitions)
    assert 0 < at_once < PARTITIONS / 2
    looks = 1
    while len(progress_writer.partitions) < PARTITIONS:
        for copy in copies:  # whoever moves on meanwhile has its turn again behind the others
            copy.advance(copy.fetch_from + 1, -1)
            tracker.moved(copy)
        tracker.tick(began + 0.2 * looks)
        looks += 1
        assert looks < 2 * PARTITIONS
    assert progress_writer.partitions[:PARTITIONS] == list(range(PARTITIONS))


def test_one_is_written_once_a_second(tracker: ProgressTracker, progress_writer: Slow) -> None:
    copy = copy_of(0)
    began = time.monotonic()
    for seconds in (0.0, 0.2, 0.9, 1.2):
        copy.advance(copy.fetch_from + 1, -1)
        tracker.moved(copy)
        tracker.tick(began + seconds)
    assert progress_writer.partitions == [0, 0]


def test_a_landing_writes_all(tracker: ProgressTracker, progress_writer: Slow) -> None:
    for partition in range(PARTITIONS):
        tracker.moved(copy_of(partition))
    tracker.write(None)
    assert progress_writer.partitions == list(range(PARTITIONS))
