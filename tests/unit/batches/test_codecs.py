"""Others read what is compressed here, and what they compress is read; too much and garbage are refused."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Literal

import kafka.codec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.batches.codecs import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress

ALL = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
COMPRESSING = ALL[1:]
NAMES: dict[int, Literal["gzip", "lz4", "zstd"]] = {GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}
RECORDS = st.binary(max_size=300) | st.builds(bytes.__mul__, st.binary(max_size=50), st.integers(0, 3_000))


def raw_snappy(records: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(records, asbytes=True))


def unraw_snappy(block: bytes) -> bytes:
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return bytes(pa.Codec("snappy").decompress(block, size, asbytes=True))


def compressed_elsewhere(codec: int, records: bytes) -> bytes:
    """By zlib, kafka-python's framing and Arrow's streams, which know no length in advance, as Java's do not."""
    if codec == NONE:
        return records
    if codec == GZIP:
        return bytes(kafka.codec.gzip_encode(records))
    if codec == SNAPPY:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kafka.codec, "snappy", SimpleNamespace(compress=raw_snappy))
            return bytes(kafka.codec.snappy_encode(records))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, NAMES[codec]) as stream:
        stream.write(records)
    return bytes(sink.getvalue().to_pybytes())


def decompressed_elsewhere(codec: int, body: bytes) -> bytes:
    """By the same libraries."""
    if codec == NONE:
        return body
    if codec == SNAPPY:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kafka.codec, "snappy", SimpleNamespace(decompress=unraw_snappy))
            return bytes(kafka.codec.snappy_decode(body))
    return bytes(pa.CompressedInputStream(pa.BufferReader(body), NAMES[codec]).read())


@given(RECORDS, st.sampled_from(ALL))
def test_each_codec_reads_itself_and_is_read_by_others(records: bytes, codec: int) -> None:
    body = compress(codec, records)
    assert decompress(codec, body) == records
    assert not records or decompressed_elsewhere(codec, body) == records  # kafka-python takes no empty Snappy stream


@given(RECORDS, st.sampled_from(ALL))
def test_each_codec_reads_others(records: bytes, codec: int) -> None:
    assert decompress(codec, compressed_elsewhere(codec, records)) == records


@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_gzip_may_have_several_members(many: list[bytes]) -> None:
    assert decompress(GZIP, b"".join(compress(GZIP, one) for one in many)) == b"".join(many)


@given(RECORDS)
def test_snappy_without_framing_is_read_too(records: bytes) -> None:
    assert decompress(SNAPPY, raw_snappy(records)) == records


def test_snappy_is_framed_as_java_does_it() -> None:
    body = compress(SNAPPY, bytes(40_000))
    assert body.startswith(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))
    (first,) = struct.unpack_from(">i", body, 16)
    assert unraw_snappy(body[20 : 20 + first]) == bytes(32 << 10)


def test_snappy_streams_one_behind_the_other_and_versions_in_the_other_byte_order() -> None:
    other_order = b"\x82SNAPPY\x00" + struct.pack("<ii", 1, 1) + compress(SNAPPY, b"two")[16:]
    assert decompress(SNAPPY, compress(SNAPPY, b"one") + other_order) == b"onetwo"


def test_lz4_blocks_are_independent_because_kafka_refuses_others() -> None:
    assert compress(LZ4, bytes(200_000))[4] & 0x20


def test_a_zstd_frame_may_leave_out_its_size() -> None:
    body = compressed_elsewhere(ZSTD, b"kafka" * 1_000)
    assert body[4] & 0xE0 == 0  # neither single segment nor a size field
    assert decompress(ZSTD, body) == b"kafka" * 1_000


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("size", [2, 1_000, 100_000])
def test_no_more_is_decompressed_than_allowed(codec: int, size: int) -> None:
    body = compress(codec, bytes(size))
    assert decompress(codec, body, max_bytes=size) == bytes(size)
    with pytest.raises(ValueError, match=f"more than {size - 1} bytes"):
        decompress(codec, body, max_bytes=size - 1)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_garbage_and_cut_off_streams_are_refused(codec: int) -> None:
    whole = compress(codec, bytes(range(256)) * 20)
    for body in (b"", b"\xff" * 30, whole[:-3], whole[:20]):
        with pytest.raises(ValueError, match=r".+"):
            decompress(codec, body)


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_a_codec_that_has_no_name_yet_is_refused(codec: int) -> None:
    with pytest.raises(ValueError, match=f"unknown compression codec {codec}"):
        decompress(codec, b"")
    with pytest.raises(ValueError, match=f"unknown compression codec {codec}"):
        compress(codec, b"")
