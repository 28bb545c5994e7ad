"""Messages of formats v0 and v1 become v2 batches with the offsets and timestamps that a consumer would have seen."""

from __future__ import annotations

import itertools
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from mirrorless.batches.codecs import GZIP, LZ4, NONE, SNAPPY
from mirrorless.batches.header import CODEC_MASK, BatchHeader, FormatError
from mirrorless.batches.legacy import convert, legacy_end
from mirrorless.batches.stamp import stamp
from tests.unit.batches.test_codecs import compressed_elsewhere, decompressed_elsewhere

if TYPE_CHECKING:
    from mirrorless.batches.rebuild import Rebuilt

LARGE = 1 << 20
NOW = 1_500_000_000_000
APPEND_TIME = 0x08


class One(NamedTuple):
    """A message, or the record it became: its timestamp (-1 is none), key and value."""

    timestamp: int = NOW
    key: bytes | None = b"key"
    value: bytes | None = b"value"


def plain(magic: int, messages: list[tuple[int, One]]) -> bytes:
    """Uncompressed messages at their offsets, written by kafka-python."""
    builder = LegacyRecordBatchBuilder(magic, 0, LARGE)
    for offset, (timestamp, key, value) in messages:
        builder.append(offset, timestamp=timestamp, key=key, value=value)
    return bytes(builder.build())


def sealed(
    magic: int, offset: int, value: bytes | None, *, attributes: int, timestamp: int = NOW, key: bytes | None = None
) -> bytes:
    """Any message, field by field."""
    content = bytes([magic, attributes]) + (struct.pack(">q", timestamp) if magic else b"")
    for field in (key, value):
        content += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def wrapped(
    magic: int, codec: int, messages: list[tuple[int, One]], *, attributes: int = 0, timestamp: int = NOW
) -> bytes:
    """A compressed set as a broker stores it: in v1 the inner offsets count from 0, the outer is the last one's."""
    first, last = messages[0][0], messages[-1][0]
    inner = [(offset - first if magic else offset, one) for offset, one in messages]
    stream = compressed_elsewhere(codec, plain(magic, inner))
    if codec == LZ4 and magic == 0:
        stream = stream[:6] + bytes([stream[6] ^ 0x5A]) + stream[7:]  # KAFKA-3160
    return sealed(magic, last, stream, attributes=codec | attributes, timestamp=timestamp)


def converted(records: bytes, *, start: int = 0, max_bytes: int = LARGE) -> list[Rebuilt]:
    return list(convert(records, max_bytes=max_bytes, wanted_from=start))


def seen(batches: list[Rebuilt]) -> list[One]:
    """What kafka-python reads of the batches once they are stamped."""
    found = []
    for batch in batches:
        stamped = stamp(batch.header, batch.body, producer_id=1, producer_epoch=0, base_sequence=0).whole()
        assert DefaultRecordBatch(stamped).validate_crc()
        header = BatchHeader.parse(stamped)
        body = decompressed_elsewhere(header.attributes & CODEC_MASK, batch.body)
        theirs = list(DefaultRecordBatch(header._replace(attributes=0).pack() + body))
        assert [record.offset for record in theirs] == list(range(batch.header.record_count))
        assert [record.headers for record in theirs] == [[]] * batch.header.record_count
        found += [One(record.timestamp, record.key, record.value) for record in theirs]
    return found


FIELDS = st.none() | st.binary(max_size=200)
SETS = st.lists(
    st.tuples(st.integers(0, 5), st.builds(One, st.integers(NOW, NOW + 10**6), FIELDS, FIELDS)), min_size=1, max_size=20
)


@given(
    SETS,
    st.integers(0, 1 << 40),
    st.sampled_from([0, 1]),
    st.sampled_from([NONE, GZIP, SNAPPY, LZ4]),
    st.integers(0, 30),
)
def test_messages_become_records(gaps: list[tuple[int, One]], base: int, magic: int, codec: int, skipped: int) -> None:
    messages, at = [], base
    for gap, one in gaps:
        at += gap
        messages.append((at, one))
        at += 1
    log = plain(magic, messages) if codec == NONE else wrapped(magic, codec, messages)
    kept = [(offset, one) for offset, one in messages if offset >= base + skipped]
    after = converted(log, start=base + skipped)
    assert seen(after) == [one if magic else one._replace(timestamp=-1) for _, one in kept]
    assert [(batch.first_offset, batch.last_offset) for batch in after] == ([(kept[0][0], kept[-1][0])] if kept else [])
    assert all(batch.header.attributes == codec for batch in after)
    assert legacy_end(log) == len(log)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_the_append_time_of_a_wrapper_is_that_of_its_messages(codec: int) -> None:
    log = wrapped(1, codec, [(7, One(NOW)), (8, One(NOW + 9))], attributes=APPEND_TIME, timestamp=NOW + 77)
    (after,) = converted(log)
    assert [one.timestamp for one in seen([after])] == [NOW + 77, NOW + 77]
    assert after.header.max_timestamp_ms == after.header.base_timestamp_ms == NOW + 77


def test_the_append_time_of_a_message_is_its_own_timestamp() -> None:
    (after,) = converted(sealed(1, 5, b"value", attributes=APPEND_TIME, timestamp=NOW + 3))
    assert seen([after]) == [One(NOW + 3, None)]


def test_messages_without_timestamp_inside_a_wrapper_with_one() -> None:
    """KAFKA-4298."""
    stream = compressed_elsewhere(GZIP, plain(0, [(0, One()), (1, One())]))
    for attributes in (GZIP, GZIP | APPEND_TIME):
        (after,) = converted(sealed(1, 41, stream, attributes=attributes))
        assert (after.first_offset, after.last_offset, after.header.max_timestamp_ms) == (40, 41, -1)


def test_compaction_leaves_holes_inside_a_wrapper() -> None:
    (after,) = converted(wrapped(1, GZIP, [(100, One()), (104, One()), (109, One())]))
    assert (after.first_offset, after.last_offset, after.header.record_count) == (100, 109, 3)


def test_an_lz4_header_may_name_the_size() -> None:
    frame = compressed_elsewhere(LZ4, plain(0, [(5, One())]))
    longer = frame[:4] + bytes([frame[4] | 0x08, frame[5]]) + struct.pack("<q", len(plain(0, [(5, One())])))
    (after,) = converted(sealed(0, 5, longer + b"\x00" + frame[7:], attributes=LZ4))
    assert seen([after]) == [One(-1)]


def test_v1_keeps_to_the_checksum_of_the_lz4_header() -> None:
    frame = compressed_elsewhere(LZ4, plain(1, [(0, One())]))
    broken = frame[:6] + bytes([frame[6] ^ 1]) + frame[7:]
    with pytest.raises(FormatError, match="cannot be read"):
        converted(sealed(1, 5, broken, attributes=LZ4))


def test_neighbours_are_merged_and_large_sets_split() -> None:
    many = [(at, One(NOW + at, value=bytes(90))) for at in range(100)]
    after = converted(plain(1, many), max_bytes=2_000)
    assert seen(after) == [one for _, one in many]
    assert all(batch.header.size_bytes <= 2_000 for batch in after)
    assert len(after) < 10
    mixed = plain(0, many[:5]) + plain(1, many[5:9]) + wrapped(1, GZIP, many[9:20]) + wrapped(1, GZIP, many[20:30])
    assert [(one.first_offset, one.last_offset) for one in converted(mixed)] == [(0, 8), (9, 29)]


def test_the_end_of_the_old_messages_is_found() -> None:
    old = plain(0, [(3, One()), (4, One())]) + plain(1, [(5, One())])
    new = BatchHeader(6, 49, 0, 2, 0, 0, 0, NOW, NOW, -1, -1, -1, 0).pack()
    assert legacy_end(old + new) == legacy_end(old) == len(old)
    assert legacy_end(new) == legacy_end(b"") == 0
    assert legacy_end(new + old, len(new)) == len(new + old)
    assert len(seen(converted(old + new))) == 3


@pytest.mark.parametrize("tail", [plain(1, [(6, One())])[:-1], struct.pack(">qiIbb", 6, 3, 0, 1, 0) + bytes(40)])
def test_what_is_cut_off_or_cannot_be_belongs_to_the_old_messages(tail: bytes) -> None:
    log = plain(1, [(5, One())]) + tail
    assert legacy_end(log) == len(log)
    assert next(convert(log, max_bytes=LARGE, wanted_from=0)).last_offset == 5


@pytest.mark.parametrize("magic", [0, 1])
@given(data=st.data())
def test_a_flipped_bit_is_noticed(magic: int, data: st.DataObject) -> None:
    good, bad = plain(magic, [(3, One())]), bytearray(plain(magic, [(4, One())]))
    at = data.draw(st.integers(12, len(bad) - 1).filter(lambda at: at != 16))  # the rest is length, offset and magic
    bad[at] ^= 1 << data.draw(st.integers(0, 7))
    going = convert(good + bytes(bad), max_bytes=LARGE, wanted_from=0)
    assert next(going).last_offset == 3
    with pytest.raises(FormatError, match=r"offset 4 .* does not match its checksum") as caught:
        next(going)
    assert (caught.value.offset, caught.value.magic) == (4, magic)


def test_a_bad_message_within_a_set_is_told_with_the_offset_of_the_set() -> None:
    inner = bytearray(plain(1, [(0, One()), (1, One())]))
    inner[-1] ^= 1
    with pytest.raises(FormatError, match=r"offset 31 .*does not match its checksum") as caught:
        converted(sealed(1, 31, compressed_elsewhere(GZIP, bytes(inner)), attributes=GZIP))
    assert caught.value.offset == 31


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (sealed(1, 9, None, attributes=GZIP), "without value"),
        (sealed(1, 9, b"", attributes=4), "unknown compression codec 4 for format v1"),
        (sealed(1, 9, b"nothing", attributes=GZIP), "cannot be read"),
        (sealed(1, 9, compressed_elsewhere(GZIP, b"short"), attributes=GZIP), "without inner messages"),
        (
            sealed(1, 9, compressed_elsewhere(GZIP, plain(1, [(50, One())])), attributes=GZIP),
            "its last inner offset is 50",
        ),
        (
            sealed(1, 9, compressed_elsewhere(GZIP, wrapped(1, GZIP, [(0, One())])), attributes=GZIP),
            "within a compressed",
        ),
        (struct.pack(">qiIbb", 9, 3, 0, 1, 0), "has an invalid size of 3 bytes"),
        (
            struct.pack(">qiI", 9, 14, zlib.crc32(b"\x01\x00" + bytes(8))) + b"\x01\x00" + bytes(8),
            "is too short for a timestamp",
        ),
        (
            struct.pack(">qiI", 9, 14, zlib.crc32(b"\x00\x00" + b"\x01" * 8)) + b"\x00\x00" + b"\x01" * 8,
            "bytes of key or",
        ),
    ],
    # By number: gzip writes the time of day, and two processes that collect a second apart must agree on the names.
    ids=itertools.count(),
)
def test_what_cannot_be_read_says_why(message: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        converted(message)
    assert caught.value.offset == 9
