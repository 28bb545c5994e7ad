"""Batches keep their offsets; what no consumer sees is a hole. Compared with a log whose records are known."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.batches.checksum import checksum
from mirrorless.batches.exact_intake import Hole, take_exactly
from mirrorless.batches.filler import FILLER_RECORDS, filler
from mirrorless.batches.header import CHECKSUM_STARTS_AT, HEADER_BYTES, TRANSACTIONAL, BatchHeader, FormatError, scan
from mirrorless.batches.producers import LoopedBatch, OppositeCopy
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.stamp import body_of, is_intact
from tests.support.log_bytes import batch, marker, message


def sealed(data: bytes) -> bytes:
    header = BatchHeader.parse(data)
    body = data[HEADER_BYTES:]
    return header._replace(checksum=checksum(data[CHECKSUM_STARTS_AT:HEADER_BYTES], body)).pack() + body


class Log(NamedTuple):
    data: bytes
    aborted: list[tuple[int, int]]
    visible: list[int]
    end: int


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Plain batches, and transactions one after the other, each with offsets that compaction removed."""
    at = draw(st.integers(0, 5))
    data, aborted, visible = b"", [], []
    for number in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["plain", "commit", "abort", "empty"]))
        kept = draw(st.lists(st.integers(0, 9), min_size=1, max_size=10, unique=True).map(sorted))
        offsets, until = [at + one for one in kept], at + kept[-1] + draw(st.integers(0, 3))
        transactional = TRANSACTIONAL if kind in ("commit", "abort") else 0
        if kind != "empty":
            data += sealed(batch(offsets, attributes=transactional, producer=number, until=until))
        at = until + 1
        if kind == "abort":
            aborted.append((number, offsets[0]))
        if kind in ("plain", "commit"):
            visible += offsets
        if transactional:
            data += sealed(marker(at, number, commit=kind == "commit"))
            at += 1
    end = max((header.next_offset for header, _ in scan(data)), default=0)
    return Log(data, aborted, visible, end)


def taken(log: Log, start: int, *, until: int | None = None, merge_below: int = 0) -> tuple[list[int], int]:
    """Offsets of all records, and where the last batch or hole ended; each begins where the last one ended."""
    reached = start
    found: list[int] = []
    for one in take_exactly(log.data, log.aborted, wanted_from=start, until=until, merge_below=merge_below):
        if isinstance(one, Hole):
            assert one.offset == reached < one.next_offset
            reached = one.next_offset
            continue
        assert one.base_offset == reached
        assert one.header.record_count == one.header.last_offset_delta + 1 == one.last_offset - one.base_offset + 1
        assert len(records_of(one.header, bytes(one.body)).rests) == one.header.record_count
        found += range(one.base_offset, one.last_offset + 1)
        reached = one.last_offset + 1
    return found, reached


@given(log=logs(), start=st.integers(0, 30), merge_below=st.sampled_from([0, 1 << 20]))
def test_every_offset_is_of_a_record_or_of_a_hole(log: Log, start: int, merge_below: int) -> None:
    found, reached = taken(log, start, merge_below=merge_below)
    assert found == [offset for offset in log.visible if offset >= start]
    assert reached == max(start, log.end)


@given(log=logs(), until=st.integers(0, 60))
def test_with_an_end_nothing_is_left_out_before_what_was_reached(log: Log, until: int) -> None:
    found, reached = taken(log, 0, until=until)
    assert found == [offset for offset in log.visible if offset < reached]
    assert reached >= min(until, log.end)


def test_many_tiny_batches_are_merged_and_holes_are_not_merged_over() -> None:
    data = b"".join(sealed(batch([offset])) for offset in (*range(10), *range(12, 20)))
    one, hole, other = take_exactly(data, [], wanted_from=0)
    assert not isinstance(one, Hole)
    assert (one.base_offset, one.last_offset) == (0, 9)
    assert hole == Hole(10, 12, 0)
    assert not isinstance(other, Hole)
    assert (other.base_offset, other.last_offset) == (12, 19)


def test_what_is_before_an_error_is_yielded() -> None:
    for wrong in (batch([3]), message(3, b"old")):
        found = take_exactly(sealed(batch([0, 1])) + wrong, [], wanted_from=0)
        first = next(found)
        assert not isinstance(first, Hole)
        assert first.last_offset == 1
        with pytest.raises(FormatError):
            next(found)


def test_a_loop_is_found() -> None:
    data = sealed(batch([0, 1], producer=9)) + sealed(batch([2], producer=9))
    found = take_exactly(data, [], wanted_from=0, opposite=OppositeCopy(9, 2))
    first = next(found)
    assert not isinstance(first, Hole)
    assert first.last_offset == 1
    with pytest.raises(LoopedBatch, match="offset 2"):
        next(found)


def test_filler_takes_exactly_so_many_offsets_and_little_room() -> None:
    made = filler(FILLER_RECORDS, producer_id=7, base_sequence=5).whole()
    ((header, at),) = scan(made)
    body = body_of(made, at, header)
    assert is_intact(made, at, header, body)
    assert (header.record_count, header.last_offset_delta, header.base_sequence) == (100_000, 99_999, 5)
    assert len(records_of(header, body).rests) == 100_000
    assert len(made) < 200_000
