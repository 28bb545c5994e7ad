"""Computes the result of one partition from its counts and differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mirrorless.verify.findings import Difference, DifferenceKind, Method, PartitionResult
from mirrorless.verify.latest_limits import Latest, cut_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.verify.drill_down import RecordReader
    from mirrorless.verify.pairing import Paired
    from mirrorless.verify.ranges import OffsetRange
    from mirrorless.verify.window import Window


@dataclass(slots=True)
class ComparisonState:
    """A partition during the comparison; counts as in `PartitionResult`."""

    paired: Paired
    differences: list[Difference]
    windows: int = 0
    different: int = 0
    records: int = 0
    size_bytes: int = 0
    not_copied: int = 0
    more: bool = False


def touched(windows: Sequence[Window], differences: Sequence[Difference]) -> int:
    """How many windows contain a difference; windows after a missing record differ only because they are shifted."""
    if not differences:
        return 0
    return max(1, sum(any(_lies_in(one, window) for one in differences) for window in windows))


def _lies_in(one: Difference, window: Window) -> bool:
    upstream = one.upstream is not None
    offset = one.upstream if upstream else one.downstream
    first = window.first_upstream if upstream else window.first_downstream
    last = window.last_upstream if upstream else window.last_downstream
    return offset is not None and first is not None and last is not None and first <= offset <= last


def shortage(one: Paired) -> Iterator[Difference]:
    """Copied records that the target lacks."""
    if one.lost is not None:
        yield Difference(
            kind=DifferenceKind.SHORT,
            topic=one.place[0],
            remote_topic=one.remote_topic,
            partition=one.place[1],
            upstream=one.lost[0],
            downstream=one.lost[1],
            records=one.owed,
        )


def _of(one: Paired, method: Method) -> PartitionResult:
    return PartitionResult(
        topic=one.place[0],
        partition=one.place[1],
        remote_topic=one.remote_topic,
        method=method,
        expired_on_target=one.expired_on_target,
        notes=tuple(one.notes),
    )


def result(state: ComparisonState) -> PartitionResult:
    """The result of a partition that was compared by windows."""
    one = state.paired
    not_copied = max(0, state.not_copied - one.owed) if one.lost is not None else state.not_copied
    first, last = (one.stretches[0], one.stretches[-1]) if one.stretches else (None, None)
    return replace(
        _of(one, Method.WINDOWS),
        records=state.records,
        size_bytes=state.size_bytes,
        windows=state.windows,
        different=state.different,
        not_copied=not_copied,
        first_upstream=None if first is None else first.first_upstream,
        end_upstream=None if last is None else last.end_upstream,
        first_downstream=None if first is None else first.first_downstream,
        end_downstream=None if last is None else last.end_downstream,
        more=state.more,
    )


def failed(one: Paired, trouble: str | None) -> PartitionResult:
    """The result of a partition that could not be compared."""
    return replace(_of(one, Method.NONE), trouble=trouble)


def unread_result(one: Paired) -> PartitionResult:
    """The result of a compacted partition of which nothing is known to be copied."""
    if one.target[0] == one.target[1]:
        return keyed_result(one, Latest())
    return failed(one, "it is not known how far the copy is")


def keyed_result(one: Paired, latest: Latest) -> PartitionResult:
    """The result of a compacted partition."""
    cut = cut_of(one)
    notes = list(one.notes)
    if latest.in_flight:
        notes.append(f"{latest.in_flight} keys with newer records after the cut are not compared")
    if latest.earlier:
        notes.append(f"{latest.earlier} keys whose last record is older than the copy are not compared")
    if latest.by_retention:
        notes.append(f"{latest.by_retention} keys were deleted by retention on one side only")
    return replace(
        _of(one, Method.LATEST),
        records=latest.keys,
        size_bytes=latest.size_bytes,
        windows=latest.keys,
        different=latest.different,
        not_copied=max(0, one.source[1] - cut.upstream),
        first_upstream=one.source[0],
        end_upstream=cut.upstream,
        first_downstream=one.target[0],
        end_downstream=cut.downstream,
        notes=tuple(notes),
        more=latest.different > len(latest.differences),
    )


def moved(
    stretch: OffsetRange, windows: Sequence[Window], *, source: RecordReader, target: RecordReader
) -> list[Difference]:
    """Return the difference of windows with as many records on both sides, at offsets that are not the same."""
    apart = [
        one
        for one in windows
        if one.records == one.remote_records
        and (one.first_upstream, one.last_upstream) != (one.first_downstream, one.last_downstream)
    ]
    if not apart or (first := apart[0].first_upstream) is None or (there := apart[0].first_downstream) is None:
        return []
    ours = source.read(stretch.topic, stretch.partition, first=first, end=stretch.end_upstream)
    theirs = target.read(stretch.remote_topic, stretch.partition, first=there, end=stretch.end_downstream)
    pairs = ((one.offset, other.offset) for one, other in zip(ours, theirs, strict=False))
    upstream, downstream = next((pair for pair in pairs if pair[0] != pair[1]), (first, there))
    return [
        Difference(
            kind=DifferenceKind.MOVED,
            topic=stretch.topic,
            remote_topic=stretch.remote_topic,
            partition=stretch.partition,
            upstream=upstream,
            downstream=downstream,
        )
    ]
