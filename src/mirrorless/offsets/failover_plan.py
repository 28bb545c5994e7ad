"""Forecasts a failover at this moment: where each group would continue, what it re-reads or skips, and what is lost."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import list_groups
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.offsets.backlog import backlogs
from mirrorless.offsets.checkpoints import remote_topic
from mirrorless.offsets.group_positions import GroupPositions
from mirrorless.offsets.translation import Translated
from mirrorless.policy import policy_for
from mirrorless.progress.topic import ProgressTopic
from mirrorless.progress.topic_ids import is_another

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.backlog import Backlog
    from mirrorless.offsets.group_positions import GroupPosition
    from mirrorless.settings import Cluster, Flow

_WALKING_S: Final = 20.0
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One group on one partition, if it failed over to the target now.

    `source_offset` is its offset on the source, `target_offset` the translation; None without an answer, and `how` says
    why. `early_by` is the maximum number of records that the translation is before the exact one, None if unknown.
    `committed` is its offset on the target now, and `has_members` says that it may have members there.

    `continues_at` is where it will really be on the target, None if unknown: the translation, or its own offset there.
    From there it reads at most `read_again` records again, and skips at most `skipped`. If nothing moved it there, it
    would read at most `read_again_now` again, from `committed`: what the target's offset lags the source's; None if not
    known, and for a group that has no offset on the target.

    `checkpoint_offset` is the offset in the checkpoints topic, None if none, and `checkpoint_source_offset` the source
    offset that it was translated from. `not_copied` are committed records
    that the target does not have; `not_copied_exact` says whether they were counted or are offsets, which include
    markers and gaps. `metadata` is the commit's. `newest_ms` is the timestamp of the target's newest record, None if it
    has none. `returns` says that `topic` is the copy of a topic of the target, to which the group returns. If the
    source is unavailable, offsets are those of the last checkpoint and it is not known what was not copied.
    """

    group: str
    topic: str
    remote_topic: str
    partition: int
    source_offset: int
    target_offset: int | None
    how: str
    early_by: int | None
    committed: int | None
    has_members: bool
    continues_at: int | None
    read_again: int | None
    skipped: int
    checkpoint_offset: int | None
    checkpoint_source_offset: int | None
    not_copied: int | None
    not_copied_exact: bool
    newest_ms: int | None
    read_again_now: int | None = None
    metadata: str = ""
    returns: bool = False


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
    source, target = Admin(flow.source), Admin(flow.target)
    with closing(GroupPositions(flow, source=source, target=target)) as positions:
        if not asks_source:
            return _from_checkpoints(flow, positions, target, f"cluster {flow.source.alias} does not answer", groups)
        try:
            source.metadata()
            return _from_source(flow, positions, source, target, groups)
        except ClusterUnavailable as error:
            if error.cluster != flow.source.alias:
                raise
            return _from_checkpoints(flow, positions, target, str(error), groups)


def _from_source(
    flow: Flow, positions: GroupPositions, source: Admin, target: Admin, groups: Callable[[str], bool]
) -> FailoverPlan:
    deadline = time.monotonic() + _WALKING_S
    listed, troubles = list_groups(source)
    found = positions.read((name for name in listed if positions.selects(name) and groups(name)), deadline=deadline)
    copied = {one.place for some in found.values() for one in some if not one.returns}
    lost, more = backlogs(flow, positions.translator, source=source, places=copied, deadline=deadline)
    newest = newest_timestamps(target, {one.remote for some in found.values() for one in some})
    return FailoverPlan(
        flow=flow.name,
        source_answers=True,
        forecasts=tuple(
            _forecast(group, one, lost=lost, newest=newest) for group, some in found.items() for one in some
        ),
        troubles=(*troubles, *positions.troubles, *more),
    )


def _from_checkpoints(
    flow: Flow, positions: GroupPositions, target: Admin, reason: str, groups: Callable[[str], bool]
) -> FailoverPlan:
    halted, troubles = _halted_at_another(flow, target)
    found = positions.from_checkpoints(groups, deadline=time.monotonic() + _WALKING_S, halted=halted)
    newest = newest_timestamps(target, {one.remote for some in found.values() for one in some})
    return FailoverPlan(
        flow=flow.name,
        source_answers=False,
        forecasts=tuple(
            _forecast(group, one, lost=None, newest=newest) for group, some in found.items() for one in some
        ),
        troubles=(reason, *positions.troubles, *troubles),
    )


def _forecast(
    group: str,
    one: GroupPosition,
    *,
    lost: Mapping[TopicPartition, Backlog] | None,
    newest: Mapping[TopicPartition, int],
) -> Forecast:
    """Join a position with what was not copied, `lost`; None if that is not known."""
    backlog = None if lost is None else lost.get(one.place)
    is_home = lost is not None and one.returns  # all of it came from the target
    return Forecast(
        group=group,
        topic=one.place[0],
        remote_topic=one.remote[0],
        partition=one.place[1],
        source_offset=one.source.offset,
        target_offset=one.answer.downstream if isinstance(one.answer, Translated) else None,
        how=str(one.answer.how) if isinstance(one.answer, Translated) else one.answer.reason,
        early_by=one.early_by,
        committed=one.committed,
        has_members=one.has_members,
        continues_at=one.continues.offset,
        read_again=one.continues.read_again,
        skipped=one.continues.skipped,
        read_again_now=_read_again_now(one),
        checkpoint_offset=None if one.checkpoint is None else one.checkpoint.downstream,
        checkpoint_source_offset=None if one.checkpoint is None else one.checkpoint.upstream,
        not_copied=0 if is_home else None if backlog is None else backlog.records,
        not_copied_exact=is_home or (backlog is not None and backlog.exact),
        newest_ms=newest.get(one.remote),
        metadata=one.source.metadata,
        returns=one.returns,
    )


def _read_again_now(one: GroupPosition) -> int | None:
    if not isinstance(one.answer, Translated) or one.committed is None or one.early_by is None:
        return None
    return max(0, one.answer.downstream + one.early_by - one.committed)


def skipped_by_group(forecasts: Iterable[Forecast]) -> dict[str, int]:
    """Return the maximum number of records that each group would skip; groups that skip none are omitted."""
    found: Counter[str] = Counter()
    for one in forecasts:
        found[one.group] += one.skipped
    return {group: records for group, records in sorted(found.items()) if records}


def skipping(forecasts: Sequence[Forecast], target: Cluster) -> list[str]:
    """Return a line for each group that would skip records: why, and the command that sets its offset."""
    lines: list[str] = []
    for group, records in skipped_by_group(forecasts).items():
        some = [one for one in forecasts if one.group == group and one.skipped]
        first = some[0]
        command = (
            f"kafka-consumer-groups.sh --bootstrap-server {target.bootstrap_servers} --group {group} --reset-offsets "
            f"--topic {first.remote_topic}:{first.partition} --to-offset {first.target_offset} --execute"
        )
        where = ", ".join(
            f"{one.remote_topic}-{one.partition} at {one.committed} instead of {one.target_offset}"
            for one in some[:_SHOWN]
        )
        more = f" and {len(some) - _SHOWN:,} partitions more" if len(some) > _SHOWN else ""
        lines.append(
            f"group {group} skips up to {records:,} record{'' if records == 1 else 's'} on {target.alias}, where it "
            f"{'has members' if first.has_members else 'has consumed itself'}: {where}{more}; if it has not read them, "
            f"stop its consumers on {target.alias}, and set each offset: {command}"
        )
    return lines


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
