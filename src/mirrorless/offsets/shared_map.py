"""Translates offsets of a flow whose remote partitions have records of other origins too.

That is so with `mirrorless.both.directions=skip`.

Only the flow's own records count: those written to its source itself, and those that it appended to its target. Their
order is the same on both sides. So from a known pair of offsets on, the n-th of them on one side is the n-th on the
other; both are counted by the producer ids in batch headers.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.batches.producers import ProducerFilter
from mirrorless.batches.record_counter import RecordCounter, SearchUpTo
from mirrorless.clusters.compaction import CLEANUP_POLICY, COMPACT
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.identity import id_of
from mirrorless.clusters.topics import last_stable_offsets
from mirrorless.log_walk import Walk, Walker
from mirrorless.offsets.offset_map import Run
from mirrorless.offsets.translation import Unknown
from mirrorless.progress.producer_ids import producer_id
from mirrorless.progress.skipped_origins import SkippedOrigins

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.translation_service import Translator
    from mirrorless.settings import Flow

_COUNTING_S: Final = 20.0


class Bound(NamedTuple):
    """The first offset with a record of the flow that was not read; `exact` says that none before it was read twice.

    If there is no such record, it is the log's end.
    """

    offset: int
    exact: bool


Bounds = dict["TopicPartition", dict[int, "Bound | Unknown"]]
"""By source topic and partition, and by the offset that was asked for."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """An offset to translate: count from `count_from` to it, then go as far from `search_from`, at most to `limit`."""

    offset: int
    count_from: int
    search_from: int
    limit: int


class SharedMap:
    """Translates in both directions; `translator` has what is known of the flow, `source` and `target` are clients."""

    def __init__(self, flow: Flow, translator: Translator, *, source: Admin, target: Admin) -> None:
        self.flow = flow
        self.translator = translator
        self._source, self._target = source, target
        self._walkers = Walker(flow.source), Walker(flow.target)
        self._ids: tuple[str, SkippedOrigins] | None = None
        self._source_ends: dict[TopicPartition, int] = {}
        self._compacted: set[str] = set()
        self.walked_records = 0

    def refresh(self, places: Iterable[TopicPartition]) -> None:
        """Read the current state of these partitions; the translator was refreshed before. Raises `ClusterError`."""
        places = list(places)
        if self._ids is None:
            source, target = self._source.metadata().cluster_id, self._target.metadata().cluster_id
            target_id = id_of(self.flow.target, target)
            progress = self.translator.progress_topic
            skipped = SkippedOrigins(self.flow, target_id=target_id, progress=progress, stores=False)
            self._ids = id_of(self.flow.source, source), skipped
        self._source_ends, _ = last_stable_offsets(self._source, places)
        topics = {topic for topic, _ in places}
        for topic in topics:
            self._ids[1].of(topic)  # a cluster whose id is not known is found here
        both = topic_configs(self._source, topics)[0], topic_configs(self._target, topics)[0]
        # One whose configs are not visible counts as compacted.
        self._compacted = {topic for topic in topics if any(_is_compacted(configs.get(topic)) for configs in both)}

    def local(self, place: TopicPartition) -> ProducerFilter:
        """Select what was written to the source itself; raises `ClusterError` where a cluster's id is not known."""
        assert self._ids is not None
        clusters = (self._ids[1].of(place[0]) or "").split(",")
        return ProducerFilter(frozenset(producer_id(one, *place) for one in clusters if one))

    def copied(self, place: TopicPartition) -> ProducerFilter:
        """Select what the flow appended to the target."""
        assert self._ids is not None
        return ProducerFilter(frozenset({producer_id(self._ids[0], *place)}), wanted=True)

    def forward(self, wanted: Mapping[TopicPartition, Collection[int]], *, deadline: float) -> Bounds:
        """Return by source offset the first target offset with a record of the flow from there on."""
        return self._translate(wanted, self.translator.target_ends, forward=True, deadline=deadline)

    def inverse(self, wanted: Mapping[TopicPartition, Collection[int]], *, deadline: float) -> Bounds:
        """Return by target offset the first source offset whose record is not before it on the target."""
        return self._translate(wanted, self._source_ends, forward=False, deadline=deadline)

    def count_on_target(self, wanted: Sequence[tuple[TopicPartition, ProducerFilter, int, int]]) -> list[int]:
        """Count records of some producers from a target offset to another; all offsets if they cannot be read."""
        walks = [
            Walk(place, RecordCounter(first, [end], producers=producers)) for place, producers, first, end in wanted
        ]
        self._walkers[1].walk(walks, deadline=time.monotonic() + _COUNTING_S)
        return [
            walk.counter.counts.get(end, end - first) for walk, (_, _, first, end) in zip(walks, wanted, strict=True)
        ]

    def close(self) -> None:
        """Close the connections of walks."""
        for walker in self._walkers:
            walker.close()

    def _translate(
        self,
        wanted: Mapping[TopicPartition, Collection[int]],
        ends: Mapping[TopicPartition, int],
        *,
        forward: bool,
        deadline: float,
    ) -> Bounds:
        found: Bounds = {place: {} for place in wanted}
        walks: dict[TopicPartition, list[_Asked]] = defaultdict(list)
        for place, offsets in wanted.items():
            end = ends.get(place)
            reason = self.translator.why_not(place)
            if reason is not None or end is None:
                reason = reason or f"{place[0]}-{place[1]} does not exist on both ends of {self.flow.name}"
                found[place] = dict.fromkeys(offsets, Unknown(reason))
                continue
            line = self.translator.line(place)
            for offset in offsets:
                run, following = line.at(offset) if forward else line.at_downstream(offset)
                is_countable = run is not None and line.countable(run, following)
                begins = following is not None and self._begins(place, following.first_upstream)
                if not forward:
                    run, following = _turned(run), _turned(following)
                limit = end if following is None else min(end, following.first_downstream)
                if run is None and following is not None and begins:
                    walks[place].append(_Asked(offset, offset, following.first_downstream, end))
                elif run is None:
                    found[place][offset] = Unknown(
                        f"nothing is known of what {self.flow.name} copied before the offset"
                    )
                elif offset < run.end_upstream:
                    found[place][offset] = Bound(run.first_downstream + offset - run.first_upstream, exact=True)
                elif is_countable:
                    walks[place].append(_Asked(offset, run.end_upstream, run.end_downstream, limit))
                else:
                    found[place][offset] = Bound(min(run.end_downstream, end), exact=False)
        self._walk(walks, found, forward=forward, deadline=deadline)
        return found

    def _begins(self, place: TopicPartition, upstream: int) -> bool:
        """Whether the first epoch begins at a source offset, so that nothing before it was copied."""
        known = self.translator.progress.get(place)
        return known is not None and bool(known.announced) and known.announced[min(known.announced)].start == upstream

    def _walk(
        self, asked: Mapping[TopicPartition, list[_Asked]], found: Bounds, *, forward: bool, deadline: float
    ) -> None:
        """Count on one side, then search on the other; on compacted topics the known pair is the answer."""
        for place, some in asked.items():
            if place[0] in self._compacted:
                found[place] |= {one.offset: Bound(min(one.search_from, one.limit), exact=False) for one in some}
        asked = {place: some for place, some in asked.items() if place[0] not in self._compacted}
        counted = self._counted(asked, forward=forward, deadline=deadline)
        searches: list[tuple[Walk, list[tuple[_Asked, int]]]] = []
        for place, some in asked.items():
            by_range: dict[tuple[int, int], list[tuple[_Asked, int]]] = defaultdict(list)
            for one in some:
                records = 0 if one.count_from >= one.offset else counted[place].get(one.offset)
                if records is None:
                    found[place][one.offset] = Bound(min(one.search_from, one.limit), exact=False)
                elif one.search_from >= one.limit:
                    found[place][one.offset] = Bound(one.limit, exact=True)
                else:
                    by_range[one.search_from, one.limit].append((one, records))
            producers = self.copied(place) if forward else self.local(place)
            for (start, limit), these in by_range.items():
                numbers = sorted({records for _, records in these})
                searches.append((Walk(place, SearchUpTo(start, numbers, limit, producers=producers)), these))
        self._walkers[1 if forward else 0].walk([walk for walk, _ in searches], deadline=deadline)
        for walk, these in searches:
            self.walked_records += walk.counter.records
            for one, records in these:
                at = walk.counter.counts.get(records)
                found[walk.place][one.offset] = Bound(one.search_from if at is None else at, exact=at is not None)

    def _counted(
        self, asked: Mapping[TopicPartition, list[_Asked]], *, forward: bool, deadline: float
    ) -> Mapping[TopicPartition, Mapping[int, int]]:
        """Return how many records of the flow are before each offset; those that could not be read are missing."""
        walks: list[Walk] = []
        for place, some in asked.items():
            producers = self.local(place) if forward else self.copied(place)
            for start in {one.count_from for one in some if one.count_from < one.offset}:
                until = sorted({one.offset for one in some if one.count_from == start})
                walks.append(Walk(place, RecordCounter(start, until, producers=producers)))
        self._walkers[0 if forward else 1].walk(walks, deadline=deadline)
        counted: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
        for walk in walks:
            counted[walk.place] |= walk.counter.counts
            self.walked_records += walk.counter.records
        return counted


def _is_compacted(configs: Configs | None) -> bool:
    return configs is None or (CLEANUP_POLICY in configs and COMPACT in (configs[CLEANUP_POLICY].value or ""))


def _turned(run: Run | None) -> Run | None:
    """Exchange the two sides of a run."""
    return None if run is None else Run(run.first_downstream, run.first_upstream, run.records)
