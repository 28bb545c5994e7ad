"""Counting by batch headers: whole batches, cut ones, holes, markers, aborted data, and messages of format v1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.batches.header import HEADER_BYTES, TRANSACTIONAL, FormatError
from mirrorless.batches.record_counter import LogPosition, OffsetSearch, RecordCounter
from mirrorless.batches.records import take_apart
from tests.support.log_bytes import batch, marker, message

TRANSACTIONS = (
    batch([0, 1], attributes=TRANSACTIONAL, producer=7),
    batch([2, 3], attributes=TRANSACTIONAL, producer=8),
    marker(4, 7, commit=False),
    marker(5, 8, commit=True),
    batch([6, 7]),
)


def counts(counter: RecordCounter, *batches: bytes, aborted: tuple[tuple[int, int], ...] = ()) -> dict[int, int]:
    for one in counter.read(b"".join(batches), aborted):
        counter.add(one)
    return counter.counts


def test_whole_batches_are_counted_and_a_cut_one_is_divided() -> None:
    counter = RecordCounter(2, [2, 4, 5, 7, 8])
    assert counts(counter, batch([0, 1, 2, 3, 4]), batch([5, 6, 7, 8, 9])) == {2: 0, 4: 2, 5: 3, 7: 5, 8: 6}
    assert counter.is_complete


def test_holes_of_compaction_are_not_counted() -> None:
    counter = RecordCounter(1, [3, 6, 10])
    assert counts(counter, batch([0, 1, 5], until=7), batch([8, 10, 11])) == {3: 1, 6: 2, 10: 3}
    assert counter.cleaned


def test_markers_and_aborted_records_are_not_counted() -> None:
    counter = RecordCounter(0, [1, 3, 6, 8])
    assert counts(counter, *TRANSACTIONS, aborted=((7, 0),)) == {1: 0, 3: 1, 6: 2, 8: 4}
    assert not counter.cleaned


def test_batches_without_records_are_passed() -> None:
    empty = batch([0], until=4)
    empty = empty[: HEADER_BYTES - 4] + b"\x00\x00\x00\x00"  # the cleaner keeps the header of a producer's last batch
    counter = RecordCounter(0, [3, 6])
    assert counts(counter, _sized(empty), batch([5, 6])) == {3: 0, 6: 1}


def _sized(header: bytes) -> bytes:
    return header[:8] + (HEADER_BYTES - 12).to_bytes(4, "big") + header[12:]


def test_messages_of_old_formats_are_counted_and_so_are_batches_behind_them() -> None:
    counter = RecordCounter(1, [2, 4, 6])
    log = (*map(message, (0, 1, 3)), batch([4, 5, 6]))
    assert counts(counter, *log) == {2: 1, 4: 2, 6: 4}
    assert counter.cleaned  # offset 2 has no message


def test_old_messages_behind_batches_are_left_to_the_next_answer() -> None:
    counter = RecordCounter(0, [4])
    assert counts(counter, batch([0, 1]), message(2), message(3)) == {}
    assert counter.offset == 2
    assert counts(counter, message(2), message(3)) == {4: 4}


def test_what_cannot_be_read_is_refused() -> None:
    damaged = bytearray(message(0, b"value"))
    damaged[-1] ^= 1
    with pytest.raises(FormatError, match="does not match its checksum"):
        counts(RecordCounter(0, [1]), bytes(damaged))


def test_where_the_log_ends_all_is_counted_once_that_is_believed() -> None:
    counter = RecordCounter(0, [1, 4, 50])
    counts(counter, batch([0, 1, 2]))
    counter.end_at(4, believed=False)
    assert counter.counts == {1: 1, 4: 3}
    counter.end_at(4, believed=True)
    assert counter.counts == {1: 1, 4: 3, 50: 3}


def test_the_leader_epoch_is_that_of_the_batch_before() -> None:
    position = LogPosition(0, leader_epoch=3)
    list(position.read(batch([0, 1], leader_epoch=4), ()))
    assert (position.offset, position.leader_epoch) == (2, 4)
    list(position.read(message(2), ()))
    assert (position.offset, position.leader_epoch) == (3, -1)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.sampled_from(["v1", "dense", "holes"])), min_size=1),
    st.integers(0, 30),
    st.integers(1, 4),
)
def test_any_log_is_counted_right(parts: list[tuple[int, int, str]], begin: int, an_answer: int) -> None:
    offset = 0
    batches: list[bytes] = []
    records: list[int] = []
    for gap, count, kind in sorted(parts, key=lambda part: part[2] != "v1"):
        offset += gap
        offsets = [offset + number * (1 if kind == "dense" else 2) for number in range(count)]
        batches.append(b"".join(map(message, offsets)) if kind == "v1" else batch(offsets))
        records += offsets
        offset = offsets[-1] + 1
    wanted = list(range(begin, max(begin, offset) + 3))
    counter = RecordCounter(begin, wanted)
    for at in range(0, len(batches), an_answer):
        counts(counter, *batches[at : at + an_answer])
    counter.end_at(offset, believed=True)
    assert counter.counts == {one: sum(begin <= record < one for record in records) for one in wanted}


@pytest.mark.parametrize("size", [1, 300])
def test_records_are_numbered_as_kafka_numbers_them(size: int) -> None:
    body = batch(list(range(0, 2 * size, 2)))[HEADER_BYTES:]
    found = take_apart(body, count=size, base_offset=0, base_timestamp_ms=0)
    assert found.offsets == list(range(0, 2 * size, 2))


def test_a_search_finds_the_offset_behind_so_many_records() -> None:
    search = OffsetSearch(1, [0, 1, 3, 5, 8])
    log = (
        batch([0, 1, 2]),
        batch([3, 4], attributes=TRANSACTIONAL, producer=7),
        marker(5, 7, commit=False),
        batch([6, 8, 9], until=11),
        batch([12, 13, 14]),
    )
    assert counts(search, *log, aborted=((7, 3),)) == {0: 1, 1: 2, 3: 8, 5: 12}
    search.end_at(15, believed=False)
    assert search.counts == {0: 1, 1: 2, 3: 8, 5: 12, 8: 15}


def test_a_search_finds_messages_of_old_formats() -> None:
    assert counts(OffsetSearch(0, [1, 2]), message(0), message(4), message(5)) == {1: 4, 2: 5}


def test_a_search_for_more_than_there_is_does_not_end() -> None:
    search = OffsetSearch(0, [2, 5])
    counts(search, batch([0, 1, 2]))
    search.end_at(3, believed=True)
    assert search.counts == {2: 2}
    assert not search.is_complete
