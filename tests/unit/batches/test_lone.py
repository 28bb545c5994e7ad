"""Batches of one record each, read in one loop, give what the ordinary way through them gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from mirrorless.batches.header import BatchHeader, scan
from mirrorless.batches.lone import is_lone, take_lone
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.records import put_together
from mirrorless.batches.stamp import body_of, checksum

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


@given(RECORDS, st.integers(100, 2_000))
def test_as_the_ordinary_way(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], max_bytes: int
) -> None:
    log = b"".join(lone(7 * number, *record) for number, record in enumerate(records))
    headers = list(scan(log))
    assert all(is_lone(header) for header, _ in headers)
    groups, taken = take_lone(log, headers, max_bytes=max_bytes)
    assert taken == len(records)
    expected = [records_of(header, body_of(log, at, header)) for header, at in headers]
    assert [one for group in groups for one in zip(*group, strict=True)] == [
        one for records_there in expected for one in zip(*records_there, strict=True)
    ]
    assert all(
        len(group.rests) == 1
        or 61 + len(put_together(group.timestamps_ms, group.rests)) <= max_bytes + 8 * len(group.rests)
        for group in groups
    )


def test_it_ends_before_a_batch_that_does_not_match_its_checksum() -> None:
    log = bytearray(b"".join(lone(number, 5, None, b"value %d" % number) for number in range(30)))
    headers = list(scan(bytes(log)))
    log[headers[17][1] + 70] ^= 1
    groups, taken = take_lone(bytes(log), headers, max_bytes=1 << 20)
    assert taken == 17
    assert [len(group.rests) for group in groups] == [17]


def test_it_ends_before_a_record_that_no_producer_writes_so() -> None:
    plain = [lone(number, 5, None, b"value") for number in range(3)]
    header = BatchHeader.parse(plain[1])
    body = bytearray(plain[1][61:])
    body[2] = 8  # a timestamp delta of 4 ms
    odd = header._replace(checksum=checksum(header, bytes(body))).pack() + body
    log = plain[0] + odd + plain[2]
    groups, taken = take_lone(log, list(scan(log)), max_bytes=1 << 20)
    assert taken == 1
    assert groups[0].offsets == [0]
