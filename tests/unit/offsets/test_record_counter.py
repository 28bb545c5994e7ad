"""Counting by batch headers: whole batches, cut ones, holes, markers and aborted data."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.batches.header import CONTROL, TRANSACTIONAL, BatchHeader
from mirrorless.batches.records import put_together, take_apart
from mirrorless.offsets.record_counter import Search, Walk
from mirrorless.protocol.requests import Fetched

PLACE = ("t", 0)
_LENGTH_COUNTS_FROM = 12
_HEADER_BYTES = 61


def batch(offsets: list[int], *, attributes: int = 0, producer: int = -1, until: int | None = None) -> bytes:
    """A batch with records at these offsets, up to `until` (inclusive) if compaction removed the last ones."""
    empty = take_apart(b"\x0c\x00\x00\x00\x01\x01\x00", count=1, base_offset=0, base_timestamp_ms=0).rests[0]
    dense = put_together([0] * len(offsets), [empty] * len(offsets))
    # Renumbered by hand: each record is length, attributes, timestamp delta, offset delta, rest.
    records = take_apart(dense, count=len(offsets), base_offset=0, base_timestamp_ms=0).rests
    body = b"".join(_record(offset - offsets[0], rest) for offset, rest in zip(offsets, records, strict=True))
    last = offsets[-1] if until is None else until
    header = BatchHeader(
        base_offset=offsets[0],
        length_bytes=_HEADER_BYTES + len(body) - _LENGTH_COUNTS_FROM,
        partition_leader_epoch=0,
        magic=2,
        checksum=0,
        attributes=attributes,
        last_offset_delta=last - offsets[0],
        base_timestamp_ms=0,
        max_timestamp_ms=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=-1,
        record_count=len(offsets),
    )
    return header.pack() + body


def _record(delta: int, rest: bytes) -> bytes:
    record = b"\x00\x00" + _varint(delta) + rest
    return _varint(len(record)) + record


def _varint(number: int) -> bytes:
    raw, out = number << 1, bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    key = struct.pack(">hh", 0, commit)
    body = b"\x00\x00\x00" + _varint(len(key)) + key + b"\x01\x00"
    body = _varint(len(body)) + body
    header = BatchHeader.parse(batch([offset], attributes=CONTROL | TRANSACTIONAL, producer=producer))
    return header._replace(length_bytes=_HEADER_BYTES + len(body) - _LENGTH_COUNTS_FROM).pack() + body


def fetched(*batches: bytes, stable: int, aborted: list[tuple[int, int]] | None = None, error: int = 0) -> Fetched:
    return Fetched(PLACE, error, stable, aborted or [], b"".join(batches))


def counts(walk: Walk, *answers: Fetched) -> dict[int, int]:
    for answer in answers:
        walk.take(answer)
    return walk.counts


def test_whole_batches_are_counted_and_a_cut_one_is_divided() -> None:
    walk = Walk(PLACE, 2, [2, 4, 5, 7, 8])
    assert counts(walk, fetched(batch([0, 1, 2, 3, 4]), batch([5, 6, 7, 8, 9]), stable=10)) == {
        2: 0,
        4: 2,
        5: 3,
        7: 5,
        8: 6,
    }
    assert walk.over


def test_holes_of_compaction_are_not_counted() -> None:
    walk = Walk(PLACE, 1, [3, 6, 10])
    assert counts(walk, fetched(batch([0, 1, 5], until=7), batch([8, 10, 11]), stable=12)) == {3: 1, 6: 2, 10: 3}


def test_markers_and_aborted_records_are_not_counted() -> None:
    walk = Walk(PLACE, 0, [1, 3, 6, 8])
    answer = fetched(
        batch([0, 1], attributes=TRANSACTIONAL, producer=7),
        batch([2, 3], attributes=TRANSACTIONAL, producer=8),
        marker(4, 7, commit=False),
        marker(5, 8, commit=True),
        batch([6, 7]),
        stable=8,
        aborted=[(7, 0)],
    )
    assert counts(walk, answer) == {1: 0, 3: 1, 6: 2, 8: 4}


def test_it_ends_where_the_source_ends() -> None:
    walk = Walk(PLACE, 0, [1, 50])
    assert counts(walk, fetched(batch([0, 1, 2]), stable=3)) == {1: 1, 50: 3}


def test_a_walk_goes_on_over_several_answers() -> None:
    walk = Walk(PLACE, 0, [4])
    walk.take(fetched(batch([0, 1]), stable=6))
    assert (walk.offset, walk.over) == (2, False)
    assert counts(walk, fetched(batch([2, 3]), batch([4, 5]), stable=6)) == {4: 4}


def test_what_the_source_does_not_have_any_more_ends_it() -> None:
    walk = Walk(PLACE, 0, [4])
    walk.take(fetched(stable=6, error=1))
    assert walk.over
    assert "OFFSET_OUT_OF_RANGE" in str(walk.trouble)


def test_nothing_again_and_again_ends_it_unless_others_took_the_room() -> None:
    walk = Walk(PLACE, 0, [4])
    for _ in range(20):
        walk.take(fetched(stable=6), crowded=True)
    assert not walk.over
    for _ in range(4):
        walk.take(fetched(stable=6))
    assert walk.trouble == "offset 0: the source answers with nothing"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.booleans()), min_size=1, max_size=15),
    st.integers(0, 30),
    st.integers(1, 4),
)
def test_any_log_is_counted_right(parts: list[tuple[int, int, bool]], begin: int, an_answer: int) -> None:
    offset, batches, records = 0, [], []
    for gap, count, holes in parts:
        offset += gap
        offsets = [offset + number * (2 if holes else 1) for number in range(count)]
        batches.append(batch(offsets))
        records += offsets
        offset = offsets[-1] + 1
    wanted = list(range(begin, max(begin, offset) + 3))
    walk = Walk(PLACE, begin, wanted)
    for at in range(0, len(batches), an_answer):
        walk.take(fetched(*batches[at : at + an_answer], stable=offset))
    walk.take(fetched(stable=offset))
    assert walk.counts == {one: sum(begin <= record < one for record in records) for one in wanted}


@pytest.mark.parametrize("size", [1, 300])
def test_records_are_numbered_as_kafka_numbers_them(size: int) -> None:
    body = batch(list(range(0, 2 * size, 2)))[_HEADER_BYTES:]
    found = take_apart(body, count=size, base_offset=0, base_timestamp_ms=0)
    assert found.offsets == list(range(0, 2 * size, 2))


def test_a_search_finds_the_offset_behind_so_many_records() -> None:
    search = Search(PLACE, 1, [0, 1, 3, 5, 8])
    answer = fetched(
        batch([0, 1, 2]),
        batch([3, 4], attributes=TRANSACTIONAL, producer=7),
        marker(5, 7, commit=False),
        batch([6, 8, 9], until=11),
        batch([12, 13, 14]),
        stable=15,
        aborted=[(7, 3)],
    )
    assert counts(search, answer) == {0: 1, 1: 2, 3: 8, 5: 12, 8: 15}
    assert search.over
    assert search.trouble is None


def test_a_search_for_more_than_there_is_says_so() -> None:
    search = Search(PLACE, 0, [2, 5])
    assert counts(search, fetched(batch([0, 1, 2]), stable=3)) == {2: 2}
    assert search.trouble == "offset 3: the source ends 2 records too early"
