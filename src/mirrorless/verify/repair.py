"""Repair plan: what would repair each difference. Writes nothing: a log cannot be changed in the middle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from mirrorless.verify.findings import OF_RECORDS, DifferenceKind, Method

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.verify.findings import Difference, PartitionResult, VerificationResult

_APPLY: Final = frozenset(
    {DifferenceKind.TOPIC, DifferenceKind.PARTITIONS, DifferenceKind.CONFIG, DifferenceKind.ACL, DifferenceKind.KIND}
)


@dataclass(frozen=True, slots=True)
class Step:
    """One action for `place`, and the difference that it repairs."""

    place: str
    repairs: str
    action: str


def repair_plan(verdict: VerificationResult, *, file: str) -> list[Step]:
    """Return for each difference what would repair it; `file` is the configuration to name in commands."""
    steps: list[Step] = []
    latest = {(one.topic, one.partition) for one in verdict.partitions if one.method is Method.LATEST}
    records = [one for one in verdict.differences if one.kind in OF_RECORDS]
    for _, some in groupby(sorted(records, key=lambda one: one.topic), key=lambda one: one.topic):
        keyed: list[Difference] = []
        rest: list[Difference] = []
        for one in some:
            # A lost end is copied again, whether the topic is compacted or not; other keys need only their record.
            by_key = one.kind is not DifferenceKind.SHORT and (one.topic, one.partition) in latest
            (keyed if by_key else rest).append(one)
        steps += [*_latest(keyed), *_again(verdict.flow, rest, file)]
    for one in verdict.differences:
        if one.kind in _APPLY:
            steps.append(Step(one.place, f"{one.kind} {one.what}".strip(), f"mirrorless apply {file}"))
        elif one.kind is DifferenceKind.GROUP_OFFSET:
            steps.append(Step(one.place, f"group {one.what}", _group(one)))
    steps += _retention(verdict.partitions)
    return steps


def _again(flow: str, some: list[Difference], file: str) -> Iterator[Step]:
    """Yield how to copy a range again: into a new topic, or appended if only the end of the log is lost.

    If one partition needs the new topic, it has the lost ends of the other partitions too.
    """
    fresh = {one.kind for one in some} != {DifferenceKind.SHORT}
    for _, of_one in groupby(sorted(some, key=lambda one: one.partition or 0), key=lambda one: one.partition):
        every = list(of_one)
        first = every[0]
        kinds = ", ".join(sorted({one.kind for one in every}))
        yield Step(first.place, kinds, _into_fresh(flow, every, file) if fresh else _behind(flow, first, file))


def _into_fresh(flow: str, every: list[Difference], file: str) -> str:
    first = every[0]
    offsets = [one.upstream for one in every if one.upstream is not None]
    span = f" from source offset {min(offsets)} on" if offsets else ""
    return (
        f"copy {first.place} again{span} into a new topic: delete {first.remote_topic}, let discovery recreate it, "
        f"run {_reset(flow, first, file)} --offset earliest"
    )


def _behind(flow: str, short: Difference, file: str) -> str:
    """Reset this partition only: a reset of the others would repeat or skip records."""
    if short.upstream is None:
        last = f"after the last record of {short.remote_topic}-{short.partition}, at {(short.downstream or 0) - 1}"
        return (
            f"find out which record of {short.place} comes {last if short.downstream else 'first'}, then reset the "
            "partition to its offset, which is not recorded anywhere"
        )
    command = f"{_reset(flow, short, file)} --partition {short.partition} --offset {short.upstream}"
    return f"copy again from source offset {short.upstream} on: {command}"


def _reset(flow: str, one: Difference, file: str) -> str:
    return f"mirrorless offsets reset {file} --flow '{flow}' --topic {one.topic}"


def _latest(some: Iterable[Difference]) -> Iterator[Step]:
    for one in some:
        what = f"{one.kind} at {'source' if one.upstream is not None else 'target'} offset "
        at = one.upstream if one.upstream is not None else one.downstream
        action = (
            f"produce the source record at {one.upstream} to {one.remote_topic} again"
            if one.upstream is not None
            else f"produce a tombstone for the key at target offset {one.downstream} to {one.remote_topic}"
        )
        yield Step(one.place, f"{what}{at}", action)


def _group(one: Difference) -> str:
    where = f"--group {one.what} --topic {one.remote_topic}:{one.partition} --to-offset {one.translated}"
    return f"stop the group on the target, then kafka-consumer-groups --reset-offsets {where} --execute"


def _retention(partitions: Iterable[PartitionResult]) -> Iterator[Step]:
    for one in partitions:
        if one.expired_on_target:
            yield Step(
                f"{one.topic}-{one.partition}",
                "records deleted by retention (no difference)",
                f"raise retention.ms and retention.bytes of {one.remote_topic} to keep as much on the target",
            )
