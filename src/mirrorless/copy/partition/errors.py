"""Errors and gaps of one partition: where, of which kind, and the text for the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.batches.header import SEQUENCES
from mirrorless.errors import AppendRefused, Gap, GapKind, PartitionError

if TYPE_CHECKING:
    from mirrorless.copy.partition.pending import Pending
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.progress.records import Progress


def fetch_error(copy: PartitionCopy, reason: str) -> PartitionError:
    """Return an error at the next source offset to fetch."""
    return PartitionError(reason, topic=copy.row.topic, partition=copy.row.partition, offset=copy.fetch_from)


def append_error(copy: PartitionCopy, reason: str) -> AppendRefused:
    """Return an error of the target that is not about one offset."""
    return AppendRefused(reason, topic=copy.row.topic, partition=copy.row.partition)


def cut_at(copy: PartitionCopy, offset: int) -> Gap:
    """Return the gap of a source log that diverges at `offset` from what was read, by its leader epochs (KIP-320)."""
    return copy.gap(
        f"the source's log was truncated at {offset} and written again from there", GapKind.TRUNCATED, offset=offset
    )


def ends_before(copy: PartitionCopy, end: int, position: int) -> Gap:
    """Return the gap of a source log that ends at `end`, before the copy's `position`."""
    return copy.gap(
        f"the source ends at {end}, {position - end} offsets before the copy's position",
        GapKind.TRUNCATED,
        offset=end,
    )


def unexpected_append(copy: PartitionCopy, pending: Pending, base_offset: int, acked: Progress, last: int) -> Gap:
    """Return the gap of an acknowledgement out of order; `last` is the target's last acknowledged offset."""
    return copy.gap(
        f"target acknowledged sequence {pending.base_sequence} at offset {base_offset}, expected sequence "
        f"{acked.sequence} after offset {last}; the remote topic was probably deleted and recreated",
        GapKind.TARGET_LOST,
        offset=pending.base_offset,
    )


def misplaced(copy: PartitionCopy, expected: int, found: int) -> Gap:
    """Return the gap of a target that has, or is about to get, source offset `expected` at its offset `found`."""
    remote, partition = copy.remote_place
    return copy.gap(
        f"source offset {expected} is at offset {found} of {remote}-{partition}: another writer took offsets there, "
        "and the copy is not identical any more",
        GapKind.MISPLACED,
        offset=expected,
    )


def unannounced(copy: PartitionCopy, epoch: int) -> Gap:
    """Return the gap of a target with records of an epoch that the progress topic does not know."""
    return copy.gap(
        f"the target holds records of epoch {epoch}, which the progress topic does not announce; the topic was "
        "probably deleted, or emptied by retention (its cleanup.policy must be compact)",
        GapKind.UNEXPLAINED,
    )


def another_topic(copy: PartitionCopy, epoch: int, topic_id: str | None) -> Gap | None:
    """Return the gap of a source topic whose id is not that which `epoch` was announced for; None if one is unknown."""
    announced = copy.announced.get(epoch)
    was = None if announced is None else announced.topic_id
    if was is None or topic_id is None or was == topic_id:
        return None
    return copy.gap(
        f"the source topic was deleted and recreated: its id is {topic_id}, the copied one had {was}",
        GapKind.CREATED_AGAIN,
    )


def hole_before(copy: PartitionCopy, pending: Pending, base_offset: int, acked: Progress, last: int) -> Gap | None:
    """Return the gap of a batch that was appended where a refused one before it belongs, None if it was not.

    `acked` was acknowledged before the refused batch, up to the target's offset `last`.
    """
    assert acked.sequence is not None
    expected = last + 1
    before = (pending.base_sequence - acked.sequence) % SEQUENCES
    if before >= SEQUENCES // 2 or not expected <= base_offset < expected + before:
        return None
    missing = expected + before - base_offset
    return copy.gap(
        f"the target appended source offset {pending.base_offset} at its offset {base_offset}, without "
        f"{missing} records before it",
        GapKind.TARGET_HOLE,
        offset=acked.last_offset + 1,
        records=missing,
    )
