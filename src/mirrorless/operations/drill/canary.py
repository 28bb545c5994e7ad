"""The canary of a drill: a topic, a producer and a group of its own, moved to the target and back.

The steps are those of a switchover, for this topic and this group alone; nothing is recorded in the operations topic,
no switch is thrown, no ACL is added. It shows that fence, copy, translation and the creation of topics work now.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import Committed, GroupOffsets
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.target_state import OperationWriter
from mirrorless.clusters.topics import high_watermarks, partition_counts
from mirrorless.doctor.findings import Status
from mirrorless.errors import ClusterError, MirrorlessError
from mirrorless.filters import group_filter_for, replicated_topics
from mirrorless.metadata.actions import CreateTopic
from mirrorless.metadata.topic_creation import create
from mirrorless.operation_log.records import (
    OperationKind,
    Operations,
    OperationState,
    Request,
    StepRecord,
    StepState,
)
from mirrorless.operations.drill.records import Wanted, read_slices
from mirrorless.operations.fences import ConfigFence
from mirrorless.operations.results import CheckResult, count_of
from mirrorless.operations.steps.context import OperationContext, StepFailed
from mirrorless.operations.steps.drain import DrainStep
from mirrorless.operations.steps.fence import FenceStep, QuietStep
from mirrorless.operations.steps.groups import GroupsStep
from mirrorless.operations.steps.open_topics import OpenStep
from mirrorless.policy import policy_for
from mirrorless.verify.fingerprints import content_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.acls import Acl, AclResource
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.operations.steps.context import OperationStep
    from mirrorless.settings import Cluster, Flow, Settings

CANARY: Final = "mirrorless-canary"
"""The name of the topic, on both clusters, and of the group."""
_CHECK: Final = "canary"
_RECORDS: Final = 100
_READ: Final = 60
_QUIET_S: Final = 0.5
_DRAIN_S: Final = 90.0
_VISIBLE_S: Final = 30.0
_FLUSH_S: Final = 30.0
_CONFIG: Final = {"cleanup.policy": "delete", "retention.ms": "86400000"}


class CanaryOpenStep(OpenStep):
    """As in a switchover, without the ACLs of applications."""

    def _acls(self, context: OperationContext, counts: dict[str, int]) -> dict[AclResource, list[Acl]]:  # noqa: ARG002
        return {}


@dataclass
class _Direction:
    """One move of the canary; `records` of this run were written to its source before."""

    settings: Settings
    forward: Flow
    reverse: Flow | None
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        request = Request(
            kind=OperationKind.SWITCHOVER,
            source=self.forward.source.alias,
            target=self.forward.target.alias,
            topics=CANARY,
            groups=CANARY,
            fence="config",
            quiet_s=_QUIET_S,
            drain_timeout_s=_DRAIN_S,
            wait_groups_s=0.0,
        )
        self.context = OperationContext(
            settings=self.settings,
            forward=self.forward,
            reverse=self.reverse,
            operation=OperationState(id=_CHECK, request=request, created_ms=int(time.time() * 1000)),
            check=lambda: None,
            say=lambda _: None,
            earlier=Operations(),
            writer=OperationWriter(0, 0),
            warnings=self.warnings,
        )

    def move(self, stack: ExitStack) -> None:
        """Do the steps of a switchover; the fence is removed when `stack` is closed."""
        steps: tuple[OperationStep, ...] = (FenceStep(), DrainStep(), GroupsStep(), QuietStep(), CanaryOpenStep())
        for step in steps:
            began_ms = int(time.time() * 1000)
            planned = step.plan(self.context)
            if isinstance(step, FenceStep):
                stack.callback(step.undo, self.context, planned)
            data = step.act(self.context, planned)
            self.context.operation.steps[step.name] = StepRecord(
                state=StepState.DONE, began_ms=began_ms, ended_ms=int(time.time() * 1000), data=data
            )


def move_canary(settings: Settings, flow: Flow) -> CheckResult:
    """Move the canary along a flow, and back if the opposite flow runs too; returns what happened as a check.

    Writes to the topic and the group `mirrorless-canary` on both clusters, to copies of the topic, and to the
    checkpoints of the flows.
    """
    back = f"{flow.target.alias}->{flow.source.alias}"
    reverse = next((one for one in settings.flows if one.name == back and _has_run(one)), None)
    if (reason := _why_not([flow, *([reverse] if reverse is not None else [])])) is not None:
        return CheckResult(check=_CHECK, status=Status.OK, text=f"not applicable: {reason}")
    began = time.monotonic()
    try:
        _there_and_back(settings, flow, reverse)
    except StepFailed as error:
        return CheckResult(check=_CHECK, status=Status.FAILED, text=error.reason, lines=error.lines)
    except MirrorlessError as error:
        return CheckResult(check=_CHECK, status=Status.FAILED, text=str(error))
    way = "there and back" if reverse is not None else f"to {flow.target.alias}; no flow {back} runs"
    text = f"{count_of(_RECORDS, 'record')} and a group moved {way} in {time.monotonic() - began:,.1f} s"
    return CheckResult(check=_CHECK, status=Status.OK, text=text)


def _has_run(flow: Flow) -> bool:
    """Whether a flow has its internal topics: without them it cannot copy the canary back."""
    return flow.offset_storage_topic in partition_counts(Admin(flow.target).metadata())


def _why_not(flows: Iterable[Flow]) -> str | None:
    for flow in flows:
        if policy_for(flow).format_remote_topic(flow.source.alias, CANARY) == CANARY:
            return f"{flow.name} keeps topic names, so its topics move together"
        if not replicated_topics(flow)(CANARY):
            return f"the topic {CANARY} is not selected by {flow.name}: add it to `topics`"
        if not group_filter_for(flow).selects(CANARY):
            return f"the group {CANARY} is not selected by {flow.name}: add it to `groups`"
    return None


def _there_and_back(settings: Settings, flow: Flow, reverse: Flow | None) -> None:
    run = f"{time.time_ns():x}"
    there = _Direction(settings, flow, reverse)
    source, target = there.context.source, there.context.target
    remote = policy_for(flow).format_remote_topic(flow.source.alias, CANARY)
    _create(flow, source, CANARY)
    _create(flow, target, remote)
    with ExitStack() as fences:
        _move_there(there, run, (remote, 0), fences)
        if reverse is None:
            return
        away = policy_for(reverse).format_remote_topic(flow.target.alias, CANARY)
        _create(reverse, source, away)
        _continue_there(flow, target, run, (remote, 0))
        back = _Direction(settings, reverse, flow)
        back.move(fences)
        fences.close()  # as at the end of a switchover: the fence on the source is removed when applications return
        _expect_end(flow.source, source, (CANARY, 0))
        _expect(flow.source, source, (away, 0), f"{run}-there-{_READ}")


def _move_there(there: _Direction, run: str, remote: TopicPartition, fences: ExitStack) -> None:
    flow, source, target = there.forward, there.context.source, there.context.target
    first = _end(source, (CANARY, 0))
    _write(flow.source, [f"{run}-{number}" for number in range(_RECORDS)])
    _commit(flow.source, {(CANARY, 0): first + _READ})
    there.move(fences)
    _expect(flow.target, target, remote, f"{run}-{_READ}")


def _continue_there(flow: Flow, target: Admin, run: str, remote: TopicPartition) -> None:
    """Read the rest of the copy on the target, write there, and read a part of it."""
    first = _end(target, (CANARY, 0))
    _write(flow.target, [f"{run}-there-{number}" for number in range(_RECORDS)])
    _commit(flow.target, {remote: _end(target, remote), (CANARY, 0): first + _READ})


def _create(flow: Flow, admin: Admin, topic: str) -> None:
    if topic not in partition_counts(admin.metadata()):
        wanted = CreateTopic(
            topic=topic,
            partitions=1,
            replication_factor=flow.replication_factor,
            config=_CONFIG,
            reason="of a drill",
        )
        error, _ = create(admin, [wanted])[topic]
        if error is not None:
            raise ClusterError(f"creating {topic} failed: {error}", cluster=admin.alias)
    else:
        cluster = flow.source if admin.alias == flow.source.alias else flow.target
        ConfigFence(cluster, admin).remove({"before": {topic: None}})  # of a drill that was killed
    until = time.monotonic() + _VISIBLE_S
    while topic not in partition_counts(admin.metadata()):
        if time.monotonic() > until:
            raise StepFailed(f"{topic} is not visible on {admin.alias} after {_VISIBLE_S:.0f} s")
        time.sleep(0.1)


def _write(cluster: Cluster, values: Iterable[str]) -> None:
    producer = TopicProducer(cluster, creator="the next drill", gives_up_after_s=_FLUSH_S, enable_idempotence=True)
    for value in values:
        producer.send(CANARY, value=value.encode(), partition=0)
    producer.confirm(CANARY, _FLUSH_S + 1)


def _end(admin: Admin, place: TopicPartition) -> int:
    ends, missing = high_watermarks(admin, [place])
    if missing:
        raise StepFailed(f"the end of {place[0]} on {admin.alias} is not known: {missing[place]}")
    return ends[place]


def _commit(cluster: Cluster, offsets: dict[TopicPartition, int]) -> None:
    wanted = {CANARY: {place: Committed(offset, "") for place, offset in offsets.items()}}
    with closing(GroupOffsets(cluster)) as groups:
        outcome: Any = groups.commit(wanted)[CANARY]
    refused = outcome if isinstance(outcome, str) else next((one for one in outcome.values() if one), None)
    if refused:
        raise ClusterError(f"group {CANARY}: {refused}", cluster=cluster.alias)


def _offset(cluster: Cluster, place: TopicPartition) -> int:
    with closing(GroupOffsets(cluster)) as groups:
        found = dict(groups.committed([CANARY]))[CANARY]
    at = None if isinstance(found, str) else found.get(place)
    if at is None:
        raise StepFailed(f"the group has no offset in {place[0]} on {cluster.alias}")
    return at.offset


def _expect(cluster: Cluster, admin: Admin, place: TopicPartition, value: str) -> None:
    """Raise `StepFailed` unless the group's next record in a partition has this value."""
    wanted = Wanted(place, _offset(cluster, place), 1)
    records = read_slices(cluster, admin, [wanted])[wanted].records
    if not records or records[0].value != content_hash(value):
        where = f"{place[0]} on {cluster.alias}"
        raise StepFailed(f"the record at the group's offset {wanted.first} in {where} is not {value}")


def _expect_end(cluster: Cluster, admin: Admin, place: TopicPartition) -> None:
    offset, end = _offset(cluster, place), _end(admin, place)
    if offset != end:
        raise StepFailed(f"the group's offset in {place[0]} on {cluster.alias} is {offset}, not its end {end}")
