"""A translation is right if the next records of both sides are the same, and no offset arithmetic can hide an error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mirrorless.operations.drill.positions import MARGIN, CopyFacts, LogSlice, Outcome, Position, compare, read_from
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement
from mirrorless.verify.alignment import Print

if TYPE_CHECKING:
    from collections.abc import Mapping

COPY = CopyFacts(announced={}, copied_to=100)


def record(offset: int, number: int, *, timestamp: int = 0) -> Print:
    return Print(offset, b"%d" % number, b"value %d" % number, None, timestamp)


def log(records: Mapping[int, int], first: int, most: int, *, start: int = 0) -> LogSlice:
    """What is read of a log, given as offsets with numbers of records, from `first` on."""
    there = [record(offset, number) for offset, number in sorted(records.items()) if offset >= max(first, start)]
    return LogSlice(start=start, end=max(records, default=-1) + 1, records=there[:most])


DENSE = {offset: offset for offset in range(100)}


def outcome(
    at: int,
    there: int,
    *,
    source: Mapping[int, int] = DENSE,
    target: Mapping[int, int] = DENSE,
    copy: CopyFacts = COPY,
    read_again: int = 0,
) -> tuple[Outcome, str]:
    position = Position(
        place=("orders", 0), remote_place=("a.orders", 0), source_offset=at, target_offset=there, read_again=read_again
    )
    ours = log(source, at, MARGIN)
    later = log(source, read_from(position, copy.announced), MARGIN)
    joined = {one.offset: one for one in (*ours.records, *later.records)}
    found = compare(
        position,
        replace(ours, records=[joined[offset] for offset in sorted(joined)]),
        log(target, there - MARGIN, 2 * MARGIN + read_again),
        copy,
    )
    return found.outcome, found.text


@pytest.mark.parametrize("at", [0, 1, 50, 99])
def test_the_same_record_is_right(at: int) -> None:
    assert outcome(at, at)[0] is Outcome.SAME


@pytest.mark.parametrize("at", [1, 50, 98, 99])
@pytest.mark.parametrize("by", [1, 3])
def test_a_translation_that_is_too_early_is_found(at: int, by: int) -> None:
    if at >= by:
        found, text = outcome(at, at - by)
        assert (found, text) == (Outcome.TOO_EARLY, f"{by} record{'s'[: by - 1]} too early: would be read twice")


@pytest.mark.parametrize("at", [0, 50, 96])
@pytest.mark.parametrize("by", [1, 3])
def test_a_translation_that_is_too_late_is_found(at: int, by: int) -> None:
    assert outcome(at, at + by)[0] is Outcome.TOO_LATE


def test_the_end_of_both_logs_is_right_and_one_before_or_after_it_is_wrong() -> None:
    assert outcome(100, 100)[0] is Outcome.AT_END
    assert outcome(100, 99)[0] is Outcome.TOO_EARLY
    assert outcome(100, 101)[0] is Outcome.TOO_LATE
    assert outcome(99, 100) == (
        Outcome.TOO_LATE,
        "no record follows on the target, although the source's record 99 was copied",
    )


def test_a_record_that_is_not_copied_yet_is_right_at_the_targets_end() -> None:
    target = {offset: offset for offset in range(90)}
    copy = replace(COPY, copied_to=90)
    assert outcome(95, 90, target=target, copy=copy)[0] is Outcome.NOT_COPIED
    assert outcome(95, 89, target=target, copy=copy)[0] is Outcome.DIFFERENT


def test_holes_of_the_source_make_no_difference() -> None:
    source = {offset: offset // 3 for offset in range(100) if offset % 3 == 0}  # markers between
    for at in range(95):
        assert outcome(at, -(-at // 3), source=source)[0] is Outcome.SAME
    assert outcome(31, 10, source=source)[0] is Outcome.TOO_EARLY


def test_the_end_after_a_hole_is_the_end() -> None:
    source = {offset: offset for offset in range(50)}
    target = {offset: offset for offset in range(50)}
    position = Position(place=("orders", 0), remote_place=("a.orders", 0), source_offset=51, target_offset=50)
    empty = LogSlice(start=0, end=52)  # the source ends with a marker
    assert compare(position, empty, log(target, 45, 10), COPY).outcome is Outcome.AT_END
    early = replace(position, target_offset=49)
    assert compare(early, empty, log(target, 44, 10), COPY).outcome is Outcome.TOO_EARLY
    assert len(source) == 50


def left_out(offset: int, *, start: int | None = None, kind: EpochKind = EpochKind.LEFT_OUT) -> dict[int, Announcement]:
    """An epoch after a record that the copy left out."""
    one = Announcement(epoch=1, start=offset + 1 if start is None else start, downstream=offset, reason="", kind=kind)
    return {1: one}


def test_a_record_that_the_copy_left_out_is_skipped_on_the_source_too() -> None:
    target = {offset: offset if offset < 40 else offset + 1 for offset in range(99)}
    copy = replace(COPY, announced=left_out(40))
    assert outcome(40, 40, target=target, copy=copy)[0] is Outcome.SKIPPED_BY_POLICY
    assert outcome(39, 39, target=target, copy=copy)[0] is Outcome.SKIPPED_BY_POLICY
    assert outcome(41, 40, target=target, copy=copy)[0] is Outcome.SAME
    assert outcome(30, 30, target=target, copy=copy)[0] is Outcome.SAME
    assert outcome(41, 41, target=target, copy=copy)[0] is Outcome.TOO_LATE
    # Without the announcement the record is missing.
    assert outcome(39, 39, target=target)[0] is Outcome.DIFFERENT


@pytest.mark.parametrize("kind", [EpochKind.RESET, EpochKind.FIRST_COPY, EpochKind.GAP])
def test_a_long_part_that_the_copy_skipped_is_skipped(kind: EpochKind) -> None:
    target = {offset: offset + 60 for offset in range(40)}
    announced = {0: Announcement(epoch=0, start=60, downstream=0, reason="", kind=kind)}
    copy = replace(COPY, announced=announced)
    assert outcome(10, 0, target=target, copy=copy) == (
        Outcome.SKIPPED_BY_POLICY,
        "the copy skipped records before the source's 60 on purpose",
    )
    assert outcome(60, 0, target=target, copy=copy)[0] is Outcome.SAME
    assert outcome(61, 0, target=target, copy=copy)[0] is Outcome.TOO_EARLY


def test_an_epoch_that_skips_nothing_excuses_nothing() -> None:
    announced = left_out(40, start=45, kind=EpochKind.TARGET_LOST)
    assert outcome(40, 39, copy=replace(COPY, announced=announced))[0] is Outcome.TOO_EARLY


def test_an_inexact_translation_may_be_early_but_not_late() -> None:
    assert outcome(50, 47, read_again=10) == (Outcome.READ_AGAIN, "3 records would be read again")
    assert outcome(50, 50, read_again=10)[0] is Outcome.SAME
    assert outcome(50, 51, read_again=10)[0] is Outcome.TOO_LATE
    assert outcome(100, 95, read_again=10) == (Outcome.READ_AGAIN, "5 records would be read again")


def test_an_inexact_translation_of_a_record_that_is_not_copied_reads_up_to_the_end_again() -> None:
    target = {offset: offset for offset in range(60)}
    found = outcome(70, 55, target=target, copy=replace(COPY, copied_to=60), read_again=10)
    assert found == (Outcome.READ_AGAIN, "up to 5 records would be read again")


def test_the_record_of_an_inexact_translation_may_be_too_far_to_be_found() -> None:
    position = Position(
        place=("orders", 0), remote_place=("a.orders", 0), source_offset=90, target_offset=10, read_again=80
    )
    found = compare(position, log(DENSE, 90, MARGIN), log(DENSE, 5, 20), COPY)
    assert found.outcome is Outcome.UNREAD


def test_another_record_is_named_with_its_fields() -> None:
    target = DENSE | {50: 1_000}
    assert outcome(50, 50, target=target) == (
        Outcome.DIFFERENT,
        "the source's record 50 and the target's 50 differ in key, value",
    )
    assert outcome(48, 48, target=target)[1].startswith("the source's record 50 ")


def test_timestamps_and_headers_count() -> None:
    position = Position(place=("t", 0), remote_place=("a.t", 0), source_offset=0, target_offset=0)
    ours = LogSlice(start=0, end=1, records=[record(0, 1)])
    late = LogSlice(start=0, end=1, records=[record(0, 1, timestamp=5)])
    marked = LogSlice(start=0, end=1, records=[record(0, 1)._replace(headers=b"h")])
    assert compare(position, ours, late, COPY).text.endswith("differ in timestamp")
    assert compare(position, ours, marked, COPY).text.endswith("differ in headers")


def test_a_copied_record_that_the_target_lost_is_missing() -> None:
    target = {offset: offset for offset in range(52)}
    assert outcome(50, 50, target=target) == (
        Outcome.MISSING,
        "the target ends at 52, without the copied source record 52",
    )


def test_compaction_excuses_what_it_may_explain() -> None:
    copy = replace(COPY, compacted=True)
    cleaned = {offset: number for offset, number in DENSE.items() if offset not in (50, 51)}
    assert outcome(50, 50, source=cleaned, copy=copy)[0] is Outcome.COMPACTED
    assert outcome(50, 50, target=cleaned, copy=copy)[0] is Outcome.COMPACTED
    assert outcome(10, 10, target=cleaned, copy=copy)[0] is Outcome.SAME
    assert outcome(100, 101, copy=copy)[0] is Outcome.TOO_LATE


def test_what_retention_deleted_is_not_compared() -> None:
    position = Position(place=("t", 0), remote_place=("a.t", 0), source_offset=10, target_offset=10)
    whole, cut = log(DENSE, 10, 5), log(DENSE, 20, 5, start=20)
    assert compare(position, cut, whole, COPY).outcome is Outcome.EXPIRED
    assert compare(position, whole, cut, COPY).outcome is Outcome.EXPIRED
    assert compare(replace(position, expired=True), whole, whole, COPY).outcome is Outcome.EXPIRED
    assert compare(replace(position, source_offset=200), whole, whole, COPY).outcome is Outcome.BEYOND


def test_what_cannot_be_read_is_said() -> None:
    position = Position(place=("t", 0), remote_place=("a.t", 0), source_offset=0, target_offset=0)
    refused = LogSlice(start=0, end=0, trouble="refused")
    assert compare(position, log(DENSE, 0, 5), refused, COPY).text == "refused"
    assert compare(position, refused, log(DENSE, 0, 5), COPY).outcome is Outcome.UNREAD


def test_records_that_were_copied_since_excuse_a_translation_of_one_that_was_not() -> None:
    position = Position(
        place=("orders", 0), remote_place=("a.orders", 0), source_offset=90, target_offset=80, not_copied=True
    )
    found = compare(position, log(DENSE, 90, MARGIN), log(DENSE, 75, 2 * MARGIN), COPY)
    assert found.outcome is Outcome.NOT_COPIED
    assert found.text == "the next record, 90 on the source, was not copied when it was translated"
    right = replace(position, target_offset=90)
    assert compare(right, log(DENSE, 90, MARGIN), log(DENSE, 85, 2 * MARGIN), COPY).outcome is Outcome.SAME
    exact = replace(position, not_copied=False)
    assert compare(exact, log(DENSE, 90, MARGIN), log(DENSE, 75, 2 * MARGIN), COPY).outcome is Outcome.DIFFERENT
