"""Reads the records of a drill: the backlog, the records at positions of groups, and windows of each partition."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.compaction import CLEANUP_POLICY, COMPACT
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.topics import log_starts
from mirrorless.offsets.backlog import backlogs
from mirrorless.offsets.translation import How, Translated
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.operations.drill.facts import BacklogFacts, NotCopied, RecordFacts
from mirrorless.operations.drill.positions import MARGIN, CopyFacts, Position, compare, read_from
from mirrorless.operations.drill.records import Wanted, read_slices
from mirrorless.operations.drill.samples import WINDOW_RECORDS, some, window_starts
from mirrorless.progress.records import Known

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.backlog import Backlog
    from mirrorless.offsets.failover_plan import Forecast
    from mirrorless.offsets.translation_service import Answers
    from mirrorless.operations.drill.positions import Compared, LogSlice
    from mirrorless.settings import Flow

_WALKING_S: Final = 30.0
_ENDS_S: Final = 3.0
_PAUSE_S: Final = 0.2
_MOST_SEARCHED: Final = 200
"""Records of the target that are searched for the record of an inexact translation."""


class RecordGathering:
    """Reads records of the replicated partitions `places` of one flow; `remote` has remote topics."""

    def __init__(
        self,
        flow: Flow,
        *,
        source: Admin,
        target: Admin,
        places: Iterable[TopicPartition],
        remote: Mapping[str, str],
    ) -> None:
        self._flow = flow
        self._source, self._target = source, target
        self._places = list(places)
        self._remote = remote
        self._translator = translator_of(flow, source=source, target=target, inside_log=False)
        self._backlogs: Mapping[TopicPartition, Backlog] = {}

    def close(self) -> None:
        """Close all connections."""
        self._translator.close()

    def backlog(self) -> BacklogFacts:
        """Count what is not copied, and find the oldest record of each partition's backlog."""
        self._translator.refresh(self._places)
        deadline = time.monotonic() + _WALKING_S
        found, troubles = backlogs(
            self._flow, self._translator, source=self._source, places=self._places, deadline=deadline
        )
        self._backlogs = found
        read_ms = int(time.time() * 1000)
        firsts = {place: Wanted(place, one.copied_to, 1) for place, one in found.items() if one.records}
        slices = read_slices(self._flow.source, self._source, firsts.values())
        return BacklogFacts(
            partitions={
                place: _not_copied(one, slices[firsts[place]] if place in firsts else None)
                for place, one in found.items()
            },
            read_ms=read_ms,
            troubles=tuple(troubles),
        )

    def records(self, forecasts: Sequence[Forecast], *, most: int, chance: random.Random) -> RecordFacts:
        """Compare positions of groups, at most so many, and windows; `backlog` was called before."""
        if self._translator.shares_target:
            return RecordFacts(is_own_order=True)
        every = [self._within_turn(one) for one in positions_of(forecasts)]
        positions = some(every, most=most, chance=chance)
        windows, partitions, troubles = self._windows(chance)
        positions = self._marked_if_far(positions)
        compacted = self._compacted({one.place[0] for one in (*positions, *windows)})
        compared = self._compare([*positions, *windows], compacted)
        return RecordFacts(
            positions=tuple(compared[: len(positions)]),
            positions_of=len(every),
            windows=tuple(compared[len(positions) :]),
            partitions=partitions,
            partitions_of=len(self._places),
            troubles=tuple(troubles),
        )

    def _marked_if_far(self, positions: Sequence[Position]) -> list[Position]:
        """Mark checkpoints that are before what is searched: they were written when the copy lagged so far.

        A group would read again from there; `_windows` was called before, so the target's ends are recent.
        """
        wanted: dict[TopicPartition, set[int]] = defaultdict(set)
        for one in positions:
            if one.read_again == _MOST_SEARCHED:
                wanted[one.place].add(one.source_offset)
        answers = self._translator.translate(wanted, deadline=time.monotonic() + _WALKING_S)

        def is_far(one: Position) -> bool:
            answer = answers.get(one.place, {}).get(one.source_offset)
            if one.read_again != _MOST_SEARCHED or not isinstance(answer, Translated) or not answer.exact:
                return False
            return answer.downstream - one.target_offset >= _MOST_SEARCHED

        return [replace(one, not_copied=True) if is_far(one) else one for one in positions]

    def _windows(self, chance: random.Random) -> tuple[list[Position], int, list[str]]:
        """Windows at offsets that translate exactly, the number of partitions, and why some have none."""
        starts, _ = log_starts(self._source, self._backlogs)
        copied = {
            place: (max([starts[place], *self._translator.turn_starts(place)]), one.copied_to)
            for place, one in self._backlogs.items()
            if place in starts
        }
        wanted = window_starts(copied, chance=chance)
        answers = self._translate_copied(wanted)
        windows: list[Position] = []
        troubles = list(self._translator.walked.troubles)
        for place, offsets in wanted.items():
            for offset in offsets:
                answer = answers[place][offset]
                if isinstance(answer, Translated) and answer.exact:
                    windows.append(
                        Position(
                            place=place,
                            remote_place=(self._translator.remote(place[0]), place[1]),
                            source_offset=offset,
                            target_offset=answer.downstream,
                            records=WINDOW_RECORDS,
                        )
                    )
                elif not isinstance(answer, Translated):
                    troubles.append(f"{place[0]}-{place[1]} at {offset}: {answer.reason}")
        return windows, len({one.place for one in windows}), troubles

    def _within_turn(self, one: Position) -> Position:
        """Compare no records that follow the beginning of a later turn."""
        later = [start for start in self._translator.turn_starts(one.place) if start > one.source_offset]
        return replace(one, records=min(one.records, later[0] - one.source_offset)) if later else one

    def _translate_copied(self, wanted: Mapping[TopicPartition, Sequence[int]]) -> Answers:
        """Translate offsets before which all was copied, with ends of the target that were read since.

        With earlier ends, an offset copied meanwhile would translate to what was the end then. A transaction's markers
        reach its partitions one after the other: an end may lag the progress for a moment.
        """
        until = time.monotonic() + _ENDS_S
        while True:
            self._translator.refresh(self._places)
            answers = self._translator.translate(wanted, deadline=time.monotonic() + _WALKING_S)
            if time.monotonic() > until or not any(
                isinstance(answer, Translated) and answer.how is How.BEYOND
                for by_offset in answers.values()
                for answer in by_offset.values()
            ):
                return answers
            time.sleep(_PAUSE_S)

    def _compacted(self, topics: Iterable[str]) -> set[str]:
        """The topics that are compacted on either side."""
        names = {topic: self._translator.remote(topic) for topic in topics}
        here, _ = topic_configs(self._source, names)
        there, _ = topic_configs(self._target, names.values())
        found = set()
        for topic, name in names.items():
            for configs in (here.get(topic, {}), there.get(name, {})):
                if CLEANUP_POLICY in configs and COMPACT in (configs[CLEANUP_POLICY].value or ""):
                    found.add(topic)
        return found

    def _compare(self, positions: Sequence[Position], compacted: set[str]) -> list[Compared]:
        copies = {one.place: self._copy(one.place, one.place[0] in compacted) for one in positions}
        there = [_on_target(one) for one in positions]
        slices_there = read_slices(self._flow.target, self._target, there)
        here = [_on_source(one, copies[one.place]) for one in positions]
        slices_here = read_slices(self._flow.source, self._source, [part for parts in here for part in parts])
        return [
            compare(one, _joined([slices_here[part] for part in parts]), slices_there[far], copies[one.place])
            for one, parts, far in zip(positions, here, there, strict=True)
        ]

    def _copy(self, place: TopicPartition, compacted: bool) -> CopyFacts:
        known = self._translator.progress.get(place) or Known()
        return CopyFacts(
            announced=known.announced,
            copied_to=self._backlogs[place].copied_to if place in self._backlogs else 0,
            compacted=compacted,
        )


def positions_of(forecasts: Iterable[Forecast]) -> list[Position]:
    """Return the positions where groups would continue: by translation, and by their last checkpoint.

    Groups at the same position share it. A checkpoint counts as exact where its offset translates exactly now. Groups
    that return from copies are left out: what is after their position on the target need not be copied.
    """
    found: dict[Position, list[str]] = defaultdict(list)
    for one in (one for one in forecasts if not one.returns):
        place, remote_place = (one.topic, one.partition), (one.remote_topic, one.partition)
        if one.target_offset is not None:
            position = Position(
                place=place,
                remote_place=remote_place,
                source_offset=one.source_offset,
                target_offset=one.target_offset,
                read_again=one.early_by or 0,
                expired=one.how == How.START,
                not_copied=one.how == How.BEYOND,
            )
            found[position].append(f"group {one.group}, translation ({one.how})")
        if one.checkpoint_offset is not None and one.checkpoint_source_offset is not None:
            same_source = one.checkpoint_source_offset == one.source_offset
            position = Position(
                place=place,
                remote_place=remote_place,
                source_offset=one.checkpoint_source_offset,
                target_offset=one.checkpoint_offset,
                read_again=0 if same_source and one.early_by == 0 else _MOST_SEARCHED,
                expired=same_source and one.how == How.START,
                not_copied=same_source and one.how == How.BEYOND,
            )
            found[position].append(f"group {one.group}, checkpoint")
    return [replace(position, who=tuple(who)) for position, who in found.items()]


def _not_copied(backlog: Backlog, first: LogSlice | None) -> NotCopied:
    """Join a backlog with its first record; offsets without any record are transaction markers and gaps."""
    if first is None or (not first.records and not backlog.exact and first.trouble is None):
        return NotCopied(0, exact=True, oldest_ms=None)
    timestamp = first.records[0].timestamp if first.records else -1
    return NotCopied(backlog.records, backlog.exact, timestamp if timestamp >= 0 else None)


def _on_target(one: Position) -> Wanted:
    first = max(0, one.target_offset - MARGIN)
    searched = min(one.read_again, _MOST_SEARCHED)
    return Wanted(one.remote_place, first, MARGIN + searched + one.records)


def _on_source(one: Position, copy: CopyFacts) -> list[Wanted]:
    later = read_from(one, copy.announced)
    parts = [Wanted(one.place, one.source_offset, one.records)]
    return parts if later == one.source_offset else [*parts, Wanted(one.place, later, one.records)]


def _joined(parts: Sequence[LogSlice]) -> LogSlice:
    """Join slices of one partition in the order of their records."""
    records = {record.offset: record for part in parts for record in part.records}
    trouble = next((part.trouble for part in parts if part.trouble is not None), None)
    return replace(parts[0], records=[records[offset] for offset in sorted(records)], trouble=trouble)
