"""What would mend each difference. Says it, and writes nothing: a log cannot be changed in its middle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from mirrorless.verify.findings import OF_RECORDS, DifferenceKind, Method

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.verify.findings import Difference, PartitionResult, VerificationResult

_APPLY: Final = frozenset({DifferenceKind.TOPIC, DifferenceKind.PARTITIONS, DifferenceKind.CONFIG, DifferenceKind.ACL})
_RETENTION: Final = "retention: the target begins"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do about `place`, and what it mends."""

    place: str
    mends: str
    action: str


def repair_plan(verdict: VerificationResult, *, file: str) -> list[Step]:
    """Say for each difference what would mend it; `file` is the configuration that commands would be given."""
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
    """A whole range has to be copied again: into a fresh topic, or behind what is there where only the end is lost.

    Where one partition needs the fresh topic, it has the lost ends of the others too.
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
    span = f"from upstream {min(offsets)} on " if offsets else ""
    return (
        f"copy {first.place} {span}again into a fresh topic: delete {first.remote_topic}, let discovery create it, "
        f"{_reset(flow, first, file)} --to earliest"
    )


def _behind(flow: str, short: Difference, file: str) -> str:
    """Only this partition begins anew: the others would get their records again, or go on behind some."""
    if short.upstream is None:
        last = f"behind the last record of {short.remote_topic}-{short.partition}, at {(short.downstream or 0) - 1}"
        return (
            f"find out first which record of {short.place} comes {last if short.downstream else 'first'}: "
            "nothing says its upstream offset, and from there the copy has to begin anew"
        )
    command = f"{_reset(flow, short, file)} --partition {short.partition} --to {short.upstream}"
    return f"copy from upstream {short.upstream} on again: {command}"


def _reset(flow: str, one: Difference, file: str) -> str:
    return f"mirrorless offsets reset {file} --flow '{flow}' --topic {one.topic}"


def _latest(some: Iterable[Difference]) -> Iterator[Step]:
    for one in some:
        what = f"{one.kind} at {'upstream' if one.upstream is not None else 'downstream'} "
        at = one.upstream if one.upstream is not None else one.downstream
        action = (
            f"produce the source's record at {one.upstream} to {one.remote_topic} once more"
            if one.upstream is not None
            else f"produce a tombstone for the key at downstream {one.downstream} to {one.remote_topic}"
        )
        yield Step(one.place, f"{what}{at}", action)


def _group(one: Difference) -> str:
    exact = (one.source_has or "").partition("exactly ")[2].partition(" ")[0]
    where = f"--group {one.what} --topic {one.remote_topic}:{one.partition} --to-offset {exact}"
    return f"stop the group on the target, then kafka-consumer-groups --reset-offsets {where} --execute"


def _retention(partitions: Iterable[PartitionResult]) -> Iterator[Step]:
    for one in partitions:
        if any(note.startswith(_RETENTION) for note in one.notes):
            yield Step(
                f"{one.topic}-{one.partition}",
                "a head that is gone (no difference)",
                f"raise retention.ms and retention.bytes of {one.remote_topic} if the target shall keep as much",
            )
