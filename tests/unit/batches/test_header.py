"""A batch's header is read and written to the byte, and what is no v2 batch is refused."""

from __future__ import annotations

import struct

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from mirrorless.batches.checksum import checksum
from mirrorless.batches.header import CODECS, HEADER_BYTES, BatchHeader, FormatError, scan
from mirrorless.batches.stamp import body_of, stamp

Records = list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]
INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3),
    ),
    min_size=1,
    max_size=30,
)


def batch_of(records: Records, *, codec: int = 0) -> bytes:
    """A batch made by kafka-python, an implementation that is not ours."""
    builder = DefaultRecordBatchBuilder(2, codec, 1, 77, 3, 12, 1 << 20)
    for number, (key, value, headers) in enumerate(records):
        builder.append(number, timestamp=1_000 + number, key=key, value=value, headers=headers)
    return bytes(builder.build())


@given(
    st.builds(
        BatchHeader,
        INT64,
        INT32,
        INT32,
        st.just(2),
        st.integers(0, (1 << 32) - 1),
        INT16,
        INT32,
        INT64,
        INT64,
        INT64,
        INT16,
        INT32,
        INT32,
    )
)
def test_a_header_packs_into_the_bytes_it_was_parsed_from(header: BatchHeader) -> None:
    assert BatchHeader.parse(header.pack()) == header
    assert len(header.pack()) == HEADER_BYTES == 61


@given(RECORDS, st.sampled_from([0, 1]))
def test_the_header_says_what_another_implementation_wrote(records: Records, codec: int) -> None:
    batch = batch_of(records, codec=codec)
    theirs = DefaultRecordBatch(batch)
    header = BatchHeader.parse(batch)
    assert header.size_bytes == len(batch)
    assert header.record_count == len(records)
    assert header.is_dense
    assert header.checksum == theirs.crc == google_crc32c.value(batch[21:])
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 12)
    assert header.codec == CODECS[theirs.compression_type]  # it leaves alone what would not get smaller
    assert checksum(header.pack()[21:], body_of(batch, 0, header)) == header.checksum


@given(RECORDS, st.integers(1 << 61, (1 << 62) - 1), st.integers(0, (1 << 15) - 1), st.integers(0, (1 << 31) - 1))
def test_stamping_changes_the_header_and_leaves_the_records_alone(
    records: Records,
    producer_id: int,
    epoch: int,
    sequence: int,
) -> None:
    batch = batch_of(records)
    header = BatchHeader.parse(batch)._replace(base_offset=90_000, partition_leader_epoch=8)
    body = body_of(batch, 0, header)
    stamped = stamp(header, body, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    whole = stamped.whole()
    after = BatchHeader.parse(whole)
    theirs = DefaultRecordBatch(whole)
    assert theirs.validate_crc()
    assert (after.producer_id, after.producer_epoch, after.base_sequence) == (producer_id, epoch, sequence)
    assert (after.base_offset, after.partition_leader_epoch) == (0, -1)
    assert not after.is_transactional
    assert whole[HEADER_BYTES:] == batch[HEADER_BYTES:]
    assert stamped.size_bytes == len(whole)
    unchanged = "length_bytes", "magic", "last_offset_delta", "base_timestamp_ms", "max_timestamp_ms", "record_count"
    assert [getattr(after, name) for name in unchanged] == [getattr(header, name) for name in unchanged]
    assert [(record.key, record.value, record.headers) for record in theirs] == [
        (record.key, record.value, record.headers) for record in DefaultRecordBatch(batch)
    ]


@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_scanning_yields_whole_batches_and_leaves_out_a_cut_one(many: list[Records], data: st.DataObject) -> None:
    batches = [batch_of(records) for records in many]
    joined = b"".join(batches)
    cut = data.draw(st.integers(0, len(joined)))
    starts = [sum(map(len, batches[:number])) for number in range(len(batches) + 1)]
    whole = sum(end <= cut for end in starts[1:])
    assert [at for _, at in scan(joined[:cut])] == starts[:whole]
    assert [at for _, at in scan(memoryview(joined))] == starts[:-1]


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_other_message_formats_are_refused_with_their_offset(magic: int) -> None:
    message = struct.pack(">qiIb", 4711, 30, 0, magic) + bytes(40)
    with pytest.raises(FormatError, match=f"message format v{magic}") as caught:
        list(scan(message))
    assert (caught.value.offset, caught.value.magic) == (4711, magic)


def test_a_length_that_cannot_be_is_refused() -> None:
    with pytest.raises(FormatError, match="a batch length of 3 bytes"):
        list(scan(struct.pack(">qiib", 5, 3, 0, 2) + bytes(60)))


@pytest.mark.parametrize(
    ("base", "delta", "last"), [(0, 0, 0), (10, 4, 14), ((1 << 31) - 1, 1, 0), ((1 << 31) - 2, 4, 2), (-1, 3, -1)]
)
def test_sequence_numbers_wrap_to_zero(base: int, delta: int, last: int) -> None:
    header = BatchHeader.parse(batch_of([(None, None, [])]))
    assert header._replace(base_sequence=base, last_offset_delta=delta).last_sequence == last
