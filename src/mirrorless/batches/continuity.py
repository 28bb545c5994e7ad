"""Whether records continue a log that was read before, and how its offsets are spread over its bytes. No I/O."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

_HEAD: Final = struct.Struct(">qiib")
_BEFORE_EPOCH_BYTES: Final = 12
_MAGIC_WITH_EPOCH: Final = 2
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_DELTA_AT: Final = 23


class OffsetSpread(NamedTuple):
    """The whole batches of an answer: how many offsets they cover, their bytes, and those of the largest."""

    offsets: int
    size_bytes: int
    largest_bytes: int


def offset_spread(records: bytes | memoryview) -> OffsetSpread | None:
    """Return how offsets are spread over the whole batches of an answer; None without one of message format 2."""
    first = following = at = largest = 0
    while at + _DELTA_AT + _LAST_OFFSET_DELTA.size <= len(records):
        base_offset, length, _, magic = _HEAD.unpack_from(records, at)
        size = _BEFORE_EPOCH_BYTES + length
        if magic < _MAGIC_WITH_EPOCH or at + size > len(records):
            break
        if not at:
            first = base_offset
        following = base_offset + _LAST_OFFSET_DELTA.unpack_from(records, at + _DELTA_AT)[0] + 1
        largest = max(largest, size)
        at += size
    return OffsetSpread(following - first, at, largest) if at and following > first else None


def continues(records: bytes | memoryview, *, position: int, leader_epoch: int) -> bool:
    """Whether `records` are of the same log as the record before the offset `position`, which has `leader_epoch`.

    A leader only appends, so two logs that have one offset from the same leader epoch are equal up to there (KIP-101).
    Compared is the last batch that begins before `position`, or else the first one. A `leader_epoch` of -1 is not
    known, and is not compared. False also for message formats before 2, which have no epochs.
    """
    found, at = None, 0
    while at + _HEAD.size <= len(records):
        base_offset, length, epoch, magic = _HEAD.unpack_from(records, at)
        if magic < _MAGIC_WITH_EPOCH:
            return False
        if found is not None and base_offset >= position:
            break
        found = epoch
        at += _BEFORE_EPOCH_BYTES + length
    return found is not None and (leader_epoch < 0 or found == leader_epoch)
