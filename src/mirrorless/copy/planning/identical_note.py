"""What copies with identical offsets will cost, and which cannot begin: for `mirrorless plan`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorless.batches.record_counter import RecordCounter
from mirrorless.clusters.msk import is_serverless
from mirrorless.clusters.topics import high_watermarks, last_stable_offsets, log_starts
from mirrorless.copy.identical.decision import FROM_SCRATCH
from mirrorless.copy.identical.rule import SERVERLESS
from mirrorless.errors import ClusterError
from mirrorless.log_walk import Walk, Walker
from mirrorless.metadata.actions import Problem
from mirrorless.modes import Modes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow

FILLED_PER_S: Final = 3_000_000
"""Offsets of one partition, measured on one connection."""
MARKER_BYTES: Final = 78
_SAMPLED_OFFSETS: Final = 100_000
_SAMPLED_PARTITIONS: Final = 50
_SAMPLING_S: Final = 10.0
_RATE_S: Final = 60


@dataclass(slots=True)
class IdenticalOutlook:
    """Lines for a plan, and the topics that cannot be copied."""

    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoleEstimate:
    """Of one partition: the share of offsets without a record, those to copy, and new offsets per second."""

    share: float
    offsets: int
    offsets_per_s: float

    @property
    def holes(self) -> int:
        """How many offsets without a record are to be copied."""
        return round(self.share * self.offsets)

    @property
    def holes_per_s(self) -> float:
        """How many appear each second."""
        return self.share * self.offsets_per_s


def identical_outlook(
    flow: Flow,
    *,
    source: Admin,
    target: Admin,
    remote: Mapping[str, str],
    counts: Mapping[str, int],
    remote_counts: Mapping[str, int],
    known: Mapping[TopicPartition, Known],
) -> IdenticalOutlook:
    """Examine the topics of a flow that get identical offsets; raises `ClusterError`.

    `remote` has the remote topic of each replicated topic, `counts` and `remote_counts` partitions by topic.
    """
    found = IdenticalOutlook()
    topics = list(filter(Modes(flow).keeps_offsets, remote))
    if not topics:
        return found
    if is_serverless(flow.target):
        found.problems.append(Problem(topic="*", reason=SERVERLESS))
        return found
    places = [(topic, number) for topic in topics for number in range(counts.get(topic, 0))]
    starts, _ = log_starts(source, places)
    ends, _ = last_stable_offsets(source, places)
    there = {
        place: (remote[place[0]], place[1]) for place in places if place[1] < remote_counts.get(remote[place[0]], 0)
    }
    filled, _ = high_watermarks(target, there.values())
    begun = {place for place in places if place in known and known[place].announced}
    dense = {
        place[0]
        for place in places
        if filled.get(there.get(place, ("", -1)), 0) and not (place in begun and _may_be_identical(known[place]))
    }
    found.problems += [
        Problem(topic=topic, reason=f"{remote[topic]} holds records with other offsets; {FROM_SCRATCH}")
        for topic in sorted(dense)
    ]
    fresh = {place: starts[place] for place in places if place not in begun and starts.get(place, 0)}
    if fresh:
        found.notes.append(filling_text(fresh.values()))
    positions = {
        place: starts.get(place, 0)
        if (one := known.get(place)) is None or one.progress is None
        else one.progress.last_offset + 1
        for place in places
        if place in ends and place[0] not in dense
    }
    estimates = _estimates(flow, source, positions, starts=starts, ends=ends)
    notes, problems = holes_text(flow, estimates)
    found.notes += notes
    found.problems += problems
    return found


def _may_be_identical(known: Known) -> bool:
    return known.is_identical or known.progress is None or not known.progress.sequence


def filling_text(offsets: Iterable[int]) -> str:
    """Return the line on partitions that begin after offset 0."""
    some = sorted(offsets)
    seconds = some[-1] / FILLED_PER_S
    which = "1 partition begins after offset 0: the remote one is"
    if len(some) > 1:
        which = f"{len(some):,} partitions begin after offset 0: the remote ones are"
    return (
        f"{which} "
        f"filled with {sum(some):,} offsets and emptied; the largest, with {some[-1]:,}, takes about {seconds:,.0f} s"
    )


def holes_text(flow: Flow, estimates: Mapping[TopicPartition, HoleEstimate]) -> tuple[list[str], list[Problem]]:
    """Return a line on offsets without a record, and the partitions with more of them than the limits allow."""
    holes = sum(one.holes for one in estimates.values())
    per_s = max((one.holes_per_s for one in estimates.values()), default=0.0)
    notes = []
    if holes or per_s:
        notes.append(
            f"about {holes:,} of the next offsets have no record and become markers of {MARKER_BYTES} bytes, "
            f"{holes * MARKER_BYTES / 1e6:,.1f} MB for each replica; a partition gets up to {per_s:,.1f} more a second "
            f"(estimated from the last offsets of {len(estimates)} partitions)"
        )
    problems = []
    for (topic, partition), one in sorted(estimates.items()):
        reason = None
        if one.holes > flow.offsets_holes_max:
            reason = f"about {one.holes:,} offsets without a record, more than mirrorless.offsets.holes.max"
        elif one.holes_per_s > flow.offsets_holes_per_second:
            reason = f"{one.holes_per_s:,.0f} offsets without a record per second, more than {_PER_SECOND}"
        if reason is not None:
            advice = "raise it, or leave the topic out with mirrorless.offsets.identical.topics"
            problems.append(Problem(topic=topic, reason=f"partition {partition} has {reason}; {advice}"))
    return notes, problems


_PER_SECOND: Final = "mirrorless.offsets.holes.per.second"


def _estimates(
    flow: Flow,
    source: Admin,
    positions: Mapping[TopicPartition, int],
    *,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, HoleEstimate]:
    """Count the records among the last offsets of partitions; those with most to copy, if they are many."""
    order = sorted(positions, key=lambda place: positions[place] - ends[place])[:_SAMPLED_PARTITIONS]
    begins = {place: max(starts.get(place, 0), ends[place] - _SAMPLED_OFFSETS) for place in order}
    order = [place for place in order if begins[place] < ends[place]]
    walker = Walker(flow.source)
    walks = [Walk(place, RecordCounter(begins[place], [ends[place]])) for place in order]
    try:
        walker.walk(walks, deadline=time.monotonic() + _SAMPLING_S)
    finally:
        walker.close()
    since = _offsets_since(source, order, int((time.time() - _RATE_S) * 1000))
    found = {}
    for walk in walks:
        place, end = walk.place, ends[walk.place]
        records = walk.counter.counts.get(end)
        if records is not None:
            share = 1 - min(records, end - begins[place]) / (end - begins[place])
            recent = max(0, end - since.get(place, end))
            found[place] = HoleEstimate(
                share=share, offsets=max(0, end - positions[place]), offsets_per_s=recent / _RATE_S
            )
    return found


def _offsets_since(source: Admin, places: Iterable[TopicPartition], since_ms: int) -> dict[TopicPartition, int]:
    """The first offset of each partition with a record of that time or later; none without such a record."""
    wanted = {ConfluentTopicPartition(*place): OffsetSpec.for_timestamp(since_ms) for place in places}
    found: dict[TopicPartition, int] = {}
    for place, future in (source.client.list_offsets(wanted) if wanted else {}).items():
        try:
            offset = source.result(future).offset
        except ClusterError:
            continue  # without a leader at the moment
        if offset >= 0:
            found[place.topic, place.partition] = offset
    return found
