"""Where the groups of a flow would continue on its target at this moment, and what they would read again or skip.

A group's offset on the target is set to the translation of its offset on the source if it is before that, or if it is
the one that this program committed last: the group has not consumed there, so an offset ahead is of a group that went
back on the source since. Groups with members, and those that are ahead since they consumed there, stay where they are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.batches.record_counter import RecordCounter
from mirrorless.clusters.groups import Committed, GroupOffsets, list_groups
from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.clusters.topics import last_stable_offsets, log_starts
from mirrorless.filters import group_filter_for, topic_filter_for
from mirrorless.log_walk import Walk, Walker
from mirrorless.offsets.checkpoints import CheckpointTopic
from mirrorless.offsets.failback import Returning, failback_of
from mirrorless.offsets.other_sources import OtherSources
from mirrorless.offsets.translation import How, Translated, Unknown
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.progress.topic_ids import NOT_COPIED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.formats import Checkpoint
    from mirrorless.settings import Flow

_MAY_BE_EARLY: Final = frozenset({How.NEAREST, How.WALK})
"""Compaction removes records that a walk would count; the earlier answer, a checkpoint's, is valid."""
_MOST_COUNTED: Final = 10_000
"""Offsets among which records are counted; writers may be blocked meanwhile. Of more there are surely some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """Where a group will be on the target, None if that is not known; and at most how many records it reads again.

    `skipped` is the maximum number of records that it has not read on the source, and will not read on the target.
    """

    offset: int | None = None
    read_again: int | None = None
    skipped: int = 0

    @classmethod
    def of(
        cls, translated: int, *, at_most: int, committed: int | None, is_ours: bool, has_members: bool
    ) -> Continuation:
        """Decide by the group's offset on the target, `committed`, and by who committed it.

        The exact translation is from `translated` to `at_most`.
        """
        if has_members and committed is None:
            return cls()
        stays = has_members or (committed is not None and committed > translated and not is_ours)
        offset = committed if committed is not None and stays else translated
        return cls(offset=offset, read_again=max(0, at_most - offset), skipped=max(0, offset - translated))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """A group's offset in a partition of the source, and where it would continue in `remote` on the target.

    `early_by` is the maximum number of records that the translation `answer` is before the exact one, None if unknown.
    `committed` is the group's offset on the target now. `returns` says that `place` is a copy of `remote`.
    """

    place: TopicPartition
    remote: TopicPartition
    source: Committed
    answer: Translated | Unknown
    early_by: int | None
    committed: int | None
    has_members: bool
    checkpoint: Checkpoint | None
    continues: Continuation
    returns: bool = False

    @property
    def ahead(self) -> tuple[TopicPartition, int, int] | None:
        """The part of `remote` between the translation and the group's offset, if it is ahead by a few; None if not."""
        if not isinstance(self.answer, Translated) or self.committed is None:
            return None
        at = self.answer.downstream
        return (self.remote, at, self.committed) if 0 < self.committed - at <= _MOST_COUNTED else None

    def with_records(self, records: int | None) -> GroupPosition:
        """Return the position, if there are so many records in `ahead`; None if they could not be counted."""
        if records is None or self.committed is None:
            return self
        if records:
            return replace(self, continues=replace(self.continues, skipped=min(records, self.continues.skipped)))
        again = self.continues.read_again
        return replace(self, continues=Continuation(offset=self.committed, read_again=again))


@dataclass(frozen=True, slots=True)
class _OnTarget:
    """What the target has of groups: committed offsets, the groups that may have members, those that were not read."""

    committed: Mapping[str, Mapping[TopicPartition, Committed]]
    active: frozenset[str]
    unread: frozenset[str]

    def at(self, group: str, place: TopicPartition) -> int | None:
        """The group's offset."""
        one = self.committed.get(group, {}).get(place)
        return None if one is None else one.offset


class GroupPositions:
    """The positions of one flow's groups, also where they return from copies that the opposite flow made.

    `source` and `target` are the clients of the flow's ends. `troubles` are lines about what the last reading could not
    determine, `unread` the groups of the source that could not be read, and why. Raises ConfigurationError if the
    flow's filter cannot be imported.
    """

    def __init__(self, flow: Flow, *, source: Admin, target: Admin) -> None:
        self._target = target
        self._is_followed = flow.sync_group_offsets_enabled
        self.selects = group_filter_for(flow).selects
        self._wants_topic = topic_filter_for(flow).selects
        self._target_walker = Walker(flow.target)
        self._source_groups, self._target_groups = GroupOffsets(flow.source), GroupOffsets(flow.target)
        self._checkpoints = CheckpointTopic(checkpoints_topic(flow), target, wanted=self.selects)
        self._others = OtherSources(flow, target, wanted=self.selects)
        self.translator = translator_of(flow, source=source, target=target)
        self._way_back = failback_of(flow, source=source, target=target, wants_group=self.selects)
        self.troubles: list[str] = []
        self.unread: dict[str, str] = {}

    def read(
        self, groups: Iterable[str], *, deadline: float, stopping: Callable[[], bool] = lambda: False
    ) -> dict[str, list[GroupPosition]]:
        """Return the positions of these groups of the source; walks end at the monotonic time `deadline`.

        Once `stopping` returns true the answers are of no use.

        A group that is in a copy of the target's topic where the opposite flow committed it is where it is on the
        target: it has no position. Raises `ClusterError`.
        """
        self.troubles, self.unread = [], {}
        names = list(groups)
        # The target's offsets first: a group that reads meanwhile is not ahead there then.
        there = self._on_target(names)
        committed = self._on_source(names)
        self._checkpoints.read()
        self._others.read()
        returning = self._returning(committed)
        wanted: dict[TopicPartition, set[int]] = defaultdict(set)
        for offsets in committed.values():
            for place, one in offsets.items():
                if not self._goes_back(place[0]):
                    wanted[place].add(one.offset)
        self.translator.refresh(wanted, stopping=stopping)
        answers = self.translator.translate(wanted, deadline=deadline)
        self.troubles += self.translator.walked.troubles
        found = {
            group: [
                self._found(group, place, one, answers[place][one.offset], there)
                for place, one in sorted(offsets.items())
                if place in wanted
            ]
            for group, offsets in sorted(committed.items())
        }
        for group, position in self._found_returning(committed, returning, there, deadline):
            found[group].append(position)
        return self._counted(found, deadline)

    def _found_returning(
        self,
        committed: Mapping[str, Mapping[TopicPartition, Committed]],
        returning: Returning,
        there: _OnTarget,
        deadline: float,
    ) -> Iterator[tuple[str, GroupPosition]]:
        """Yield the positions in topics of the target, of groups that consumed in their copies."""
        if self._way_back is None or not returning.wanted:
            return
        answers = self._way_back.translate(returning.wanted, deadline=deadline)
        self.troubles += self._way_back.troubles
        home = {place: (self.translator.remote(place[0]), place[1]) for place in returning.wanted}
        logs = self._logs(home.values())
        for group, offsets in committed.items():
            for place in sorted(returning.wanted.keys() & offsets.keys()):
                one, log = offsets[place], logs.get(home[place])
                if (group, place) in returning.echoes or not self._way_back.consumed(group, place, one.offset):
                    continue
                answer, early_by = answers[place][one.offset], None
                if isinstance(answer, Translated) and log is not None:
                    answer = replace(answer, downstream=log.within(answer.downstream))
                    early_by = 0 if answer.exact else log.end - answer.downstream
                found = self._position(
                    *(group, home[place], answer),
                    place=place,
                    source=one,
                    there=there,
                    early_by=early_by,
                    returns=True,
                )
                yield group, found

    def _counted(self, found: dict[str, list[GroupPosition]], deadline: float) -> dict[str, list[GroupPosition]]:
        """Count what is between each translation and an offset ahead of it: transaction markers are no records."""
        walks: dict[tuple[TopicPartition, int, int], Walk] = {}
        for one in chain.from_iterable(found.values()):
            if (span := one.ahead) is not None and span not in walks:
                place, begin, end = span
                walks[span] = Walk(place, RecordCounter(begin, [end]))
        if not walks:
            return found
        self._target_walker.walk(list(walks.values()), deadline=deadline)
        return {
            group: [
                one if (span := one.ahead) is None else one.with_records(walks[span].counter.counts.get(span[2]))
                for one in some
            ]
            for group, some in found.items()
        }

    def from_checkpoints(
        self, wants_group: Callable[[str], bool], *, deadline: float, halted: Container[TopicPartition] = ()
    ) -> dict[str, list[GroupPosition]]:
        """Return the positions by the last checkpoints, without the source; raises `ClusterError`.

        Of groups that are followed, the offset on the target may be later. How many records a group has read after that
        is not known: it may read them all again. Of `halted` remote partitions no checkpoint is valid.
        """
        self.troubles = []
        self._others.read()
        known = {
            group: {place: one for place, one in offsets.items() if one.returns or not self._is_home(place[0])}
            for group, offsets in sorted(self._checkpoints.read().items())
            if wants_group(group)
        }
        there = self._on_target(list(known))
        logs = self._logs(set(chain.from_iterable(known.values())))
        found: dict[str, list[GroupPosition]] = {}
        for group, offsets in known.items():
            for place, one in sorted(offsets.items()):
                answer: Translated | Unknown = Unknown(f"{place[0]} does not exist on the target")
                if place in halted:
                    answer = Unknown(NOT_COPIED)
                elif place in logs:
                    earliest = self._others.earliest(group, place, one.downstream)
                    answer = self._followed(there, group, place, logs[place].within(earliest))
                left = logs[place].end - answer.downstream if isinstance(answer, Translated) else None
                position = self._position(
                    *(group, place, answer),
                    place=place,
                    source=Committed(one.upstream, one.metadata),
                    there=there,
                    early_by=left,
                    returns=one.returns,
                )
                found.setdefault(group, []).append(position)
        return self._counted(found, deadline)

    def _followed(self, there: _OnTarget, group: str, place: TopicPartition, checkpoint: int) -> Translated:
        """Return the later of a checkpoint and a followed group's offset, unless a checkpoint run committed that."""
        at = there.at(group, place) if self._is_followed and group not in there.active else None
        if at is None or at <= checkpoint or self._checkpoints.is_ours(group, place, at):
            return Translated(checkpoint, How.CHECKPOINT)
        return Translated(at, How.FOLLOWED)

    def close(self) -> None:
        """Close all connections."""
        self._source_groups.close()
        self._target_groups.close()
        self._checkpoints.close()
        self._others.close()
        self.translator.close()
        self._target_walker.close()
        if self._way_back is not None:
            self._way_back.close()

    def _goes_back(self, topic: str) -> bool:
        return self._way_back is not None and self._way_back.covers(topic)

    def _is_home(self, topic: str) -> bool:
        return self._way_back is not None and self._way_back.is_home(topic)

    def _on_target(self, groups: Iterable[str]) -> _OnTarget:
        activity, troubles = list_groups(self._target)
        self.troubles += troubles
        found: dict[str, Mapping[TopicPartition, Committed]] = {}
        unread: set[str] = set()
        for group, some in self._target_groups.committed(group for group in groups if group in activity):
            if isinstance(some, str):
                self.troubles.append(f"group {group} is not moved, its offsets on {self._target.alias}: {some}")
                unread.add(group)
            else:
                found[group] = some
        active = frozenset(group for group, state in activity.items() if state.may_have_members)
        return _OnTarget(found, active, frozenset(unread))

    def _on_source(self, groups: Iterable[str]) -> dict[str, dict[TopicPartition, Committed]]:
        chosen: dict[str, dict[TopicPartition, Committed]] = {}
        for group, offsets in self._source_groups.committed(groups):
            if isinstance(offsets, str):
                self.troubles.append(f"group {group}: {offsets}")
                self.unread[group] = offsets
            else:
                chosen[group] = {
                    place: one
                    for place, one in offsets.items()
                    if self._wants_topic(place[0]) or self._goes_back(place[0])
                }
        return chosen

    def _returning(self, committed: Mapping[str, Mapping[TopicPartition, Committed]]) -> Returning:
        topics = {topic for offsets in committed.values() for topic, _ in offsets if self._goes_back(topic)}
        if self._way_back is None or not topics:
            return Returning()
        if (reason := self._way_back.listen(topics)) is not None:
            self.troubles.append(f"no group is failed back: {reason}")
        return self._way_back.divide(committed)

    def _logs(self, places: Collection[TopicPartition]) -> dict[TopicPartition, _Log]:
        ends, _ = last_stable_offsets(self._target, places)
        starts, _ = log_starts(self._target, places)
        return {place: _Log(starts.get(place, 0), end) for place, end in ends.items()}

    def _found(
        self, group: str, place: TopicPartition, one: Committed, answer: Translated | Unknown, there: _OnTarget
    ) -> GroupPosition:
        """The position of an offset in a topic that the flow copies."""
        remote = (self.translator.remote(place[0]), place[1])
        if not isinstance(answer, Translated):
            return self._position(group, remote, answer, place=place, source=one, there=there)
        most = answer.downstream + self.translator.read_again(place, one.offset, answer)
        last = self._checkpoints.last(group, remote)
        if (
            answer.how in _MAY_BE_EARLY
            and last is not None
            and last.upstream <= one.offset
            and answer.downstream < last.downstream <= self.translator.target_ends[place]
            and self.translator.line(place).fits(last.upstream, last.downstream)
        ):
            answer = replace(answer, downstream=last.downstream)
        if (earliest := self._others.earliest(group, remote, answer.downstream)) < answer.downstream:
            answer = replace(answer, downstream=earliest, how=How.NEAREST)
        early_by = max(0, most - answer.downstream)
        return self._position(group, remote, answer, place=place, source=one, there=there, early_by=early_by)

    def _position(
        self,
        group: str,
        remote: TopicPartition,
        answer: Translated | Unknown,
        *,
        place: TopicPartition,
        source: Committed,
        there: _OnTarget,
        early_by: int | None = None,
        returns: bool = False,
    ) -> GroupPosition:
        committed, has_members = there.at(group, remote), group in there.active
        continues = Continuation(offset=committed if has_members else None)
        if isinstance(answer, Translated) and group not in there.unread:
            continues = Continuation.of(
                answer.downstream,
                at_most=answer.downstream + (early_by or 0),
                committed=committed,
                is_ours=committed is not None and self._checkpoints.is_ours(group, remote, committed),
                has_members=has_members,
            )
        return GroupPosition(
            place=place,
            remote=remote,
            source=source,
            answer=answer,
            early_by=early_by,
            committed=committed,
            has_members=has_members,
            checkpoint=self._checkpoints.last(group, remote),
            continues=continues,
            returns=returns,
        )


class _Log(NamedTuple):
    """The first offset of a partition, and the one after its last committed record."""

    start: int
    end: int

    def within(self, offset: int) -> int:
        """The offset, or where a group would continue that is outside."""
        return min(max(offset, self.start), self.end)
