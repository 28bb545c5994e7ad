"""From one lease to the next: which copies continue as they are, and what the others hand to their successors."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.copy.partition.lifecycle import READABLE

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import LeaseRow
    from mirrorless.copy.partition.open_transaction import OpenTransaction
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.partition.stats import PartitionStats
    from mirrorless.progress.records import Progress


class Handover(NamedTuple):
    """What a copy hands to its successor.

    `stats` were in no report yet. `reached` is the acknowledged progress, None where an append has no answer yet.
    """

    stats: PartitionStats
    reached: Progress | None
    open_transaction: OpenTransaction | None

    def newest(self, known: Progress | None) -> Progress | None:
        """Return the later of `reached` and what the progress topic had some time ago; across epochs, the latter."""
        if self.reached is None or known is None or self.reached.epoch != known.epoch:
            return known
        return max(self.reached, known, key=attrgetter("order"))


def handover(copy: PartitionCopy) -> Handover:
    """Return what a copy hands to its successor."""
    return Handover(copy.stats, None if copy.in_doubt else copy.progress(), copy.open_transaction)


def can_continue(copy: PartitionCopy, row: LeaseRow) -> bool:
    """Whether a copy may continue as the copy of `row`, without asking the target again.

    It may not if nothing is in flight and nothing was acknowledged since the last report: only the target can show that
    it lost records or forgot the producer. Nor if it is halted, which is tried again in each lease, or if the progress
    topic shows that another process moved the partition.
    """
    if copy.state not in READABLE or copy.in_doubt or copy.error is not None:
        return False
    if copy.suspected is not None or copy.skip is not None:
        return False
    if copy.stats.latency.count == 0 and not copy.in_flight:
        return False
    known = row.said()
    if (row.remote_topic, row.origins) != (copy.row.remote_topic, copy.row.origins) or known.halt != copy.halt:
        return False
    if any(epoch > copy.epoch for epoch in known.announced.keys() - copy.announced.keys()):
        return False
    return (
        known.progress is not None
        and known.progress.epoch == copy.epoch
        and known.progress.last_offset < copy.fetch_from
    )
