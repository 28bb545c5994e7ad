"""Selects the records of one flow in topics that have those of other origins too (`mirrorless.both.directions=skip`).

Consumers do not see the producer of a record, so the ranges of offsets that a flow's batches have are read from batch
headers first; the comparison then reads these.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.batches.record_counter import RecordCounter
from mirrorless.errors import ClusterError
from mirrorless.log_walk import Walk, Walker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mirrorless.batches.producers import ProducerFilter
    from mirrorless.batches.record_counter import CommittedBatch
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster
    from mirrorless.verify.kafka_source import Ranges

_WALKING_S: Final = 3_600.0


@dataclass(slots=True)
class _BatchRanges(RecordCounter):
    """Collects the ranges of offsets of batches with records, first and end, adjacent ones merged."""

    firsts: array[int] = field(default_factory=lambda: array("q"), init=False)
    ends: array[int] = field(default_factory=lambda: array("q"), init=False)

    def add(self, batch: CommittedBatch) -> None:
        """Take one batch, the next one of `read`."""
        RecordCounter.add(self, batch)
        if not batch.record_count:
            return
        if self.ends and self.ends[-1] == batch.base_offset:
            self.ends[-1] = batch.next_offset
        else:
            self.firsts.append(batch.base_offset)
            self.ends.append(batch.next_offset)


class SelectedOffsets:
    """Which offsets of some partitions of one cluster are a flow's; all offsets of other partitions."""

    def __init__(self, ranges: Mapping[TopicPartition, tuple[array[int], array[int]]]) -> None:
        self._ranges = dict(ranges)

    def has(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the record at an offset is the flow's."""
        found = self._ranges.get((topic, partition))
        if found is None:
            return True
        at = bisect_right(found[0], offset) - 1
        return at >= 0 and offset < found[1][at]

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not self._ranges


ALL_OFFSETS: Final = SelectedOffsets({})


class Selection(NamedTuple):
    """What is compared of both sides."""

    source: SelectedOffsets = ALL_OFFSETS
    target: SelectedOffsets = ALL_OFFSETS


EVERYTHING: Final = Selection()


def select_offsets(
    cluster: Cluster, ranges: Ranges, producers: Callable[[TopicPartition], ProducerFilter]
) -> SelectedOffsets:
    """Read the headers of these ranges of offsets; raises `ClusterError` where they cannot be read."""
    walks = [
        Walk(place, _BatchRanges(first, [end], producers=producers(place)))
        for place, (first, end) in ranges.items()
        if first < end
    ]
    walker = Walker(cluster)
    try:
        walker.walk(walks, deadline=time.monotonic() + _WALKING_S)
    finally:
        walker.close()
    found: dict[TopicPartition, tuple[array[int], array[int]]] = {}
    for walk in walks:
        if walk.trouble is not None:
            raise ClusterError(f"{walk.place[0]}-{walk.place[1]}: {walk.trouble}", cluster=cluster.alias)
        assert isinstance(walk.counter, _BatchRanges)
        found[walk.place] = walk.counter.firsts, walk.counter.ends
    return SelectedOffsets(found)
