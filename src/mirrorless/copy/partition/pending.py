"""A batch on its way to the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mirrorless.batches.stamp import Stamped


class Pending(NamedTuple):
    """A stamped batch that the target has not acknowledged.

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
