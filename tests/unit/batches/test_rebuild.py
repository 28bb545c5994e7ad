"""A rebuilt batch is dense, and a consumer of it sees what a consumer of the source saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from mirrorless.batches.header import (
    CODEC_MASK,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    FormatError,
)
from mirrorless.batches.rebuild import Rebuilt, rebuild
from mirrorless.batches.records import varint
from mirrorless.batches.stamp import stamp
from tests.unit.batches.test_codecs import ALL, compressed_elsewhere, decompressed_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable

Batch = tuple[BatchHeader, bytes]
Headers = tuple[tuple[str, bytes | None], ...]
LARGE = 1 << 20
NOW = 1_700_000_000_000


class Sent(NamedTuple):
    """A record as a producer gives it, with its place in the source's log."""

    offset: int
    timestamp: int = NOW
    key: bytes | None = b"key"
    value: bytes | None = b"value"
    headers: Headers = ()


class Seen(NamedTuple):
    """What a consumer sees of it."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def nullable(field: bytes | None) -> bytes:
    return varint(-1) if field is None else varint(len(field)) + field


def record(sent: Sent, base_offset: int, base_timestamp: int) -> bytes:
    body = b"\x00" + varint(sent.timestamp - base_timestamp) + varint(sent.offset - base_offset)
    body += nullable(sent.key) + nullable(sent.value) + varint(len(sent.headers))
    body += b"".join(nullable(name.encode()) + nullable(value) for name, value in sent.headers)
    return varint(len(body)) + body


def batch_of(
    records: list[Sent],
    *,
    codec: int = 0,
    attributes: int = 0,
    base_offset: int | None = None,
    last_offset: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
) -> Batch:
    """A batch as the log cleaner leaves it: with its old first and last offset, whatever records are left."""
    first = records[0].offset if base_offset is None else base_offset
    last = records[-1].offset if last_offset is None else last_offset
    base = base_timestamp if base_timestamp is not None else records[0].timestamp if records else -1
    newest = max_timestamp if max_timestamp is not None else max((sent.timestamp for sent in records), default=NOW)
    written = b"".join(record(sent, first, base) for sent in records)
    body = compressed_elsewhere(codec, written) if records else b""
    size = HEADER_BYTES + len(body) - 12
    header = BatchHeader(first, size, 4, 2, 0, codec | attributes, last - first, base, newest, 7, 1, 30, len(records))
    return header, body


def consumed(header: BatchHeader, body: bytes) -> list[tuple[int, Seen]]:
    """Offset and content of a batch's records as kafka-python reads them, which knows nothing of our codecs."""
    plain = decompressed_elsewhere(header.attributes & CODEC_MASK, body) if header.record_count else b""
    theirs = DefaultRecordBatch(header._replace(attributes=header.attributes & ~CODEC_MASK).pack() + plain)
    return [(one.offset, Seen(one.timestamp, one.key, one.value, tuple(one.headers))) for one in theirs]


def rebuilt(batches: Iterable[Batch], *, max_bytes: int = LARGE, start: int = 0) -> list[Rebuilt]:
    return list(rebuild(batches, max_bytes=max_bytes, wanted_from=start))


def seen(batches: Iterable[Rebuilt]) -> list[Seen]:
    return [one for batch in batches for _, one in consumed(batch.header, batch.body)]


FIELDS = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), FIELDS), max_size=2).map(tuple)
ATTRIBUTES = st.sampled_from([0, TRANSACTIONAL, LOG_APPEND_TIME, DELETE_HORIZON, DELETE_HORIZON | LOG_APPEND_TIME])


@st.composite
def logs(draw: st.DrawFn) -> list[Batch]:
    """A stretch of a log after compaction: batches with holes within and between them, some of them empty."""
    at = draw(st.integers(0, 1 << 40))
    batches = []
    codecs = draw(st.lists(st.sampled_from(ALL), min_size=1, max_size=2))
    for _ in range(draw(st.integers(1, 5))):
        at += draw(st.integers(0, 3))
        gaps = draw(st.lists(st.integers(0, 70), max_size=12))
        first, records = at, []
        for gap in gaps:
            at += gap
            timestamp = draw(st.just(-1) | st.integers(NOW, NOW + 100_000))
            records.append(Sent(at, timestamp, draw(FIELDS), draw(FIELDS), draw(HEADERS)))
            at += 1
        last = at + draw(st.integers(0, 3))
        at = last + 1
        attributes = draw(ATTRIBUTES)
        base = NOW + 86_400_000 if attributes & DELETE_HORIZON and records else None
        codec = draw(st.sampled_from(codecs))
        batches.append(
            batch_of(
                records, codec=codec, attributes=attributes, base_offset=first, last_offset=last, base_timestamp=base
            )
        )
    return batches


@given(logs(), st.data(), st.integers(70, 2_000))
def test_a_consumer_sees_the_same_records(batches: list[Batch], data: st.DataObject, max_bytes: int) -> None:
    bounds = st.integers(batches[0][0].base_offset - 1, batches[-1][0].next_offset + 1)
    start = data.draw(bounds)
    source = [(offset, one) for header, body in batches for offset, one in consumed(header, body) if offset >= start]
    after = rebuilt(batches, max_bytes=max_bytes, start=start)
    assert seen(after) == [one for _, one in source]
    position = 0
    for batch in after:
        inside = source[position : position + batch.header.record_count]
        position += batch.header.record_count
        assert [offset for offset, _ in consumed(batch.header._replace(base_offset=0), batch.body)] == list(
            range(batch.header.record_count)
        )
        assert (batch.first_offset, batch.last_offset) == (inside[0][0], inside[-1][0])
        assert batch.header.base_timestamp_ms == inside[0][1].timestamp
        assert batch.header.max_timestamp_ms == max(one.timestamp for _, one in inside)
        assert batch.header.is_dense
        assert batch.header.attributes & ~CODEC_MASK == 0
        size = batch.header.size_bytes
        assert size == HEADER_BYTES + len(batch.body)
        assert size <= max_bytes or batch.header.record_count == 1


@given(logs())
def test_a_stamped_batch_passes_a_checksum_made_elsewhere(batches: list[Batch]) -> None:
    for batch in rebuilt(batches):
        stamped = stamp(batch.header, batch.body, producer_id=9, producer_epoch=2, base_sequence=40).whole()
        theirs = DefaultRecordBatch(stamped)
        assert theirs.validate_crc()
        assert (theirs.base_offset, theirs.last_offset_delta) == (0, batch.header.record_count - 1)
        assert theirs.records_count == batch.header.record_count


@pytest.mark.parametrize("codec", ALL)
def test_holes_close_and_the_codec_stays(codec: int) -> None:
    holes = batch_of([Sent(10), Sent(13, NOW + 5), Sent(900, NOW + 2)], codec=codec, last_offset=905)
    (after,) = rebuilt([holes])
    assert [offset for offset, _ in consumed(after.header, after.body)] == [10, 11, 12]
    assert (after.first_offset, after.last_offset, after.header.record_count) == (10, 900, 3)
    assert after.header.max_timestamp_ms == NOW + 5
    assert after.header.attributes == codec


def test_a_part_of_a_batch() -> None:
    batch = batch_of([Sent(10 + number, NOW + number) for number in range(10)])
    (after,) = rebuilt([batch], start=17)
    assert (after.first_offset, after.last_offset) == (17, 19)
    assert [one.timestamp for one in seen([after])] == [NOW + 7, NOW + 8, NOW + 9]
    assert rebuilt([batch], start=20) == []


def test_append_time_becomes_the_time_of_each_record() -> None:
    batch = batch_of([Sent(1, NOW), Sent(2, NOW + 7)], attributes=LOG_APPEND_TIME, max_timestamp=NOW + 500)
    (after,) = rebuilt([batch])
    assert [one.timestamp for one in seen([after])] == [NOW + 500, NOW + 500]
    assert after.header.base_timestamp_ms == after.header.max_timestamp_ms == NOW + 500


def test_a_delete_horizon_is_no_timestamp() -> None:
    horizon = NOW + 86_400_000
    batch = batch_of([Sent(1, NOW), Sent(2, NOW + 7, value=None)], attributes=DELETE_HORIZON, base_timestamp=horizon)
    (after,) = rebuilt([batch])
    assert [one.timestamp for one in seen([after])] == [NOW, NOW + 7]
    assert after.header.base_timestamp_ms == NOW


def test_records_without_timestamp_stay_without() -> None:
    (after,) = rebuilt([batch_of([Sent(1, -1), Sent(5, -1)])])
    assert (after.header.base_timestamp_ms, after.header.max_timestamp_ms) == (-1, -1)
    assert [one.timestamp for one in seen([after])] == [-1, -1]


def test_an_emptied_batch_yields_nothing() -> None:
    assert rebuilt([batch_of([], base_offset=5, last_offset=9)]) == []
    assert rebuilt([]) == []


@pytest.mark.parametrize("codec", ALL)
def test_tiny_batches_become_one(codec: int) -> None:
    (after,) = rebuilt([batch_of([Sent(number, NOW + number)], codec=codec) for number in range(0, 1_000, 2)])
    assert (after.first_offset, after.last_offset, after.header.record_count) == (0, 998, 500)
    assert [one.timestamp for one in seen([after])] == [NOW + number for number in range(0, 1_000, 2)]


def test_tiny_batches_fill_batches_up_to_the_limit() -> None:
    after = rebuilt([batch_of([Sent(number, value=bytes(900))]) for number in range(100)], max_bytes=10_000)
    assert [batch.header.record_count for batch in after] == [10] * 10
    assert all(9_000 < batch.header.size_bytes <= 10_000 for batch in after)


def test_neither_codecs_nor_timestamp_types_are_mixed() -> None:
    kinds = [(0, 0), (0, TRANSACTIONAL), (3, 0), (3, LOG_APPEND_TIME), (3, LOG_APPEND_TIME), (0, 0)]
    batches = [batch_of([Sent(at)], codec=codec, attributes=more) for at, (codec, more) in enumerate(kinds)]
    assert [(batch.header.attributes, batch.header.record_count) for batch in rebuilt(batches)] == [
        (0, 2),
        (3, 1),
        (3, 2),
        (0, 1),
    ]


@pytest.mark.parametrize("codec", ALL)
def test_a_large_batch_is_split_until_each_part_fits(codec: int) -> None:
    values = [bytes((number * at * at) >> 3 & 0xFF for at in range(200)) for number in range(200)]
    after = rebuilt(
        [batch_of([Sent(at, value=value) for at, value in enumerate(values)], codec=codec)], max_bytes=2_000
    )
    assert [one.value for one in seen(after)] == values
    assert len(after) > 1
    assert all(batch.header.size_bytes <= 2_000 for batch in after)
    assert [batch.first_offset for batch in after[1:]] == [batch.last_offset + 1 for batch in after[:-1]]


def test_a_record_that_never_fits_comes_alone() -> None:
    batch = batch_of([Sent(1), Sent(2, value=bytes(5_000)), Sent(3)])
    after = rebuilt([batch], max_bytes=1_000)
    assert [(one.first_offset, one.last_offset) for one in after] == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ((batch_of([Sent(7)])[0]._replace(record_count=2), batch_of([Sent(7)])[1]), "only 1 of 2 records are complete"),
        ((batch_of([Sent(7)], codec=4)[0], b"not zstd"), "cannot decompress codec 4"),
        ((batch_of([Sent(7)], attributes=5)[0], batch_of([Sent(7)])[1]), "unknown compression codec 5"),
    ],
)
def test_what_cannot_be_read_stops_behind_what_came_before(batch: Batch, reason: str) -> None:
    going = rebuild([batch_of([Sent(3)]), batch], max_bytes=LARGE, wanted_from=0)
    assert next(going).last_offset == 3
    with pytest.raises(FormatError, match=reason) as caught:
        next(going)
    assert caught.value.offset == 7
