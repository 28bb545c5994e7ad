"""Judges the facts of a drill: one function a check, facts in, result out. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.acls import NoAcls
from mirrorless.clusters.target_state import TargetState
from mirrorless.doctor.findings import Status
from mirrorless.metadata.kinds import KINDS
from mirrorless.operations.drill.group_checks import GROUP_CHECKS
from mirrorless.operations.drill.positions import NOT_COMPARABLE, WRONG, Outcome
from mirrorless.operations.drill.principals import AclSyncRules, WhyMissing, missing_acls, missing_rights
from mirrorless.operations.results import CheckResult, UnreadPart, count_of, not_checked
from mirrorless.verify.findings import DifferenceKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.metadata.kind import Kind
    from mirrorless.operations.drill.facts import DrillFacts
    from mirrorless.operations.drill.positions import Compared

RPO_KEY: Final = "mirrorless.rpo.seconds"
RTO_KEY: Final = "mirrorless.rto.seconds"
_OWN_ORDER: Final = (
    "not compared: with mirrorless.both.directions=skip each cluster has an order of its own; `mirrorless verify` "
    "compares the records of each origin"
)


def check_all(facts: DrillFacts) -> list[CheckResult]:
    """Return the results of all checks, in the order of the report."""
    return [check(facts) for check in CHECKS]


def replication(facts: DrillFacts) -> CheckResult:
    """Whether the flow is copied: its state, halted partitions, recreated topics."""
    check, status = "replication", facts.status
    if isinstance(status, UnreadPart):
        return not_checked(check, status)
    halted = [
        f"{topic}-{partition} is halted at offset {one.offset}: {one.reason}"
        for (topic, partition), one in sorted(status.halted.items())
    ]
    if halted or status.created_again or status.problems:
        found = [
            *([count_of(len(halted), "halted partition")] if halted else []),
            *([count_of(len(status.created_again), "recreated topic")] if status.created_again else []),
            *([count_of(len(status.problems), "problem")] if status.problems else []),
        ]
        return CheckResult(
            check=check,
            status=Status.FAILED,
            text=", ".join(found),
            lines=(*halted, *status.created_again, *status.problems),
            fix="see `mirrorless status`, and Operate for each state",
        )
    if status.unknown:
        lines = tuple(f"{topic}-{partition}: {reason}" for (topic, partition), reason in status.unknown.items())
        text = f"the end of {count_of(len(lines), 'partition')} is unknown"
        return CheckResult(check=check, status=Status.NOT_CHECKED, text=text, lines=lines)
    copied = f"{count_of(status.partitions, 'partition')} of {count_of(status.topics, 'topic')}"
    if status.state is not TargetState.STARTED:
        text = f"the flow is {status.state.lower()}; {copied}, none halted"
        fix = "run `mirrorless resume`"
        return CheckResult(check=check, status=Status.WARNING, text=text, fix=fix)
    if not any(mark.is_ready for mark in status.runs):
        text = f"nothing copies the flow at the moment; {copied}, none halted"
        return CheckResult(check=check, status=Status.WARNING, text=text, fix="run `mirrorless run`, or the deployment")
    return CheckResult(check=check, status=Status.OK, text=f"{copied}, none halted")


def lag(facts: DrillFacts) -> CheckResult:
    """The current RPO: what would be lost if the source was lost now, against the limit."""
    check, backlog, limit = "lag", facts.backlog, facts.flow.rpo_seconds
    if isinstance(backlog, UnreadPart):
        return not_checked(check, backlog)
    lagging = sorted(
        (place for place, one in backlog.partitions.items() if one.records),
        key=lambda place: (backlog.partitions[place].oldest_ms or 0, place),
    )
    lines = [
        f"{topic}-{partition}: {count_of(backlog.partitions[topic, partition].records, 'record')} not copied"
        for topic, partition in lagging
    ]
    lines += backlog.troubles
    records = f"{'' if backlog.exact else 'up to '}{count_of(backlog.records, 'record')} not copied"
    worst = backlog.worst
    if worst is None:
        unknown = bool(backlog.records) and limit is not None
        text = f"{records}, of unknown age" if backlog.records else "everything is copied"
        if backlog.troubles and not backlog.records:
            text = "what could be read is copied"
        status = Status.NOT_CHECKED if unknown else Status.WARNING if backlog.troubles else Status.OK
        return CheckResult(check=check, status=status, text=text, lines=tuple(lines))
    (topic, partition), seconds = worst
    text = f"{records}, the oldest {seconds:,.1f} s ago in {topic}-{partition}"
    if limit is None:
        return CheckResult(check=check, status=Status.OK, text=f"{text}; {RPO_KEY} is not set", lines=tuple(lines))
    if seconds > limit:
        return CheckResult(
            check=check, status=Status.FAILED, text=f"{text}; the limit is {limit:g} s ({RPO_KEY})", lines=tuple(lines)
        )
    return CheckResult(check=check, status=Status.OK, text=f"{text}; the limit is {limit:g} s", lines=tuple(lines))


def heartbeats(facts: DrillFacts) -> CheckResult:
    """The age of the newest replicated heartbeat, against the same limit."""
    check, beat_ms, limit = "heartbeats", facts.heartbeat_ms, facts.flow.rpo_seconds
    if not facts.flow.heartbeats_replication_enabled:
        text = "heartbeats.replication.enabled is false"
        return CheckResult(check=check, status=Status.OK, text=f"not applicable: {text}")
    if isinstance(beat_ms, UnreadPart):
        return not_checked(check, beat_ms)
    if beat_ms is None:
        text = f"no heartbeat of {facts.flow.source.alias} was replicated yet"
        fix = f"emit heartbeats to {facts.flow.source.alias}: emit.heartbeats.enabled of the opposite direction"
        return CheckResult(check=check, status=Status.WARNING, text=text, fix=fix)
    age_s = max(0.0, (facts.heartbeat_read_ms - beat_ms) / 1000)
    text = f"the newest is {age_s:,.1f} s old"
    if limit is not None and age_s > limit:
        return CheckResult(check=check, status=Status.FAILED, text=f"{text}; the limit is {limit:g} s ({RPO_KEY})")
    return CheckResult(check=check, status=Status.OK, text=text)


def recovery_time(facts: DrillFacts) -> CheckResult:
    """The estimated RTO against its limit."""
    check, limit = "recovery time", facts.flow.rto_seconds
    seconds = sum(one.seconds for one in facts.steps if one.in_rto)
    text = f"reading for a failover took {seconds:,.1f} s"
    if limit is None:
        return CheckResult(check=check, status=Status.OK, text=f"{text}; {RTO_KEY} is not set")
    status = Status.FAILED if seconds > limit else Status.OK
    return CheckResult(check=check, status=status, text=f"{text}; the limit is {limit:g} s ({RTO_KEY})")


def topics(facts: DrillFacts) -> CheckResult:
    """Whether each replicated topic has a remote topic with as many partitions."""
    check = "topics and partitions"
    missing: list[str] = []
    more: list[str] = []
    for topic, (count, there) in sorted(facts.counts.items()):
        remote = facts.remote[topic]
        if there is None:
            missing.append(f"{topic}: {remote} does not exist on {facts.flow.target.alias}")
        elif there < count:
            missing.append(f"{topic} has {count_of(count, 'partition')}, {remote} has {there}")
        elif there > count:
            more.append(
                f"{topic} has {count_of(count, 'partition')}, {remote} has {there}: keys map to other partitions"
            )
    if missing:
        text = f"{count_of(len(missing), 'topic')} with fewer partitions on the target, or none"
        return CheckResult(
            check=check, status=Status.FAILED, text=text, lines=(*missing, *more), fix="run `mirrorless apply`"
        )
    if more:
        text = f"{count_of(len(more), 'topic')} with more partitions on the target"
        return CheckResult(check=check, status=Status.WARNING, text=text, lines=tuple(more))
    if not facts.counts:
        return CheckResult(check=check, status=Status.WARNING, text="no visible topic is replicated")
    return CheckResult(check=check, status=Status.OK, text=f"{count_of(len(facts.counts), 'topic')}, all there")


def configs(facts: DrillFacts) -> CheckResult:
    """Whether configs of remote topics follow their source topics."""
    return _metadata(facts, "configs", DifferenceKind.CONFIG, enabled=facts.flow.sync_topic_configs_enabled)


def acls(facts: DrillFacts) -> CheckResult:
    """Whether the ACLs that topic ACL sync derives from source topics exist on remote topics."""
    if not isinstance(facts.acls, UnreadPart):
        for one in (facts.acls.source, facts.acls.target):
            if isinstance(one, NoAcls) and not one.lacks_right:
                return CheckResult(check="topic ACLs", status=Status.OK, text=f"not applicable: {one.reason}")
    return _metadata(facts, "topic ACLs", DifferenceKind.ACL, enabled=facts.flow.sync_topic_acls_enabled)


def _metadata(facts: DrillFacts, check: str, kind: DifferenceKind, *, enabled: bool) -> CheckResult:
    metadata = facts.metadata
    if isinstance(metadata, UnreadPart):
        return not_checked(check, metadata)
    if not enabled:
        return CheckResult(check=check, status=Status.OK, text="not compared: the flow does not sync them")
    found = [f"{one.place}: {one.text}" for one in metadata.differences if one.kind is kind]
    # Problems concern whole topics, or ACLs that may not be read: with either, equality is not proven.
    if found:
        return CheckResult(
            check=check,
            status=Status.FAILED,
            text=count_of(len(found), "difference"),
            lines=(*found, *metadata.troubles),
            fix="run `mirrorless apply`, or wait for the next sync",
        )
    if metadata.troubles:
        text = f"{count_of(len(metadata.troubles), 'topic')} could not be compared"
        return CheckResult(check=check, status=Status.NOT_CHECKED, text=text, lines=tuple(metadata.troubles))
    return CheckResult(check=check, status=Status.OK, text="the same, apart from what is not replicated")


def principals(facts: DrillFacts) -> CheckResult:
    """Whether every principal with rights on source topics has them on the remote topics."""
    check, acls = "rights of principals", facts.acls
    if isinstance(acls, UnreadPart):
        return not_checked(check, acls)
    for one in (acls.source, acls.target):
        if isinstance(one, NoAcls) and one.lacks_right:
            return not_checked(check, UnreadPart(one.reason))
    if isinstance(acls.source, NoAcls):
        text = f"not applicable: {acls.source.reason}"
        if isinstance(acls.target, NoAcls):
            return CheckResult(check=check, status=Status.OK, text=text)
        more = f"{facts.flow.target.alias} has an authorizer, so applications may lack rights there"
        return CheckResult(check=check, status=Status.WARNING, text=f"{text}; {more}")
    if isinstance(acls.target, NoAcls):
        return CheckResult(check=check, status=Status.OK, text=f"not applicable: {acls.target.reason}")
    rules = AclSyncRules(enabled=facts.flow.sync_topic_acls_enabled, patterns=facts.flow.acls_patterns)
    number, lacking = missing_rights(acls.source, acls.target, remote=facts.remote, rules=rules)
    faults = [one.text for one in lacking if one.why is not WhyMissing.BY_SWITCHOVER]
    later = [one.text for one in lacking if one.why is WhyMissing.BY_SWITCHOVER]
    for kind, (here, there) in (("group", acls.groups), ("transactional id", acls.transactional_ids)):
        later += [f"{kind}: {one}: {WhyMissing.BY_SWITCHOVER}" for one in missing_acls(here, there)]
    text = f"{count_of(number, 'principal')} with rights on source topics"
    added = f"{count_of(len(later), 'right')} to be added by a switchover" if later else ""
    if faults:
        text = f"{text}; {count_of(len(faults), 'right')} missing on the target{f', {added}' if added else ''}"
        fix = f"add these ACLs on {facts.flow.target.alias}; `mirrorless apply` adds those that are only not synced yet"
        return CheckResult(check=check, status=Status.FAILED, text=text, lines=(*faults, *later), fix=fix)
    text = f"{text}; {added}" if added else f"{text}, the same on the target"
    return CheckResult(check=check, status=Status.OK, text=text, lines=tuple(later))


def positions(facts: DrillFacts) -> CheckResult:
    """Whether groups would read the same next record on the target as on the source."""
    check, records = "positions of groups", facts.records
    if isinstance(records, UnreadPart):
        return not_checked(check, records)
    if records.is_own_order:
        return CheckResult(check=check, status=Status.OK, text=_OWN_ORDER)
    if not records.positions_of:
        return CheckResult(check=check, status=Status.OK, text="no group has an offset to compare")
    of = "" if len(records.positions) == records.positions_of else f" of {records.positions_of:,}, chosen at random"
    done = f"{count_of(len(records.positions), 'position')}{of}"
    lines = [f"{', '.join(one.position.who)}: {one.position.text}: {one.text}" for one in _ordered(records.positions)]
    return _compared(check, records.positions, done, lines)


def windows(facts: DrillFacts) -> CheckResult:
    """Whether sampled records are the same on both sides."""
    check, records = "records", facts.records
    if isinstance(records, UnreadPart):
        return not_checked(check, records)
    if records.is_own_order:
        return CheckResult(check=check, status=Status.OK, text=_OWN_ORDER)
    number = sum(one.records for one in records.windows)
    done = f"{count_of(number, 'record')} in {count_of(len(records.windows), 'window')} of "
    done += f"{records.partitions:,} of {count_of(records.partitions_of, 'partition')}"
    lines = [f"{one.position.text}: {one.text}" for one in _ordered(records.windows)]
    return _compared(check, records.windows, done, [*lines, *records.troubles])


def _compared(check: str, compared: Sequence[Compared], done: str, lines: Sequence[str]) -> CheckResult:
    """Judge comparisons; `done` is their number in words."""
    wrong = sum(one.outcome in WRONG for one in compared)
    unread = sum(one.outcome is Outcome.UNREAD for one in compared)
    unsure = sum(one.outcome in NOT_COMPARABLE for one in compared)
    skipped = sum(one.outcome is Outcome.SKIPPED_BY_POLICY for one in compared)
    waiting = sum(one.outcome is Outcome.NOT_COPIED for one in compared)
    again = sum(one.outcome is Outcome.READ_AGAIN for one in compared)
    also = [
        f"{number:,} {what}"
        for number, what in (
            (wrong, "wrong"),
            (unread, "not read"),
            (again, "inexact, records are read again"),
            (skipped, "after records that the copy skipped on purpose"),
            (waiting, "before records that are not copied yet"),
            (unsure, "not comparable (retention, compaction)"),
        )
        if number
    ]
    status = Status.FAILED if wrong else Status.NOT_CHECKED if unread else Status.WARNING if skipped else Status.OK
    fix = "find the differences with `mirrorless verify`" if wrong else None
    text = f"{done} compared{': ' + ', '.join(also) if also else ', all the same'}"
    return CheckResult(check=check, status=status, text=text, lines=tuple(lines), fix=fix)


_WITHOUT_A_LINE: Final = frozenset({Outcome.SAME, Outcome.AT_END, Outcome.NOT_COPIED})


def _ordered(compared: Sequence[Compared]) -> list[Compared]:
    """Return those that need a line, wrong ones first."""
    shown = [one for one in compared if one.outcome not in _WITHOUT_A_LINE]
    return sorted(shown, key=lambda one: one.outcome not in WRONG)


def _of_kind(kind: Kind) -> Callable[[DrillFacts], CheckResult]:
    """Return the check of one kind of what clusters have beside topics and groups."""

    def check(facts: DrillFacts) -> CheckResult:
        if isinstance(facts.metadata, UnreadPart):
            return not_checked(kind.name, facts.metadata)
        result = facts.metadata.kinds.get(kind.name)
        if result is None:
            return CheckResult(check=kind.name, status=Status.OK, text="not compared: the flow waits for its turn")
        if result.unread is not None:
            return not_checked(kind.name, UnreadPart(result.unread))
        if result.absent is not None:
            status = Status.WARNING if result.absent.lacks_right else Status.OK
            what = "not compared" if result.absent.lacks_right else "not applicable"
            return CheckResult(check=kind.name, status=status, text=f"{what}: {result.absent.reason}")
        if not result.differences:
            return CheckResult(check=kind.name, status=Status.OK, text="the target has what the source has")
        missing = [f"{one.text} ({one.reason})" for one in result.differences]
        is_late = any(one.change is not None for one in result.differences)
        return CheckResult(
            check=kind.name,
            status=Status.FAILED if is_late else Status.WARNING,
            text=count_of(len(missing), "difference"),
            lines=tuple(missing),
            fix="run `mirrorless apply`, or wait for the next sync" if is_late else None,
        )

    return check


CHECKS: Final[tuple[Callable[[DrillFacts], CheckResult], ...]] = (
    replication,
    lag,
    heartbeats,
    recovery_time,
    *GROUP_CHECKS,
    positions,
    windows,
    topics,
    configs,
    acls,
    principals,
    *map(_of_kind, KINDS),
)
