"""Converts message formats v0 and v1, of brokers before 0.11, to v2 batches.

A message is `offset int64, size int32, crc int32, magic int8, attributes int8, [v1: timestamp int64], key, value`; the
checksum is CRC-32 over everything from the magic byte on. A compressed message has a set of messages as its value. Its
rules for offsets and timestamps are those of Kafka's `AbstractLegacyRecordBatch` and `LegacyRecord`.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches import codecs
from mirrorless.batches.header import CODEC_MASK, LOG_APPEND_TIME, FormatError
from mirrorless.batches.rebuild import Rebuilt, merge
from mirrorless.batches.records import VARINTS, Records

if TYPE_CHECKING:
    from collections.abc import Iterator

_START = struct.Struct(">qiIbb")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_SIZE_AT, _SIZE_COUNTS_FROM, _MAGIC_AT = 8, 12, 16
_SMALLEST = 14
_NO_TIMESTAMP_MS = -1
_UINT32 = 0xFFFFFFFF


class _Message(NamedTuple):
    """One message, its timestamp in ms since the epoch and -1 in v0, its `content` key and value with lengths."""

    offset: int
    magic: int
    attributes: int
    timestamp_ms: int
    content: memoryview


def legacy_end(records: bytes | memoryview, at: int = 0) -> int:
    """Byte after the messages of v0 and v1 that begin at byte `at`: the first v2 batch, or the end of the buffer.

    A last message that the fetch truncated counts as one of them, and so does everything after an impossible size:
    `convert` drops the former and raises for the latter.
    """
    view = memoryview(records)
    try:
        for frame in _frames(view, at):
            at += len(frame)
    except FormatError:
        return len(view)
    return len(view) if _is_legacy(view, at) else at


def convert(records: bytes | memoryview, *, max_bytes: int, wanted_from: int) -> Iterator[Rebuilt]:
    """Yield v2 batches for the messages at the beginning of a fetched buffer, up to `legacy_end`.

    They equal the result of `rebuild`: at most `max_bytes` large, same codec, without offsets below `wanted_from`.
    Raises `FormatError`, with the message's offset and magic, if a checksum does not match or a message cannot be
    read, after everything before it was yielded.
    """
    return merge(messages(records, wanted_from=wanted_from), max_bytes=max_bytes)


def messages(records: bytes | memoryview, *, wanted_from: int) -> Iterator[tuple[int, Records]]:
    """Yield the input of `convert`: the attributes of each message or compressed set, and its records.

    Raises as `convert` does.
    """
    for frame in _frames(memoryview(records), 0):
        if _INT64.unpack_from(frame)[0] < wanted_from:  # for a set of messages, the offset of its last message
            continue
        message = _checked(frame)
        codec = message.attributes & CODEC_MASK
        try:
            inner = [message] if codec == codecs.NONE else _unwrapped(message, codec)
            opened = Records(
                [one.offset for one in inner],
                [one.timestamp_ms for one in inner],
                [_rest(one) for one in inner],
            )
        except (ValueError, struct.error) as error:
            raise _refused(f"cannot be read: {error}", message.offset, message.magic) from error
        append_time = message.attributes & LOG_APPEND_TIME if message.magic else 0
        yield codec | append_time, opened.wanted(wanted_from)


def _frames(view: memoryview, at: int) -> Iterator[memoryview]:
    """Each whole message of formats v0 and v1, from its offset to its end, until another format begins."""
    end = len(view)
    while _is_legacy(view, at):
        (size,) = _INT32.unpack_from(view, at + _SIZE_AT)
        if size < _SMALLEST:
            (offset,) = _INT64.unpack_from(view, at)
            raise _refused(f"has an invalid size of {size} bytes", offset, view[at + _MAGIC_AT])
        if at + _SIZE_COUNTS_FROM + size > end:
            return
        yield view[at : at + _SIZE_COUNTS_FROM + size]
        at += _SIZE_COUNTS_FROM + size


def _is_legacy(view: memoryview, at: int) -> bool:
    return len(view) - at > _MAGIC_AT and view[at + _MAGIC_AT] < 2


def _checked(frame: memoryview) -> _Message:
    offset, size, checksum, magic, attributes = _START.unpack_from(frame)
    if zlib.crc32(frame[_MAGIC_AT:]) != checksum:
        raise _refused("does not match its checksum", offset, magic)
    if not magic:
        return _Message(offset, magic, attributes, _NO_TIMESTAMP_MS, frame[_START.size :])
    if size < _SMALLEST + _INT64.size:
        raise _refused(f"is too short for a timestamp ({size} bytes)", offset, magic)
    (timestamp_ms,) = _INT64.unpack_from(frame, _START.size)
    return _Message(offset, magic, attributes, timestamp_ms, frame[_START.size + _INT64.size :])


def _unwrapped(wrapper: _Message, codec: int) -> list[_Message]:
    """Return the messages inside a compressed one, with their own offsets and timestamps."""
    if codec not in (codecs.GZIP, codecs.SNAPPY, codecs.LZ4):
        raise ValueError(f"unknown compression codec {codec} for format v{wrapper.magic}")
    _, value = _key_and_value(wrapper.content)
    if value is None:
        raise ValueError("a compressed message without value")
    stream = bytes(value)
    if codec == codecs.LZ4 and wrapper.magic == 0:
        stream = _lz4_header_corrected(stream)
    inner = [_checked(frame) for frame in _frames(memoryview(codecs.decompress(codec, stream)), 0)]
    if not inner:
        raise ValueError("a compressed message without inner messages")
    if any(one.attributes & CODEC_MASK for one in inner):
        raise ValueError("a compressed message within a compressed one")
    base = 0
    if wrapper.magic and wrapper.offset:  # some versions of librdkafka leave the outer offset 0
        base = wrapper.offset - inner[-1].offset
        if base < 0:
            raise ValueError(f"its last inner offset is {inner[-1].offset}")
    appended = wrapper.magic and wrapper.attributes & LOG_APPEND_TIME
    return [
        one._replace(
            offset=base + one.offset,
            # v0 within v1, which has no timestamp, is KAFKA-4298
            timestamp_ms=wrapper.timestamp_ms if appended and one.magic else one.timestamp_ms,
        )
        for one in inner
    ]


def _key_and_value(content: memoryview) -> tuple[memoryview | None, memoryview | None]:
    key, at = _nullable(content, 0)
    value, _ = _nullable(content, at)
    return key, value


def _nullable(content: memoryview, at: int) -> tuple[memoryview | None, int]:
    (size,) = _INT32.unpack_from(content, at)
    at += _INT32.size
    if size < 0:
        return None, at
    if at + size > len(content):
        raise ValueError(f"{size} bytes of key or value, but {len(content) - at} are left")
    return content[at : at + size], at + size


def _rest(message: _Message) -> bytes:
    """Key, value and no headers, as in a v2 record."""
    parts: list[bytes | memoryview] = []
    for field in _key_and_value(message.content):
        parts += (VARINTS[-1],) if field is None else (VARINTS[len(field)], field)
    return b"".join((*parts, VARINTS[0]))


def _lz4_header_corrected(stream: bytes) -> bytes:
    """Correct the checksum of an LZ4 frame's header: clients before 0.10 included too many bytes (KAFKA-3160)."""
    sum_at = 6 + (8 if len(stream) > 4 and stream[4] & 0x08 else 0)
    return stream[:sum_at] + bytes([_xxh32(stream[4:sum_at]) >> 8 & 0xFF]) + stream[sum_at + 1 :]


def _xxh32(data: bytes) -> int:
    """XXH32 of fewer than 16 bytes, seed 0 (xxHash specification, steps 1, 5, 6 and 7)."""
    total = 374761393 + len(data)
    whole = len(data) & ~3
    for (lane,) in struct.iter_unpack("<I", data[:whole]):
        total = _rotated(total + lane * 3266489917, 17) * 668265263
    for byte in data[whole:]:
        total = _rotated(total + byte * 374761393, 11) * 2654435761
    total &= _UINT32
    total = (total ^ total >> 15) * 2246822519 & _UINT32
    total = (total ^ total >> 13) * 3266489917 & _UINT32
    return total ^ total >> 16


def _rotated(number: int, bits: int) -> int:
    number &= _UINT32
    return number << bits | number >> (32 - bits)


def _refused(what: str, offset: int, magic: int) -> FormatError:
    return FormatError(f"the message at offset {offset} (format v{magic}) {what}", offset=offset, magic=magic)
