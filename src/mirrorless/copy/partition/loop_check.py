"""Detects that a flow of another file copies the target's records back into the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.batches.producers import NO_OPPOSITE, OppositeCopy
from mirrorless.errors import Loop

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import LeaseRow
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.progress.records import Announcement


def opposite_copy(producer_id: int, announced: Announcement | None, row: LeaseRow) -> OppositeCopy:
    """Return the opposite copy, by this producer; its records are a loop from the announced source end on.

    Announcements of earlier releases have no source end: then from the end on that the lease's plan saw.
    """
    since = None if announced is None else announced.source_end
    if since is None:
        since = row.source_end or None  # 0 may be an end that is not known
    return NO_OPPOSITE if since is None else OppositeCopy(producer_id, since)


def loop_at(copy: PartitionCopy, offset: int) -> Loop:
    """Return the error of a record at source offset `offset` that another flow copied here from the target."""
    topic, partition = copy.place
    remote, _ = copy.remote_place
    reason = (
        f"another flow copied this record here from {remote}-{partition} of the target after this flow began, so the "
        f"two copy in a loop; stop the other flow, or leave {topic} out of one of them (topics.exclude), then run "
        f"`mirrorless offsets reset FILE --topic {topic} --offset latest` (or another offset) to resume after them"
    )
    return Loop(reason, topic=topic, partition=partition, offset=offset)
