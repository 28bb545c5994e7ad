"""Records are taken apart and put together again without a look at their keys, values and headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.util import encode_varint

from mirrorless.batches.header import HEADER_BYTES
from mirrorless.batches.records import Records, put_together, take_apart, varint

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = st.lists(st.integers(0, 1 << 45), min_size=1, max_size=50)


def records_of(times: list[int], *, value: bytes = b"value") -> bytes:
    """Records 0, 1, 2 and so on, written by kafka-python."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 24)
    for number, time in enumerate(times):
        builder.append(number, timestamp=time, key=b"%d" % number, value=value, headers=[("h", b"x")])
    return bytes(builder.build())[HEADER_BYTES:]


def chunk(offset: int, delta: int, rest: bytes) -> bytes:
    """One record, byte by byte."""
    body = b"\x00" + varint(delta) + varint(offset) + rest
    return varint(len(body)) + body


@given(INT64 | st.integers(-20_000, 20_000))
def test_numbers_are_encoded_as_kafka_does(number: int) -> None:
    theirs = bytearray()
    encode_varint(number, theirs.append)
    assert varint(number) == bytes(theirs)


@given(TIMES, st.sampled_from([0, 20, 40, 60, 127, 8_150, 8_180, 8_192]))
def test_what_is_taken_apart_is_put_together_to_the_byte(times: list[int], value_bytes: int) -> None:
    written = records_of(times, value=bytes(value_bytes))
    records = take_apart(written, count=len(times), base_offset=700, base_timestamp_ms=times[0])
    assert records.offsets == [700 + number for number in range(len(times))]
    assert records.timestamps_ms == times
    assert put_together(records.timestamps_ms, records.rests) == written


def test_record_numbers_of_one_two_and_three_bytes() -> None:
    written = records_of([5] * 9_000)
    records = take_apart(written, count=9_000, base_offset=0, base_timestamp_ms=5)
    assert records.offsets == list(range(9_000))
    assert put_together(records.timestamps_ms, records.rests) == written


@given(st.lists(st.tuples(st.integers(0, (1 << 31) - 1), INT64), min_size=1, max_size=20), INT64)
def test_any_delta_is_read_and_sums_wrap_around_as_in_java(deltas: list[tuple[int, int]], base: int) -> None:
    written = b"".join(chunk(offset, delta, b"rest") for offset, delta in deltas)
    records = take_apart(written, count=len(deltas), base_offset=1 << 40, base_timestamp_ms=base)
    wrapped = [(base + delta + (1 << 63)) % (1 << 64) - (1 << 63) for _, delta in deltas]
    assert records == Records([(1 << 40) + offset for offset, _ in deltas], wrapped, [b"rest"] * len(deltas))
    again = put_together(records.timestamps_ms, records.rests)
    assert take_apart(again, count=len(deltas), base_offset=0, base_timestamp_ms=wrapped[0]).timestamps_ms == wrapped


@given(TIMES, st.data())
def test_cut_off_records_and_wrong_counts_are_refused(times: list[int], data: st.DataObject) -> None:
    written = records_of(times)
    cut = data.draw(st.integers(0, len(written) - 1))
    count = data.draw(st.integers(0, 60).filter(lambda count: count != len(times)))
    for records, many in ((written[:cut], len(times)), (written, count), (written + b"\x00", len(times))):
        with pytest.raises(ValueError, match=r"records|record"):
            take_apart(records, count=many, base_offset=0, base_timestamp_ms=0)


@pytest.mark.parametrize(
    "record",
    [
        varint(-3) + bytes(9),
        varint(-100) + bytes(200),
        varint(2) + bytes(2),  # no room for an offset
        b"\xff" * 11,
        varint(20) + b"\x00" + b"\xff" * 19,
    ],
)
def test_records_that_cannot_be_are_refused(record: bytes) -> None:
    with pytest.raises(ValueError, match=r"record|varint"):
        take_apart(record, count=1, base_offset=0, base_timestamp_ms=0)


def test_wanted_records_are_chosen_by_offset() -> None:
    records = Records([3, 5, 9], [30, 50, 90], [b"c", b"e", b"i"])
    assert records.wanted(0) is records
    assert records.wanted(4) == Records([5, 9], [50, 90], [b"e", b"i"])
    assert records.wanted(4, 9) == Records([5], [50], [b"e"])
    assert records.wanted(10) == Records([], [], [])
