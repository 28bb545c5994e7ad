"""Decides which batches of a fetch are copied, which are dropped, and which cannot be appended.

A fetch with `read_committed` returns markers and aborted data too; the response lists the aborted transactions, and the
reader leaves them out (Kafka's `CompletedFetch`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mirrorless.batches.header import CODEC_MASK, CODECS, DELETE_HORIZON, HEADER_BYTES, LOG_APPEND_TIME, BatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterable

_ABORT = 0
_SINGLE_BYTE_VARINT = 0x80


class AbortedTransactions:
    """Follows one fetch response batch by batch and returns whose records were aborted.

    `aborted` are pairs of producer id and first offset, from the response.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]] = ()) -> None:
        self._ahead = sorted(((first, producer) for producer, first in aborted), reverse=True)
        self._active: set[int] = set()

    def drops(self, header: BatchHeader, records: bytes | memoryview, at: int) -> bool:
        """Whether the batch at byte `at` is a marker or aborted; call it for all transactional ones, in order."""
        while self._ahead and self._ahead[-1][0] <= header.last_offset:
            self._active.add(self._ahead.pop()[1])
        if header.is_control:
            if header.producer_id in self._active and _marker_type(records, at) == _ABORT:
                self._active.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._active


def _marker_type(records: bytes | memoryview, at: int) -> int:
    """Type of a control batch's only record: 0 abort, 1 commit; its key is INT16 version, INT16 type."""
    position = at + HEADER_BYTES
    for field in ("length", "attributes", "timestamp delta", "offset delta", "key length"):
        if field == "attributes":
            position += 1
            continue
        while records[position] & _SINGLE_BYTE_VARINT:
            position += 1
        position += 1
    return int(struct.unpack_from(">hh", records, position)[1])


def refusal(header: BatchHeader) -> str | None:
    """Why a data batch can neither be appended nor rebuilt, None if it can."""
    if header.attributes & CODEC_MASK >= len(CODECS):
        return f"the batch {header.base_offset} to {header.last_offset} has compression codec {header.codec}"
    return None


def fits_as_it_is(header: BatchHeader, *, wanted_from: int, max_bytes: int | None) -> bool:
    """Whether a data batch may be appended unopened.

    It may not if only records from `wanted_from` on are wanted, if compaction removed records, if its timestamps
    are the source's append time, if the cleaner set a delete horizon in it, or if it is larger than `max_bytes`.
    """
    return (
        header.base_offset >= wanted_from
        and header.record_count == header.last_offset_delta + 1
        and not header.attributes & (LOG_APPEND_TIME | DELETE_HORIZON)
        and (max_bytes is None or header.size_bytes <= max_bytes)
    )
