"""A batch on its way to the target."""

from __future__ import annotations

from typing import Final, NamedTuple

from mirrorless.batches.stamp import Stamped

_NOTHING: Final = Stamped(b"", b"", 0)


class Pending(NamedTuple):
    """A stamped batch that the target has not acknowledged.

    With no records it is a hole: `hole` makes one.

    Offsets are the source's. `max_timestamp_ms` is the latest record's timestamp. `leader_epoch` is the source's at the
    last record, or a later one of the same fetch response; -1 if it is not known.
    """

    batch: Stamped
    base_offset: int
    last_offset: int
    record_count: int
    base_sequence: int
    max_timestamp_ms: int
    leader_epoch: int


def hole(offset: int, next_offset: int, *, sequence: int, leader_epoch: int, now_ms: int) -> Pending:
    """Return what stands for offsets without records, which markers take on a target with identical offsets."""
    return Pending(_NOTHING, offset, next_offset - 1, 0, sequence, now_ms, leader_epoch)
