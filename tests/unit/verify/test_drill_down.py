"""From windows that differ to records, and back to windows where both sides go together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.verify.alignment import Print
from mirrorless.verify.drill_down import DrillDown, narrow
from mirrorless.verify.findings import DifferenceKind
from mirrorless.verify.ranges import OffsetRange
from mirrorless.verify.results import touched
from mirrorless.verify.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SIZE = 10


class Log:
    """Records by their names, at offsets from `first` on; counts what is read."""

    def __init__(self, names: Sequence[object]) -> None:
        self.names = names
        self.read_records = 0

    def read(self, topic: str, partition: int, *, first: int, end: int) -> Iterator[Print]:  # noqa: ARG002
        for offset in range(first, end):
            self.read_records += 1
            yield Print(offset, None, str(self.names[offset]).encode(), None, 0)


def windows(source: Sequence[object], target: Sequence[object]) -> list[Window]:
    found = []
    for number in range(max(-(-len(source) // SIZE), -(-len(target) // SIZE))):
        first = number * SIZE
        ours, theirs = source[first : first + SIZE], target[first : first + SIZE]
        found.append(
            Window(
                number,
                len(ours),
                len(theirs),
                hash(tuple(ours)) if ours else None,
                hash(tuple(theirs)) if theirs else None,
                first if ours else None,
                first + len(ours) - 1 if ours else None,
                first if theirs else None,
                first + len(theirs) - 1 if theirs else None,
                0,
            )
        )
    return found


def narrowed(
    source: Sequence[object], target: Sequence[object], *, closed: bool = True, read_records: int = 1_000
) -> tuple[DrillDown, Log]:
    stretch = OffsetRange(
        topic="t",
        partition=0,
        remote_topic="s.t",
        first_upstream=0,
        end_upstream=len(source),
        first_downstream=0,
        end_downstream=len(target),
        closed=closed,
    )
    log = Log(source)
    found = narrow(stretch, windows(source, target), source=log, target=Log(target), read_records=read_records)
    return found, log


def test_after_a_changed_record_windows_that_are_the_same_are_not_read() -> None:
    target: list[object] = list(range(1_000))
    target[505] = "other"
    found, log = narrowed(range(1_000), target)
    assert [(one.kind, one.upstream, one.downstream) for one in found.differences] == [
        (DifferenceKind.CHANGED, 505, 505)
    ]
    assert log.read_records < 200
    assert touched(windows(range(1_000), target), found.differences) == 1


def test_behind_a_missing_record_the_rest_goes_back_to_windows() -> None:
    target = [number for number in range(1_000) if number != 505]
    found, _ = narrowed(range(1_000), target, read_records=50)
    assert [(one.kind, one.upstream, one.records) for one in found.differences] == [(DifferenceKind.MISSING, 505, 1)]
    assert found.rest is not None
    assert found.rest.first_upstream == found.rest.first_downstream + 1
    assert touched(windows(range(1_000), target), found.differences) == 1


def test_what_the_source_has_beyond_an_open_stretch_is_not_copied_yet() -> None:
    found, log = narrowed(range(1_000), range(503), closed=False)
    assert found.differences == []
    assert found.not_copied == 497
    assert log.read_records < 200
    assert not found.unexplained


def test_what_the_source_has_beyond_a_closed_stretch_is_missing() -> None:
    found, _ = narrowed(range(1_000), range(500))
    assert [(one.kind, one.upstream, one.downstream, one.records) for one in found.differences] == [
        (DifferenceKind.MISSING, 500, 500, 500)
    ]


def test_what_the_target_has_beyond_is_extra() -> None:
    found, _ = narrowed(range(500), range(1_000), closed=False)
    assert sum(one.records or 0 for one in found.differences) == 500
    assert {one.kind for one in found.differences} == {DifferenceKind.EXTRA}


def test_windows_that_differ_for_no_reason_are_not_taken_for_the_same() -> None:
    same = windows(range(100), range(100))
    same[3] = same[3]._replace(digest=0, remote_digest=1)
    stretch = OffsetRange(
        topic="t",
        partition=0,
        remote_topic="s.t",
        first_upstream=0,
        end_upstream=100,
        first_downstream=0,
        end_downstream=100,
        closed=True,
    )
    assert narrow(stretch, same, source=Log(range(100)), target=Log(range(100))).unexplained
