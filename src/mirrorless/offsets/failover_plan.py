"""Forecasts a failover at this moment: where each group would continue, what it re-reads, and what is lost."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import Committed, GroupOffsets, list_groups
from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.copy.progress.topic import ProgressTopic
from mirrorless.copy.progress.topic_ids import NOT_COPIED, is_another
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.filters import group_filter_for, topic_filter_for
from mirrorless.offsets.backlog import backlogs
from mirrorless.offsets.checkpoints import CheckpointTopic, remote_topic
from mirrorless.offsets.translation import Translated, Unknown
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.backlog import Backlog
    from mirrorless.settings import Flow

_WALKING_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One group on one partition, if it failed over to the target now.

    `source_offset` is its offset on the source, `target_offset` where it would continue; None without an answer, and
    `how` says why. `read_again` is the maximum number of records that it would read again, 0 if the answer is exact.
    `checkpoint_offset` is the offset in the checkpoints topic, None if none, and `checkpoint_source_offset` the source
    offset that it was translated from. `not_copied` are committed records
    that the target does not have; `not_copied_exact` says whether they were counted or are offsets, which include
    markers and gaps. `metadata` is the commit's. `newest_ms` is the timestamp of the target's newest record, None if it
    has none. If the source is unavailable, offsets are those of the last checkpoint and it is not known what was not
    copied.
    """

    group: str
    topic: str
    remote_topic: str
    partition: int
    source_offset: int
    target_offset: int | None
    how: str
    read_again: int | None
    checkpoint_offset: int | None
    checkpoint_source_offset: int | None
    not_copied: int | None
    not_copied_exact: bool
    newest_ms: int | None
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverPlan:
    """The forecasts of a flow. `troubles` are lines about what could not be determined."""

    flow: str
    source_answers: bool
    forecasts: tuple[Forecast, ...]
    troubles: tuple[str, ...]


def failover_plan(
    flow: Flow, *, groups: Callable[[str], bool] = lambda _: True, asks_source: bool = True
) -> FailoverPlan:
    """Forecast a failover of the flow's groups to its target; writes nothing.

    Without `asks_source` it is known that the source does not answer.

    Raises `ClusterError` if the target does not answer, ConfigurationError if the flow's filter cannot be imported.
    If only the source, or a part of it, does not answer, only checkpoints are used.
    """
    selects = group_filter_for(flow).selects
    target = Admin(flow.target)
    topic = CheckpointTopic(checkpoints_topic(flow), target, wanted=lambda name: selects(name) and groups(name))
    try:
        topic.read()
        if not asks_source:
            return _from_checkpoints(flow, topic, target, f"cluster {flow.source.alias} does not answer")
        source = Admin(flow.source)
        try:
            source.metadata()
            return _Forecaster(flow, source, target, topic).plan(lambda name: selects(name) and groups(name))
        except ClusterUnavailable as error:
            if error.cluster != flow.source.alias:
                raise
            return _from_checkpoints(flow, topic, target, str(error))
    finally:
        topic.close()


class _Forecaster:
    def __init__(self, flow: Flow, source: Admin, target: Admin, topic: CheckpointTopic) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._topic = topic
        self._translator = translator_of(flow, source=source, target=target)
        self._source_groups = GroupOffsets(flow.source)
        self._troubles: list[str] = []
        self._lost: Mapping[TopicPartition, Backlog] = {}
        self._newest: Mapping[TopicPartition, int] = {}

    def plan(self, wants_group: Callable[[str], bool]) -> FailoverPlan:
        deadline = time.monotonic() + _WALKING_S
        try:
            committed = self._committed(wants_group)
            wanted: dict[TopicPartition, set[int]] = defaultdict(set)
            for offsets in committed.values():
                for place, one in offsets.items():
                    wanted[place].add(one.offset)
            self._translator.refresh(wanted)
            answers = self._translator.translate(wanted, deadline=deadline)
            self._troubles += self._translator.walked.troubles
            self._lost, troubles = backlogs(
                self._flow, self._translator, source=self._source, places=wanted, deadline=deadline
            )
            self._troubles += troubles
            self._newest = newest_timestamps(
                self._target, [(self._translator.remote(topic), partition) for topic, partition in wanted]
            )
            forecasts = [
                self._forecast(group, place, one, answers[place][one.offset])
                for group, offsets in sorted(committed.items())
                for place, one in sorted(offsets.items())
            ]
        finally:
            self._translator.close()
            self._source_groups.close()
        return FailoverPlan(
            flow=self._flow.name,
            source_answers=True,
            forecasts=tuple(forecasts),
            troubles=tuple(self._troubles),
        )

    def _committed(self, wants_group: Callable[[str], bool]) -> dict[str, dict[TopicPartition, Committed]]:
        selects = topic_filter_for(self._flow).selects
        listed, troubles = list_groups(self._source)
        self._troubles += troubles
        chosen: dict[str, dict[TopicPartition, Committed]] = {}
        for group, offsets in self._source_groups.committed(filter(wants_group, listed)):
            if isinstance(offsets, str):
                self._troubles.append(f"group {group}: {offsets}")
            else:
                chosen[group] = {place: one for place, one in offsets.items() if selects(place[0])}
        return chosen

    def _forecast(self, group: str, place: TopicPartition, one: Committed, answer: Translated | Unknown) -> Forecast:
        remote = (self._translator.remote(place[0]), place[1])
        checkpoint = self._topic.last(group, remote)
        translated = answer if isinstance(answer, Translated) else None
        lost = self._lost.get(place)
        return Forecast(
            group=group,
            topic=place[0],
            remote_topic=remote[0],
            partition=place[1],
            source_offset=one.offset,
            target_offset=None if translated is None else translated.downstream,
            how=str(answer.how) if isinstance(answer, Translated) else answer.reason,
            read_again=None if translated is None else self._translator.read_again(place, one.offset, translated),
            checkpoint_offset=None if checkpoint is None else checkpoint.downstream,
            checkpoint_source_offset=None if checkpoint is None else checkpoint.upstream,
            not_copied=None if lost is None else lost.records,
            not_copied_exact=lost is not None and lost.exact,
            newest_ms=self._newest.get(remote),
            metadata=one.metadata,
        )


def _from_checkpoints(flow: Flow, topic: CheckpointTopic, target: Admin, reason: str) -> FailoverPlan:
    newest = newest_timestamps(target, {place for offsets in topic.known.values() for place in offsets})
    halted, troubles = _halted_at_another(flow, target)
    return FailoverPlan(
        flow=flow.name,
        source_answers=False,
        troubles=(reason, *troubles),
        forecasts=tuple(
            Forecast(
                group=group,
                topic=one.topic,
                remote_topic=one.topic,
                partition=one.partition,
                source_offset=one.upstream,
                target_offset=None if place in halted else one.downstream,
                how=NOT_COPIED if place in halted else "checkpoint",
                read_again=None,
                checkpoint_offset=one.downstream,
                checkpoint_source_offset=one.upstream,
                not_copied=None,
                not_copied_exact=False,
                newest_ms=newest.get(place),
                metadata=one.metadata,
            )
            for group, offsets in sorted(topic.known.items())
            for place, one in sorted(offsets.items())
        ),
    )


def _halted_at_another(flow: Flow, target: Admin) -> tuple[set[TopicPartition], list[str]]:
    """Remote partitions whose copy halted at a recreated source topic: no checkpoint is of that topic."""
    policy = policy_for(flow)
    progress = ProgressTopic(flow, target, must_exist=False)
    try:
        known = progress.read()
    except ClusterError as error:
        return set(), [str(error)]
    finally:
        progress.close()
    return {
        (remote_topic(topic, source=flow.source.alias, target=flow.target.alias, policy=policy), partition)
        for (topic, partition), one in known.items()
        if is_another(one, None)
    }, []


def newest_timestamps(admin: Admin, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Largest timestamp of each partition, ms since 1970; those without records or without an answer are omitted."""
    wanted = {ConfluentTopicPartition(topic, partition): OffsetSpec.max_timestamp() for topic, partition in places}
    found: dict[TopicPartition, int] = {}
    for place, future in (admin.client.list_offsets(wanted) if wanted else {}).items():
        try:
            answer = admin.result(future)
        except ClusterError:
            continue  # a missing topic, or brokers before 3.0: the age is optional
        if answer.timestamp >= 0:
            found[place.topic, place.partition] = answer.timestamp
    return found
