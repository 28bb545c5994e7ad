"""Batches of one record each, as producers that do not linger make them by the thousand: read in one loop.

The ordinary way through `admission`, `stamp` and `records` costs several calls a batch, which dense batches do not
notice. Here a batch is one checksum and one comparison: the first bytes of such a record, its length, no attributes and
two deltas of 0 (Kafka's `DefaultRecord.writeTo`), follow from the batch's size alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import google_crc32c

from mirrorless.batches.header import CHECKSUM_STARTS_AT, HEADER_BYTES
from mirrorless.batches.records import Records, varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.batches.header import BatchHeader

_NOTHING_SPECIAL: Final = b"\x00\x00\x00"
_RECORD_AT: Final = HEADER_BYTES - CHECKSUM_STARTS_AT
_LENGTH_COUNTS_FROM: Final = 12
_RENUMBERED_BYTES: Final = 8
"""What a record may grow by where its offset and timestamp are written anew among many."""


class _Beginnings(dict[int, bytes]):
    """How a plain record begins, by all its bytes; nothing begins with what stands for a size that none has.

    Every size that was met is remembered: this is for small records only.
    """

    def __missing__(self, size: int) -> bytes:
        for width in range(1, 6):
            length = varint(size - width)
            if len(length) == width:
                self[size] = length + _NOTHING_SPECIAL
                return self[size]
        self[size] = b"\xff" * 16
        return self[size]


_beginnings = _Beginnings()


def is_lone(header: BatchHeader) -> bool:
    """Whether a batch holds one record, neither compressed nor transactional, with the producer's timestamp."""
    return header.record_count == 1 and not header.attributes and not header.last_offset_delta


def take_lone(
    records: bytes | memoryview, headers: Sequence[tuple[BatchHeader, int]], *, max_bytes: int
) -> tuple[list[Records], int]:
    """Read the records of batches that are `is_lone`, each given with the byte where it begins.

    Returns them in groups that fit a batch of `max_bytes` each, and how many batches were read: the next one does not
    match its checksum, or its record is unlike what producers write, and is for the ordinary way to judge.
    """
    groups: list[Records] = []
    offsets: list[int] = []
    timestamps_ms: list[int] = []
    rests: list[bytes] = []
    room = 0
    checksum, beginnings = google_crc32c.value, _beginnings
    for number, (header, at) in enumerate(headers):
        size = header[1] + _LENGTH_COUNTS_FROM
        covered = bytes(records[at + CHECKSUM_STARTS_AT : at + size])
        beginning = beginnings[size - HEADER_BYTES]
        if checksum(covered) != header[4] or not covered.startswith(beginning, _RECORD_AT):
            return groups, number
        rest = covered[_RECORD_AT + len(beginning) :]
        room -= len(rest) + _RENUMBERED_BYTES
        if room < 0:
            room = max_bytes - HEADER_BYTES - len(rest) - _RENUMBERED_BYTES
            offsets, timestamps_ms, rests = [], [], []
            groups.append(Records(offsets, timestamps_ms, rests))
        offsets.append(header[0])
        timestamps_ms.append(header[7])
        rests.append(rest)
    return groups, len(headers)
