"""One checkpoint run of a flow: offsets of the source's groups, translated, written to the target."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import Committed, GroupOffsets, list_groups, refusals
from mirrorless.clusters.internal_topics import checkpoints_topic, ensure
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.clusters.target_state import waits_for_its_turn
from mirrorless.clusters.topics import last_stable_offsets, log_starts
from mirrorless.errors import ClusterError
from mirrorless.filters import group_filter_for, topic_filter_for
from mirrorless.formats import Checkpoint
from mirrorless.offsets.checkpoints import CheckpointTopic, is_news, offsets_to_commit
from mirrorless.offsets.failback import Returning, failback_of
from mirrorless.offsets.other_sources import OtherSources
from mirrorless.offsets.translation import How, Translated
from mirrorless.offsets.turn_translation import translator_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import Message

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.checkpoints import ByGroup
    from mirrorless.offsets.translation_service import Answers
    from mirrorless.settings import Flow

_WALKING_S: Final = 20.0
_FLUSH_S: Final = 30.0
_BUFFER_KB: Final = 32_768


@dataclass(slots=True)
class PassReport:
    """What a run found and wrote. `how` counts the answers by kind, `unknown` the offsets without one by reason.

    `troubles` are lines for the log: what was skipped this time and why. `left` are groups that were not reached,
    `latencies_ms` from each checkpoint's timestamp to its acknowledgement.
    """

    groups: int = 0
    offsets: int = 0
    emitted: int = 0
    how: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    walked_records: int = 0
    malformed: int = 0
    troubles: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    latencies_ms: list[int] = field(default_factory=list)


@dataclass(slots=True)
class GroupSyncReport:
    """The result of committing offsets on the target: offsets written, groups skipped because they are active there.

    `raised` counts the written offsets that were raised to the start of a remote partition's log, since its retention
    deleted the records at them. `left` are groups that were not reached.
    """

    written: int = 0
    raised: int = 0
    active: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


class Checkpoints:
    """The checkpoints of one flow, kept between invocations; a cold start gets the same from the topics."""

    def __init__(self, flow: Flow) -> None:
        """Connect; raises `ClusterError`, and ConfigurationError if the flow's filter cannot be imported."""
        self._flow = flow
        self._source, self._target = Admin(flow.source), Admin(flow.target)
        self._source_groups, self._target_groups = GroupOffsets(flow.source), GroupOffsets(flow.target)
        self._wants_group = group_filter_for(flow).selects
        self._wants_topic = topic_filter_for(flow).selects
        self._create_topic()
        self._topic = CheckpointTopic(checkpoints_topic(flow), self._target, wanted=self._wants_group)
        self._others = OtherSources(flow, self._target, wanted=self._wants_group)
        self._troubles: list[str] = []
        self._latencies_ms: list[int] = []
        self._on_source: set[str] = set()
        self.translator = translator_of(
            flow, source=self._source, target=self._target, must_read_to_end=not self._loaded()
        )
        self._way_back = failback_of(flow, source=self._source, target=self._target, wants_group=self._wants_group)
        self._returning = Returning()
        self._knows_committed = not flow.sync_group_offsets_enabled
        self._not_copied: set[TopicPartition] = set()
        self._left: set[str] = set()
        self._producer = TopicProducer(
            flow.target,
            creator="the next run",
            linger_ms=50,
            queue_buffering_max_messages=1_000_000,
            queue_buffering_max_kbytes=_BUFFER_KB,
        )

    def stopped(self) -> str | None:
        """Why there is nothing to do, if the flow waits for its turn; raises `ClusterUnavailable`."""
        return waits_for_its_turn(self._flow, self._target)

    def emit(self, *, walking_s: float = _WALKING_S, stopping: Callable[[], bool] = lambda: False) -> PassReport:
        """Translate the offsets of all groups and write changed checkpoints; raises `ClusterError`.

        A group or a partition without an answer is skipped and reported. `walking_s` bounds the walks. Once
        `stopping` returns true no other group is begun; a cold run may only read a part of the topics, where the
        next one continues.
        """
        self._troubles, self._latencies_ms = [], []
        report = PassReport(troubles=self._troubles, latencies_ms=self._latencies_ms)
        # What is read of the topics here is read on below, after the target's ends.
        _, committed, _ = side_by_side(
            self._read_topic, lambda: self._committed(report), lambda: self.translator.prepare(stopping=stopping)
        )
        returning = {topic for offsets in committed.values() for topic, _ in offsets if self._goes_back(topic)}
        self._listen(returning, report, stopping)
        self._note_committed()
        self._returning = Returning() if self._way_back is None else self._way_back.divide(committed)
        there: dict[TopicPartition, set[int]] = defaultdict(set)
        for offsets in committed.values():
            for place, one in offsets.items():
                if not self._goes_back(place[0]):
                    there[place].add(one.offset)
        if not self.translator.refresh(there, stopping=stopping):
            report.left = list(committed)
            return report
        recreated = filter(self.translator.why_not, there)
        self._not_copied = {(self.translator.remote(topic), partition) for topic, partition in recreated}
        deadline = time.monotonic() + walking_s
        answers = self.translator.translate(there, deadline=deadline)
        if self._way_back is not None and self._returning.wanted:
            answers |= self._way_back.translate(self._returning.wanted, deadline=deadline, stopping=stopping)
            report.walked_records += self._way_back.walked_records
            report.troubles += self._way_back.troubles
        for group, offsets in committed.items():
            if report.left or stopping():
                report.left.append(group)
            else:
                self._write_group(group, offsets, answers, report)
        if left := self._producer.flush(_FLUSH_S):
            report.troubles.append(f"{left} checkpoints were not acknowledged in {_FLUSH_S:.0f} s")
        report.walked_records += self.translator.walked.records
        report.troubles += self.translator.walked.troubles
        report.malformed = self._topic.malformed + self.translator.syncs.malformed
        return report

    def sync_groups(self, *, stopping: Callable[[], bool] = lambda: False) -> GroupSyncReport:
        """Commit the last checkpoints for groups on the target that have no members; raises `ClusterError`.

        Only for groups that the last `emit` found on the source: a group that was deleted there is neither recreated
        nor changed; and of topics that groups fail back to, only where they consumed themselves. Active groups are
        skipped, offsets never go back, and missing ones are written, but never beyond a
        remote partition's end, nor before its start. Once `stopping` returns true no other group is begun.
        """
        report = GroupSyncReport()
        wanted, raised = self.find_commits(report)
        # First those that the last run did not reach.
        line = sorted(wanted, key=lambda group: group not in self._left)
        outcomes = self._target_groups.commit({group: wanted[group] for group in line}, stopping=stopping)
        report.troubles += self._target_groups.shortened
        self._target_groups.shortened.clear()
        report.left = [group for group in line if group not in outcomes]
        self._left = set(report.left)
        for group, outcome in outcomes.items():
            report.troubles += refusals(group, outcome)
            if isinstance(outcome, str):
                continue
            report.written += sum(reason is None for reason in outcome.values())
            for place in (place for place, reason in outcome.items() if reason is None):
                self._topic.note_committed(group, place, wanted[group][place].offset)
            report.raised += sum(reason is None and place in raised.get(group, ()) for place, reason in outcome.items())
        return report

    def find_commits(self, report: GroupSyncReport) -> tuple[dict[str, Mapping[TopicPartition, Committed]], ByGroup]:
        """Return the offsets that are to be committed now, and the checkpoints among them that were raised.

        Nothing is committed; raised checkpoints are written, as `sync_groups` says. Raises `ClusterError`.
        """
        activity, troubles = list_groups(self._target)
        report.troubles += troubles
        every = {group: self._meant(group, last) for group, last in self._topic.read().items()}
        known = self._others.held_back({group: last for group, last in every.items() if group in self._on_source})
        busy = {group for group, state in activity.items() if state.may_have_members}
        report.active = [group for group in known if group in busy]
        idle = [group for group in known if group not in busy]
        raised = self._raised({group: known[group] for group in idle})
        ahead: dict[str, dict[TopicPartition, Checkpoint]] = {}
        for group, offsets in self._target_groups.committed(idle):
            if isinstance(offsets, str):
                report.troubles.append(f"group {group}: {offsets}")
            elif chosen := offsets_to_commit(
                known[group] | raised.get(group, {}), {place: one.offset for place, one in offsets.items()}
            ):
                ahead[group] = chosen
        # Asked for now: a recreated remote topic is shorter than the old one was.
        ends, _ = last_stable_offsets(self._target, {place for chosen in ahead.values() for place in chosen})
        wanted: dict[str, Mapping[TopicPartition, Committed]] = {}
        for group, chosen in ahead.items():
            there = {
                place: Committed(one.downstream, one.metadata)
                for place, one in chosen.items()
                if one.downstream <= ends.get(place, -1)
            }
            if there:
                wanted[group] = there
        self._write_raised(wanted, raised, report)
        return wanted, raised

    def _raised(self, known: ByGroup) -> ByGroup:
        """The checkpoints that are before a remote partition's start, raised to it."""
        starts, _ = log_starts(self._target, {place for last in known.values() for place in last})
        return {
            group: below
            for group, last in known.items()
            if (
                below := {
                    place: replace(one, downstream=starts[place])
                    for place, one in last.items()
                    if one.downstream < starts.get(place, 0)
                }
            )
        }

    def _write_raised(
        self, wanted: dict[str, Mapping[TopicPartition, Committed]], raised: ByGroup, report: GroupSyncReport
    ) -> None:
        """Write the raised checkpoints that are about to be committed.

        A group at an offset without a checkpoint would look as if it had consumed itself (`FailbackFilter`).
        """
        self._troubles = []
        now_ms = int(time.time() * 1000)
        for group, places in wanted.items():
            for place in places.keys() & raised.get(group, {}).keys():
                self._write(raised[group][place], now_ms)
        if left := self._producer.flush(_FLUSH_S):
            self._troubles.append(f"{left} checkpoints were not acknowledged in {_FLUSH_S:.0f} s")
        if self._troubles:
            report.troubles += self._troubles
            for group in raised.keys() & wanted.keys():
                wanted[group] = {place: one for place, one in wanted[group].items() if place not in raised[group]}

    def close(self) -> None:
        """Close all connections."""
        self._topic.close()
        self._others.close()
        self._source_groups.close()
        if self._way_back is not None:
            self._way_back.close()
        self._target_groups.close()
        self.translator.close()

    def _read_topic(self) -> None:
        self._topic.read()
        if self._topic.missing:  # it was deleted; all checkpoints are written to the new one
            self._create_topic()

    def _create_topic(self) -> None:
        topic = checkpoints_topic(self._flow)
        if (reason := ensure(self._target, topic)) is not None:
            raise ClusterError(f"cannot create topic {topic.name}: {reason}", cluster=topic.cluster.alias)

    def _meant(self, group: str, last: Mapping[TopicPartition, Checkpoint]) -> dict[TopicPartition, Checkpoint]:
        """Leave out checkpoints of topics that the opposite flow moved the group back to, without its consuming.

        And those of recreated source topics: they are of the topic before.
        """
        moved, home = self._returning.moved.get(group, ()), self._way_back
        returning = {(self.translator.remote(topic), partition) for topic, partition in moved}
        return {
            place: one
            for place, one in last.items()
            if place not in self._not_copied and (home is None or place in returning or not home.is_home(place[0]))
        }

    def _note_committed(self) -> None:
        """Find which last checkpoints an earlier process committed, before later ones replace them."""
        if self._knows_committed:
            return
        listed, _ = list_groups(self._target)
        for group, offsets in self._target_groups.committed(sorted(self._topic.known.keys() & listed.keys())):
            for place, one in {} if isinstance(offsets, str) else offsets.items():
                if self._topic.is_ours(group, place, one.offset):
                    self._topic.note_committed(group, place, one.offset)
        self._knows_committed = True

    def _listen(self, returning: set[str], report: PassReport, stopping: Callable[[], bool]) -> None:
        if self._way_back is not None and returning:
            reason = self._way_back.listen(returning, stopping=stopping)
            if reason is not None:
                report.troubles.append(f"no group is failed back: {reason}")

    def _goes_back(self, topic: str) -> bool:
        return self._way_back is not None and self._way_back.covers(topic)

    def _wants(self, topic: str) -> bool:
        return self._wants_topic(topic) or self._goes_back(topic)

    def _loaded(self) -> bool:
        """Read the checkpoints of earlier runs; False if that failed, so that nothing is translated below them."""
        try:
            self._topic.read()
        except ClusterError:
            return False
        return True

    def _committed(self, report: PassReport) -> dict[str, dict[TopicPartition, Committed]]:
        """Committed offsets on the source of every group and topic that the filters select."""
        groups, troubles = list_groups(self._source)
        report.troubles += troubles
        wants = cache(self._wants)  # a custom filter may be slow, and groups have thousands of offsets
        chosen: dict[str, dict[TopicPartition, Committed]] = {}
        on_source: set[str] = set()
        for group, offsets in self._source_groups.committed(filter(self._wants_group, groups)):
            on_source.add(group)
            if isinstance(offsets, str):
                report.troubles.append(f"group {group}: {offsets}")
            elif mine := {place: one for place, one in offsets.items() if wants(place[0])}:
                chosen[group] = mine
        self._on_source = on_source
        report.groups = len(chosen)
        report.offsets = sum(map(len, chosen.values()))
        return chosen

    def _write_group(
        self, group: str, offsets: Mapping[TopicPartition, Committed], answers: Answers, report: PassReport
    ) -> None:
        now_ms = int(time.time() * 1000)
        for place, one in offsets.items():
            echo = self._returning.echoes.get((group, place))
            answer = answers[place][one.offset] if echo is None else echo
            if not isinstance(answer, Translated):
                report.unknown[answer.reason] += 1
                continue
            report.how[answer.how] += 1
            checkpoint = Checkpoint(
                group=group,
                topic=self.translator.remote(place[0]),
                partition=place[1],
                upstream=one.offset,
                downstream=answer.downstream,
                metadata=one.metadata,
                returns=place in self._returning.moved.get(group, ()),
            )
            last = self._topic.last(group, (checkpoint.topic, checkpoint.partition))
            if last is not None:
                checkpoint = replace(checkpoint, committed=last.committed)
            # A walk counts less if the source was compacted since; the earlier answer is still valid.
            sure = answer.exact and (answer.how is not How.WALK or self._is_of_earlier_copy(last, checkpoint, place))
            if is_news(checkpoint, last, exact=sure, end=self.translator.target_ends.get(place)):
                self._write(checkpoint, now_ms)
                report.emitted += 1

    def _is_of_earlier_copy(self, last: Checkpoint | None, checkpoint: Checkpoint, place: TopicPartition) -> bool:
        """Whether the last checkpoint is outside of the current copy, such as one of an earlier topic."""
        if last is None or last.downstream <= checkpoint.downstream or self._goes_back(place[0]):
            return False
        return not self.translator.line(place).fits(last.upstream, last.downstream)

    def _write(self, checkpoint: Checkpoint, now_ms: int) -> None:
        self._topic.note(checkpoint)
        refused = self._producer.send(
            self._topic.name,
            key=checkpoint.key(),
            value=checkpoint.value(),
            partition=0,
            timestamp_ms=now_ms,
            delivered=self._delivered,
            waits=True,
        )
        if refused is not None:
            raise ClusterError(f"{self._topic.name}: {refused}", cluster=self._flow.target.alias)
        self._producer.poll()

    def _delivered(self, reason: str | None, message: Message) -> None:
        if reason is None:
            self._latencies_ms.append(max(0, int(time.time() * 1000) - message.timestamp()[1]))
        else:
            checkpoint = Checkpoint.parse(message.key(), message.value())
            if isinstance(checkpoint, Checkpoint):
                self._topic.known.get(checkpoint.group, {}).pop((checkpoint.topic, checkpoint.partition), None)
                self._troubles.append(f"writing {checkpoint.text} failed: {reason}")
