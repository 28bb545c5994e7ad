"""Batches of one record each, read in one loop, give what the ordinary way through them gives."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from mirrorless.batches.checksum import checksum
from mirrorless.batches.header import BatchHeader, scan
from mirrorless.batches.rebuild import merge, records_of
from mirrorless.batches.single_record import is_lone, take_lone
from mirrorless.batches.stamp import body_of

if TYPE_CHECKING:
    from mirrorless.batches.records import Records

RECORDS = st.lists(
    st.tuples(
        st.integers(0, 1 << 50),
        st.none() | st.binary(max_size=300),
        st.none() | st.sampled_from([0, 1, 50, 63, 64, 8_180, 8_200]).map(bytes) | st.binary(max_size=70),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2),
    ),
    min_size=1,
    max_size=20,
)


def lone(offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: object = ()) -> bytes:
    """One batch with one record, as it lies in a log."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    builder.append(0, timestamp=timestamp, key=key, value=value, headers=headers)
    batch = bytes(builder.build())
    return BatchHeader.parse(batch)._replace(base_offset=offset).pack() + batch[61:]


def rows(records: Records) -> list[tuple[int, bytes]]:
    return list(zip(records.timestamps_ms, records.rests, strict=True))


@given(RECORDS, st.integers(100, 2_000))
def test_as_the_ordinary_way(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], max_bytes: int
) -> None:
    log = b"".join(lone(7 * number, *record) for number, record in enumerate(records))
    headers = list(scan(log))
    assert all(is_lone(header) for header, _ in headers)
    found = take_lone(log, 0)
    assert found is not None
    assert (found.last, found.end) == (headers[-1][0], len(log))
    assert found.records.offsets == [7 * number for number in range(len(records))]
    expected = [row for header, at in headers for row in rows(records_of(header, body_of(log, at, header)))]
    assert rows(found.records) == expected
    rebuilt = list(merge([(0, found.records)], max_bytes=max_bytes))
    assert [row for one in rebuilt for row in rows(records_of(one.header, one.body))] == expected
    assert [(one.first_offset, one.last_offset) for one in rebuilt] == [
        (7 * first, 7 * (first + count - 1))
        for first, count in zip(
            accumulate((one.header.record_count for one in rebuilt[:-1]), initial=0),
            (one.header.record_count for one in rebuilt),
            strict=True,
        )
    ]
    assert all(one.header.record_count == 1 or one.header.size_bytes <= max_bytes for one in rebuilt)


def test_it_ends_before_a_batch_that_does_not_match_its_checksum() -> None:
    log = bytearray(b"".join(lone(number, 5, None, b"value %d" % number) for number in range(30)))
    at = list(scan(bytes(log)))[17][1]
    log[at + 70] ^= 1
    found = take_lone(bytes(log), 0)
    assert found is not None
    assert (len(found.records.rests), found.end) == (17, at)
    assert take_lone(bytes(log), at) is None


def test_it_ends_before_a_record_that_no_producer_writes_so() -> None:
    plain = [lone(number, 5, None, b"value") for number in range(3)]
    header = BatchHeader.parse(plain[1])
    body = bytearray(plain[1][61:])
    body[2] = 8  # a timestamp delta of 4 ms
    odd = header._replace(checksum=checksum(header.pack()[21:], bytes(body))).pack() + body
    found = take_lone(plain[0] + odd + plain[2], 0)
    assert found is not None
    assert found.records.offsets == [0]


def test_it_ends_before_what_is_not_wanted() -> None:
    log = b"".join(lone(number, 5, None, b"value") for number in range(30))
    assert take_lone(log, 0, wanted_from=1) is None
    assert take_lone(log, 0, until=0) is None
    found = take_lone(log, len(log) // 30, wanted_from=1, until=12)
    assert found is not None
    assert found.records.offsets == list(range(1, 12))


def test_it_ends_before_what_is_not_a_whole_batch() -> None:
    log = b"".join(lone(number, 5, None, b"value") for number in range(3))
    size = len(log) // 3
    for missing in range(1, size + 1):
        found = take_lone(log[: len(log) - missing], 0)
        assert found is not None
        assert (len(found.records.rests), found.end) == (2, 2 * size)
    assert take_lone(b"", 0) is None


def test_it_ends_before_other_batches() -> None:
    first = lone(0, 5, None, b"value")
    header = BatchHeader.parse(first)
    for other in (
        header._replace(attributes=1),
        header._replace(last_offset_delta=1),
        header._replace(record_count=2),
        header._replace(magic=1),
        header._replace(length_bytes=-1),
        header._replace(length_bytes=48),
    ):
        whole = other._replace(checksum=checksum(other.pack()[21:], first[61:])).pack() + first[61:]
        found = take_lone(first + whole, 0)
        assert found is not None
        assert found.end == len(first)
    large = lone(1, 5, None, bytes(16 << 10))
    assert not is_lone(BatchHeader.parse(large))
    assert take_lone(large, 0) is None
