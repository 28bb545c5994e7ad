"""Compression of a batch's records, as in Kafka's Java client (its `Compression` classes).

Two defaults of `cramjam` do not fit and are set here: its LZ4 frames have dependent blocks, which Kafka's
`Lz4BlockOutputStream.FLG` refuses, and its levels are those of archives, not of streams.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import Final

import cramjam

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
DECOMPRESSED_BYTES: Final = 128 << 20
"""Maximum size of decompressed records: far above `message.max.bytes`, and below a function's memory."""

_LZ4_FAST = 1
_ZSTD_LEVEL = 3
_GZIP_WRAPPER = 31
_LZ4_RATIO, _ZSTD_RATIO = 255, 32768
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 << 10
_INT32 = struct.Struct(">i")


def decompress(codec: int, body: bytes, *, max_bytes: int = DECOMPRESSED_BYTES) -> bytes:
    """Return the records of a batch body whose attributes name `codec`.

    Raises `ValueError` for an unknown codec, for an invalid stream, and for more than `max_bytes` of records.
    """
    try:
        if codec == NONE:
            return body
        if codec == GZIP:
            return _gunzip(body, max_bytes)
        if codec == SNAPPY:
            return _unsnap(body, max_bytes)
        if codec == LZ4:
            if len(body) * _LZ4_RATIO <= max_bytes:
                return bytes(cramjam.lz4.decompress(body))
            with mmap.mmap(-1, max_bytes) as room:
                return room[: cramjam.lz4.decompress_into(body, room)]
        if codec == ZSTD:
            if len(body) * _ZSTD_RATIO <= max_bytes:
                return bytes(cramjam.zstd.decompress(body))
            with mmap.mmap(-1, max_bytes) as room:
                return room[: cramjam.zstd.decompress_into(body, room)]
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        raise ValueError(f"cannot decompress codec {codec}, or more than {max_bytes} bytes: {error}") from error
    raise ValueError(f"unknown compression codec {codec}")


def compress(codec: int, records: bytes) -> bytes:
    """Return the body of a batch with these records; levels are the Java producer's defaults."""
    if codec == NONE:
        return records
    if codec == GZIP:
        return zlib.compress(records, wbits=_GZIP_WRAPPER)
    if codec == SNAPPY:
        return _snap(records)
    if codec == LZ4:
        frame = cramjam.lz4.Compressor(level=_LZ4_FAST, content_checksum=False, block_linked=False)
        frame.compress(records)
        return bytes(frame.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(records, level=_ZSTD_LEVEL))
    raise ValueError(f"unknown compression codec {codec}")


def _gunzip(body: bytes, max_bytes: int) -> bytes:
    """Read every member; `zlib` because it has a size limit and, at level 6, writes three times as fast."""
    members: list[bytes] = []
    left = max_bytes
    while body or not members:
        stream = zlib.decompressobj(_GZIP_WRAPPER)
        members.append(stream.decompress(body, left + 1))
        left -= len(members[-1])
        if left < 0:
            raise ValueError(f"more than {max_bytes} bytes of records")
        if not stream.eof:
            raise ValueError("the gzip stream ends too early")
        body = stream.unused_data
    return members[0] if len(members) == 1 else b"".join(members)


def _unsnap(body: bytes, max_bytes: int) -> bytes:
    """Read Java's framing (snappy-java's `SnappyInputStream`), or plain Snappy as librdkafka may write it.

    Of the header only the magic is checked: some producers write the two versions in the other byte order.
    """
    if not body.startswith(_XERIAL_MAGIC):
        return _unsnap_block(body, max_bytes, max_bytes)
    view = memoryview(body)
    blocks: list[bytes] = []
    at, end, left = 0, len(body), max_bytes
    while at < end:
        if view[at : at + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:  # streams may be concatenated
            at += len(_XERIAL_HEADER)
            continue
        (size,) = _INT32.unpack_from(body, at)
        at += _INT32.size
        if not 0 <= size <= end - at:
            raise ValueError(f"a Snappy block of {size} bytes, but {end - at} are left")
        blocks.append(_unsnap_block(view[at : at + size], left, max_bytes))
        left -= len(blocks[-1])
        at += size
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def _unsnap_block(block: bytes | memoryview, left: int, max_bytes: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > left:
        raise ValueError(f"more than {max_bytes} bytes of records")
    return bytes(cramjam.snappy.decompress_raw(block))


def _snap(records: bytes) -> bytes:
    view = memoryview(records)
    parts = [_XERIAL_HEADER]
    for at in range(0, len(records), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK_BYTES]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)
