"""Finds for every partition the range that can be compared on both sides. Reads only."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorless.batches.record_counter import OffsetSearch, RecordCounter
from mirrorless.clusters.topics import held_back, high_watermarks, last_stable_offsets, partition_counts
from mirrorless.errors import ClusterError
from mirrorless.log_walk import Walk, Walker
from mirrorless.offsets.offset_map import OffsetMap, taken_over
from mirrorless.offsets.shared_map import Bound
from mirrorless.offsets.shared_translation import SharedTranslator
from mirrorless.offsets.translation import How, Translated
from mirrorless.offsets.turn_translation import progress_translator
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.verify.ranges import OffsetRange, Pair, upstream_of
from mirrorless.verify.selected_offsets import EVERYTHING, Selection, select_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Announcement
    from mirrorless.settings import Flow

_WALKING_S: Final = 120.0
_MOST_LEFT_OUT: Final = 10
"""The maximum number of skipped records that are listed per partition."""


@dataclass(slots=True, kw_only=True)
class Paired:
    """One source partition and its copy. `source` and `target` are the available offsets, first and end.

    `beginning` is where this program's copy began, None if it did not begin, or resumed after MirrorMaker 2. `synced`
    is the end of MirrorMaker 2's copy according to its offset syncs. `stretches` are to be compared. `lost` is the pair
    from which on the target lacks copied records, and `owed` their number. `not_copied` are offsets of the source
    beyond the copy, where no record was read. `uncounted` says why a part before the stretches is not compared, whose
    records could not be counted; a comparison by keys need not count. `expired_on_target`: retention deleted the first
    copied records there.
    """

    place: TopicPartition
    remote_topic: str
    source: tuple[int, int] = (0, 0)
    target: tuple[int, int] = (0, 0)
    line: OffsetMap = field(default_factory=lambda: OffsetMap(()))
    beginning: Pair | None = None
    synced: Pair | None = None
    stretches: list[OffsetRange] = field(default_factory=list)
    lost: tuple[int | None, int] | None = None
    owed: int = 0
    not_copied: int = 0
    expired_on_target: bool = False
    notes: list[str] = field(default_factory=list)
    trouble: str | None = None
    uncounted: str | None = None

    @property
    def known_end(self) -> Pair | None:
        """The last certain pair."""
        runs = self.line.runs
        return Pair(runs[-1].end_upstream, runs[-1].end_downstream) if runs else None

    @property
    def certain_end(self) -> Pair | None:
        """The same, or otherwise the last one of MirrorMaker 2."""
        return self.known_end or self.synced


class Pairing:
    """Pairs the partitions of one flow; `remote` has the topics to compare with their remote topics."""

    def __init__(self, flow: Flow, *, source: Admin, target: Admin, remote: Mapping[str, str]) -> None:
        self._flow = flow
        self._source, self._target = source, target
        self._remote = remote
        self._translator = progress_translator(flow, source=source, target=target, inside_log=False)
        self._walker, self._target_walker = Walker(flow.source), Walker(flow.target)

    def close(self) -> None:
        """Close all connections."""
        self._translator.close()
        self._walker.close()
        self._target_walker.close()

    def select(self, paired: Iterable[Paired]) -> Selection:
        """Return what is to be compared of paired partitions. Raises `ClusterError`."""
        if not isinstance(self._translator, SharedTranslator):
            return EVERYTHING
        flow_map = self._translator.flow_map
        whole = [one for one in paired if one.trouble is None]
        remote = {(one.remote_topic, one.place[1]): one.place for one in whole}
        theirs = {(one.remote_topic, one.place[1]): one.target for one in whole}
        return Selection(
            select_offsets(self._flow.source, {one.place: one.source for one in whole}, flow_map.local),
            select_offsets(self._flow.target, theirs, lambda there: flow_map.copied(remote[there])),
        )

    def pair(self, *, since_ms: int | None = None) -> list[Paired]:
        """Pair every partition that both sides have; raises `ClusterError` if an end does not answer.

        The order of queries makes the common cut: first the progress, then the target's ends, then the source's.
        So the source has everything that the target has, and the target everything that progress says was copied.
        """
        counts = partition_counts(self._source.metadata())
        remote_counts = partition_counts(self._target.metadata())
        places = [
            (topic, partition)
            for topic, remote in sorted(self._remote.items())
            for partition in range(min(counts.get(topic, 0), remote_counts.get(remote, 0)))
        ]
        found = {place: Paired(place=place, remote_topic=self._remote[place[0]]) for place in places}
        self._translator.refresh(places)
        theirs = {place: (self._remote[place[0]], place[1]) for place in places}
        remote_ends, remote_missing = last_stable_offsets(self._target, theirs.values())
        ends, missing = last_stable_offsets(self._source, places)
        remote_firsts = _first_offsets(self._target, theirs.values())
        firsts = _first_offsets(self._source, places)
        since = None if since_ms is None else self._since(places, since_ms)
        for place, offsets in held_back(self._source, ends).items():
            text = f"a transaction is open at {ends[place]}: the next {offsets} offsets are not compared"
            found[place].notes.append(text)
        for place, one in found.items():
            there = theirs[place]
            trouble = missing.get(place) or remote_missing.get(there)
            trouble = trouble or (None if place in firsts and there in remote_firsts else "its first offset is unknown")
            if trouble is None and since is not None and place not in since:
                trouble = "its leader did not return the first offset of --since"
            if trouble is not None:
                one.trouble = trouble
                continue
            one.source, one.target = (firsts[place], ends[place]), (remote_firsts[there], remote_ends[there])
            one.line = self._translator.line(place)
            if (known := self._translator.progress.get(place)) is not None:
                one.notes += _left_out(known.announced)
            self._stretch(one, None if since is None else since[place])
        return list(found.values())

    def _stretch(self, one: Paired, since: int | None) -> None:
        begin = self._begin(one)
        if begin is not None and since is not None and since > begin.upstream:
            begin = self._translated(one, since)
        if begin is None:
            return
        topic, partition = one.place
        (_, end), (_, remote_end) = one.source, one.target
        whole = OffsetRange(
            topic=topic,
            partition=partition,
            remote_topic=one.remote_topic,
            first_upstream=begin.upstream,
            end_upstream=max(end, begin.upstream),
            first_downstream=begin.downstream,
            end_downstream=max(remote_end, begin.downstream),
            closed=False,
            same_offsets=self._translator.keeps_offsets(topic),
        )
        known, certain = one.known_end, one.certain_end
        if certain is not None and certain.downstream > remote_end:
            there = one.remote_topic, partition
            if high_watermarks(self._target, [there])[0].get(there, 0) >= certain.downstream:
                one.trouble = f"an open transaction on the target at offset {remote_end} blocks reading beyond it"
                return
            one.lost, one.owed = (upstream_of(one.line, remote_end), remote_end), certain.downstream - remote_end
            one.stretches.append(whole)
            return
        if known is not None and begin.downstream <= known.downstream and begin.upstream < known.upstream <= end:
            one.stretches.append(whole.part(begin, known))
            whole = whole.rest(known)
        if whole.first_downstream < whole.end_downstream:
            one.stretches.append(whole)
        else:
            one.not_copied = whole.end_upstream - whole.first_upstream

    def _begin(self, one: Paired) -> Pair | None:
        """The first pair that both sides still have; None, with a note or an error, if there is none."""
        first, (remote_first, remote_end) = one.source[0], one.target
        if not one.line.runs:
            return self._without_runs(one)
        begin = Pair(one.line.runs[0].first_upstream, one.line.runs[0].first_downstream)
        known = self._translator.progress.get(one.place)
        if known is not None and begin.upstream in taken_over(known.announced):
            begin = self._behind_mirrormaker(one, begin)
        else:
            one.beginning = begin = _with_left_out(begin, {} if known is None else known.announced)
            if begin.downstream > remote_first:
                last = begin.downstream - 1
                one.notes.append(f"records {remote_first} to {last} of the target are from an earlier copy")
        _note_heads(one, begin)
        if isinstance(self._translator, SharedTranslator):
            return self._shared_begin(one, begin, self._translator)
        if first > begin.upstream:
            moved = self._at_upstream(one, first)
            if moved is None:
                return None
            begin = moved
        if remote_first > begin.downstream:
            upstream = upstream_of(one.line, remote_first)
            if upstream is None:
                start = _nearest(one.line, begin, remote_first)
                records = [remote_first - start.downstream]
                upstream = self._count(Walk(one.place, OffsetSearch(start.upstream, records)))
            if upstream is None:
                if remote_first < remote_end:
                    one.trouble = f"no upstream offset is known for the target's first offset {remote_first}"
                return None
            begin = Pair(upstream, remote_first)
        return begin

    def _shared_begin(self, one: Paired, begin: Pair, translator: SharedTranslator) -> Pair | None:
        """The same of topics with records of other origins: from where both sides have all records of this flow."""
        (first, _), (remote_first, _), deadline = one.source, one.target, time.monotonic() + _WALKING_S
        if first > begin.upstream:
            found = translator.flow_map.forward({one.place: [first]}, deadline=deadline)[one.place][first]
            if not isinstance(found, Bound) or not found.exact:
                one.trouble = f"the source begins at {first}, and the corresponding offset on the target is not known"
                return None
            begin = Pair(first, max(begin.downstream, found.offset))
        if remote_first > begin.downstream:
            found = translator.flow_map.inverse({one.place: [remote_first]}, deadline=deadline)[one.place][remote_first]
            if not isinstance(found, Bound) or not found.exact:
                one.trouble = f"no upstream offset is known for the target's first offset {remote_first}"
                return None
            begin = Pair(max(begin.upstream, found.offset), remote_first)
        return begin

    def _without_runs(self, one: Paired) -> Pair:
        """Where only MirrorMaker 2 copied, there are only its pairs, if any."""
        first, remote_first = one.source[0], one.target[0]
        syncs = self._translator.syncs.slots.slots(one.place)
        if syncs:
            one.synced = Pair(syncs[0].last_upstream + 1, syncs[0].last_downstream + 1)
        if not first and not remote_first:
            return Pair(0, 0)
        for sync in reversed(syncs):
            if sync.last_upstream >= first and sync.last_downstream >= remote_first:
                one.notes.append(f"before upstream offset {sync.last_upstream} it is not known how offsets correspond")
                return Pair(sync.last_upstream, sync.last_downstream)
        one.notes.append("it is not known how offsets correspond: compared from the first record on both sides")
        return Pair(first, remote_first)

    def _at_upstream(self, one: Paired, first: int) -> Pair | None:
        """The pair at the source's first offset after retention: by its run, or counted back from the next one."""
        run, following = one.line.at(first)
        if run is not None and first <= run.end_upstream:
            return Pair(first, run.first_downstream + first - run.first_upstream)
        if following is not None:
            records = self._count(Walk(one.place, RecordCounter(first, [following.first_upstream])))
            if records is not None:
                return Pair(first, following.first_downstream - records)
        one.trouble = f"the source begins at {first}, and the corresponding offset on the target is not known"
        return None

    def _behind_mirrormaker(self, one: Paired, begin: Pair) -> Pair:
        """Go back over what MirrorMaker 2 copied, as far as both sides have it: counted from its end.

        On both sides, since its transactions leave markers, and aborted records, on the target too.
        """
        first, remote_first = one.source[0], one.target[0]
        if begin.upstream <= first or begin.downstream <= remote_first:
            return begin
        there = one.remote_topic, one.place[1]
        walks: tuple[Walk, ...] = (
            Walk(one.place, RecordCounter(first, [begin.upstream])),
            Walk(there, RecordCounter(remote_first, [begin.downstream])),
        )
        records, remote_records = self._count(walks[0]), self._count(walks[1], self._target_walker)
        if records is not None and remote_records is not None:
            if records == remote_records:
                return Pair(first, remote_first)
            if records > remote_records:
                search = Walk(one.place, OffsetSearch(first, [records - remote_records]))
                if (upstream := self._count(search)) is not None:
                    return Pair(upstream, remote_first)
            else:
                search = Walk(there, OffsetSearch(remote_first, [remote_records - records]))
                if (downstream := self._count(search, self._target_walker)) is not None:
                    return Pair(first, downstream)
            walks = (*walks, search)
        reason = next((walk.trouble for walk in walks if walk.trouble is not None), "no answer")
        one.uncounted = f"records that MirrorMaker 2 copied before {begin.upstream} could not be counted: {reason}"
        return begin

    def _count(self, walk: Walk, walker: Walker | None = None) -> int | None:
        (walker or self._walker).walk([walk], deadline=time.monotonic() + _WALKING_S)
        return walk.counter.counts.get(walk.counter.until[0])

    def _since(self, places: Iterable[TopicPartition], since_ms: int) -> dict[TopicPartition, int]:
        """Upstream offsets of the first record at that time or later."""
        wanted = {ConfluentTopicPartition(*place): OffsetSpec.for_timestamp(since_ms) for place in places}
        found: dict[TopicPartition, int] = {}
        for place, future in (self._source.client.list_offsets(wanted) if wanted else {}).items():
            try:
                offset = self._source.result(future).offset
            except ClusterError:
                continue  # reported as the partition's error
            found[place.topic, place.partition] = offset if offset >= 0 else 1 << 62
        return found

    def _translated(self, one: Paired, upstream: int) -> Pair | None:
        upstream = min(upstream, one.source[1])
        if isinstance(self._translator, SharedTranslator):
            deadline = time.monotonic() + _WALKING_S
            bound = self._translator.flow_map.forward({one.place: [upstream]}, deadline=deadline)[one.place][upstream]
            if isinstance(bound, Bound) and bound.exact:
                return Pair(upstream, min(bound.offset, one.target[1]))
            one.trouble = f"the offset on the target of upstream offset {upstream} is not known"
            return None
        answer = self._translator.translate({one.place: [upstream]}, deadline=time.monotonic() + _WALKING_S)
        found = answer[one.place][upstream]
        if isinstance(found, Translated) and found.how in (How.BEYOND, How.EMPTY):
            # The answer is the target's end at that time; records appended meanwhile do not begin here.
            return Pair(upstream, one.target[1])
        if isinstance(found, Translated) and found.exact:
            return Pair(upstream, min(found.downstream, one.target[1]))
        one.trouble = f"the offset on the target of upstream offset {upstream} is not known"
        return None


def _with_left_out(begin: Pair, announced: Mapping[int, Announcement]) -> Pair:
    """Go back over records that were skipped at the very beginning: the target lacks them like all skipped ones."""
    start = begin.upstream
    for epoch in sorted(announced, reverse=True):
        one, before = announced[epoch], announced.get(epoch - 1)
        if (one.start, one.downstream) != (start, begin.downstream) or one.kind is not EpochKind.LEFT_OUT:
            continue
        if before is not None and before.downstream == begin.downstream and before.start < start:
            start = before.start
    return begin._replace(upstream=start)


def _left_out(announced: Mapping[int, Announcement]) -> list[str]:
    """Lines on records that the copy skipped, which explain why the target lacks them."""
    lines = [one.reason for _, one in sorted(announced.items()) if one.kind is EpochKind.LEFT_OUT]
    more = len(lines) - _MOST_LEFT_OUT
    return [*lines[:_MOST_LEFT_OUT], *([f"{more} more were skipped"] if more > 0 else [])]


def _nearest(line: OffsetMap, begin: Pair, downstream: int) -> Pair:
    """The last certain pair before a downstream offset, to begin counting from; `begin` if there is none."""
    run, following = line.at_downstream(downstream)
    if run is None or run.end_upstream <= begin.upstream or not line.countable(run, following):
        return begin
    return Pair(run.end_upstream, run.end_downstream)


def _note_heads(one: Paired, begin: Pair) -> None:
    (first, end), (remote_first, remote_end) = one.source, one.target
    if begin.upstream > first:
        one.notes.append(f"the copy began at {begin.upstream}, the source at {first}")
    if begin.upstream < first < end:
        one.notes.append(f"retention: the source begins at {first}")
    if begin.downstream < remote_first < remote_end:
        one.expired_on_target = True
        one.notes.append(f"retention: the target begins at {remote_first}")


def _first_offsets(admin: Admin, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    wanted = {ConfluentTopicPartition(*place): OffsetSpec.earliest() for place in places}
    found: dict[TopicPartition, int] = {}
    for place, future in (admin.client.list_offsets(wanted) if wanted else {}).items():
        try:
            found[place.topic, place.partition] = admin.result(future).offset
        except ClusterError:
            continue  # reported as the partition's error
    return found
