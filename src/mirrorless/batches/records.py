"""The records of a v2 batch, parsed only as far as needed to renumber them (Kafka's `DefaultRecord`).

A record is `length varint, attributes int8, timestamp delta varlong, offset delta varint, rest`, where the rest is key,
value and headers and is never parsed. Every integer is zigzag-encoded; `unsigned_varint` is for lengths of the
protocol. The loops in `take_apart` and `put_together` run once per record, hence their style; varints of numbers below
2^14 are cached.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

_REMEMBERED = 1 << 14
_INT64_END = 1 << 63
_SANE_MS = 1 << 62
_VARLONG_BITS = 70
_ZIGZAG = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))


class Records(NamedTuple):
    """Records as three columns: upstream offsets, timestamps (ms since the epoch, -1 is none) and the rests."""

    offsets: list[int]
    timestamps_ms: list[int]
    rests: list[bytes]

    def part(self, start: int, end: int) -> Records:
        """Records number `start` to `end`, excluding `end`."""
        return Records(self.offsets[start:end], self.timestamps_ms[start:end], self.rests[start:end])

    def wanted(self, start: int, until: int | None = None) -> Records:
        """Records with an offset of at least `start` and, unless that is None, below `until`."""
        kept = [number for number, at in enumerate(self.offsets) if at >= start and (until is None or at < until)]
        if len(kept) == len(self.offsets):
            return self
        offsets, timestamps_ms, rests = self
        return Records(
            [offsets[number] for number in kept],
            [timestamps_ms[number] for number in kept],
            [rests[number] for number in kept],
        )

    def extend(self, other: Records) -> None:
        """Append the other's records to these."""
        self.offsets.extend(other.offsets)
        self.timestamps_ms.extend(other.timestamps_ms)
        self.rests.extend(other.rests)


class _Varints(dict[int, bytes]):
    """Zigzag varints after a prefix, encoded when first used; the short ones are cached."""

    def __init__(self, prefix: bytes = b"") -> None:
        super().__init__()
        self._prefix = prefix

    def __missing__(self, number: int) -> bytes:
        encoded = self._prefix + varint(number)
        if -_REMEMBERED < number < _REMEMBERED:
            self[number] = encoded
        return encoded


VARINTS = _Varints()
"""Maps any number to its varint, for loops."""
_NO_ATTRIBUTES = b"\x00"
_TIMESTAMP_DELTAS = _Varints(_NO_ATTRIBUTES)


def varint(number: int) -> bytes:
    """Encode as Kafka's `ByteUtils.writeVarlong` (and `writeVarint`, if the number has 32 bits)."""
    number = _int64(number)
    return unsigned_varint((number << 1) ^ (number >> 63))


def unsigned_varint(number: int) -> bytes:
    """Encode a number from 0 on as Kafka's `ByteUtils.writeUnsignedVarint`, without its limit of 32 bits."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def take_apart(  # noqa: PLR0912, PLR0915 - a call per record would cost more than the whole loop
    records: bytes, *, count: int, base_offset: int, base_timestamp_ms: int
) -> Records:
    """Read the `count` uncompressed records of a batch; the bases are its header's.

    A record's timestamp is always base plus delta, also if the cleaner replaced the base by its delete horizon
    (`MemoryRecordsBuilder` then writes the deltas relative to the horizon). Raises `ValueError` for invalid records.
    """
    offsets: list[int] = []
    timestamps_ms: list[int] = []
    rests: list[bytes] = []
    at = 0
    unusual = not -_SANE_MS < base_timestamp_ms < _SANE_MS
    zigzag, add_offset, add_timestamp, add_rest = _ZIGZAG, offsets.append, timestamps_ms.append, rests.append
    try:
        for _ in range(count):
            first = records[at]
            if first < 0x80:
                at += 1
                end = at + zigzag[first]
            elif (second := records[at + 1]) < 0x80:
                at += 2
                raw = (first & 0x7F) | second << 7
                end = at + ((raw >> 1) ^ -(raw & 1))
            else:
                length, at = _long_varint(records, at)
                end = at + length

            first = records[at + 1]
            if first < 0x80:
                at += 2
                add_timestamp(base_timestamp_ms + zigzag[first])
            elif (second := records[at + 2]) < 0x80:
                at += 3
                raw = (first & 0x7F) | second << 7
                add_timestamp(base_timestamp_ms + ((raw >> 1) ^ -(raw & 1)))
            else:
                delta, at = _long_varint(records, at + 1)
                add_timestamp(base_timestamp_ms + delta)
                unusual = unusual or not -_SANE_MS < delta < _SANE_MS

            first = records[at]
            if first < 0x80:
                at += 1
                add_offset(base_offset + zigzag[first])
            elif (second := records[at + 1]) < 0x80:
                at += 2
                raw = (first & 0x7F) | second << 7
                add_offset(base_offset + ((raw >> 1) ^ -(raw & 1)))
            else:
                delta, at = _long_varint(records, at)
                add_offset(base_offset + delta)

            if at > end:
                raise ValueError(f"record {len(rests)} ends before its offset")
            add_rest(records[at:end])
            at = end
    except IndexError:
        raise ValueError(f"only {len(rests)} of {count} records are complete") from None
    if at != len(records):
        raise ValueError(f"{count} records have {at} bytes, but the batch has {len(records)}")
    if unusual:
        timestamps_ms = [_int64(timestamp) for timestamp in timestamps_ms]
    return Records(offsets, timestamps_ms, rests)


def put_together(timestamps_ms: list[int], rests: list[bytes]) -> bytes:
    """Write the records, uncompressed, numbered from 0 and with their timestamps relative to the first one."""
    varint_of, timestamp_delta_of = VARINTS.__getitem__, _TIMESTAMP_DELTAS.__getitem__
    base = timestamps_ms[0] if timestamps_ms else 0
    deltas = [timestamp_delta_of(timestamp - base) for timestamp in timestamps_ms]
    records = [*map(b"".join, zip(deltas, map(varint_of, range(len(rests))), rests, strict=True))]
    return b"".join(chain.from_iterable(zip(map(varint_of, map(len, records)), records, strict=True)))


def _long_varint(buffer: bytes, at: int) -> tuple[int, int]:
    """Value and end of a varint of any length."""
    raw = shift = 0
    while True:
        byte = buffer[at]
        raw |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7
        if shift >= _VARLONG_BITS:
            raise ValueError("a varint of more than ten bytes")


def _int64(number: int) -> int:
    """Wrap around as Java's `long` does, so that timestamps far apart get the same values as there."""
    return (number + _INT64_END) % (2 * _INT64_END) - _INT64_END
