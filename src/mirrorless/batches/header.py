"""The 61-byte header of every record batch of message format v2.

Source of the layout: Kafka's `DefaultRecordBatch`. The checksum covers everything from `attributes` to the end, so
base offset and partition leader epoch may be changed without a new checksum. Formats v0 and v1 have their magic byte at
the same place, which is all that is read of them here.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAYOUT = struct.Struct(">qiibIhiqqqhii")
BEFORE_CHECKSUM = struct.Struct(">qiibI")
COVERED = struct.Struct(">hiqqqhii")
"""The layout's two halves: up to the checksum, and from the attributes on, which the checksum covers."""
_LENGTH = struct.Struct(">i")
HEADER_BYTES = _LAYOUT.size
CHECKSUM_STARTS_AT = BEFORE_CHECKSUM.size
_LENGTH_COUNTS_FROM = 12
_MAGIC_AT = 16

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SEQUENCES = 1 << 31
"""Sequence numbers are counted modulo this: after 2^31 - 1 comes 0 (Kafka's `DefaultRecordBatch.incrementSequence`)."""


class BatchHeader(NamedTuple):
    """A batch's header, field by field in wire order; offsets are the source's, times are ms since the epoch."""

    base_offset: int
    length_bytes: int
    partition_leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @classmethod
    def parse(cls, buffer: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
        """Read the header that begins at byte `at`; raises `struct.error` if fewer than 61 bytes are left."""
        return tuple.__new__(cls, _LAYOUT.unpack_from(buffer, at))  # as `_make`, without checking the length

    def pack(self) -> bytes:
        """Return the 61 bytes again."""
        return _LAYOUT.pack(*self)

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.length_bytes + _LENGTH_COUNTS_FROM

    @property
    def last_offset(self) -> int:
        """Offset of the batch's last record; compaction may have removed that record, but not its offset."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, as brokers compute it: -1 without a producer."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % SEQUENCES

    @property
    def codec(self) -> str:
        """Name of the compression codec, `unknown (n)` for an unknown one."""
        number = self.attributes & CODEC_MASK
        return CODECS[number] if number < len(CODECS) else f"unknown ({number})"

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a transaction marker."""
        return bool(self.attributes & CONTROL)

    @property
    def is_dense(self) -> bool:
        """Whether every offset of the batch still has its record."""
        return self.record_count == self.last_offset_delta + 1


class FormatError(ValueError):
    """Bytes that are not a v2 batch; `offset` is the upstream offset in them.

    `next_offset` is the offset after them and `size_bytes` their size, as far as known.
    """

    def __init__(
        self, reason: str, *, offset: int, magic: int = 2, next_offset: int | None = None, size_bytes: int = 0
    ) -> None:
        self.offset = offset
        self.next_offset = next_offset
        self.size_bytes = size_bytes
        self.magic = magic
        super().__init__(reason)


def scan(records: bytes | memoryview, at: int = 0) -> Iterator[tuple[BatchHeader, int]]:
    """Yield each whole batch of a fetched buffer, from byte `at` on, as its header and the byte where it begins.

    A fetch may end in the middle of a batch; the incomplete batch is dropped (Kafka's `ByteBufferLogInputStream`).
    Raises `FormatError` for message formats before v2 and for impossible lengths.
    """
    end = len(records)
    while end - at > _MAGIC_AT:
        (length,) = _LENGTH.unpack_from(records, at + 8)
        magic = records[at + _MAGIC_AT]
        if magic != 2:
            (offset,) = struct.unpack_from(">q", records, at)
            raise FormatError(f"message format v{magic}", offset=offset, magic=magic)
        if length < HEADER_BYTES - _LENGTH_COUNTS_FROM:
            (offset,) = struct.unpack_from(">q", records, at)
            raise FormatError(f"a batch length of {length} bytes", offset=offset)
        if at + length + _LENGTH_COUNTS_FROM > end:
            return
        yield BatchHeader.parse(records, at), at
        at += length + _LENGTH_COUNTS_FROM
