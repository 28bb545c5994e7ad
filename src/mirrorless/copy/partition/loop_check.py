"""Recognises records that a flow of another file copied from the target to the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.batches.producers import NO_OPPOSITE, OppositeCopy
from mirrorless.errors import Loop
from mirrorless.progress.epoch_kind import EpochKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.copy.partition.lease_rows import LeaseRow
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.progress.records import Announcement

_DECIDED: Final = frozenset({EpochKind.RESET, EpochKind.TURN, EpochKind.AFTER_MIRRORMAKER2, EpochKind.OTHER})
"""An operator has decided where such an epoch begins, and so that what came back before may be copied."""


def opposite_copy(producer_id: int, announced: Mapping[int, Announcement], epoch: int, row: LeaseRow) -> OppositeCopy:
    """Return the opposite copy, by this producer, and the source offset from which on its records are not copied.

    After a reset that is the source's end when it was announced, else the first offset. Announcements of releases
    before 0.2.0 have no source end: then it is the end that the lease's plan saw.
    """
    own = announced.get(epoch)
    if own is not None and not any(one.kind in _DECIDED for number, one in announced.items() if number <= epoch):
        return OppositeCopy(producer_id, 0)
    since = None if own is None else own.source_end
    if since is None:
        since = row.source_end or None  # 0 may be an end that is not known
    return NO_OPPOSITE if since is None else OppositeCopy(producer_id, since)


def loop_at(copy: PartitionCopy, offset: int) -> Loop:
    """Return the error of a record at source offset `offset` that another flow copied here from the target."""
    topic, partition = copy.place
    remote, _ = copy.remote_place
    own = copy.announced.get(copy.epoch)
    came = f"another flow copied this record here from {remote}-{partition} of the target"
    reset = f"`mirrorless offsets reset FILE --topic {topic} --offset latest` (or another offset)"
    if own is not None and own.source_end is not None and offset < own.source_end:
        reason = (
            f"{came} before this flow began, and it would be there twice; to move back, put both flows into one file "
            "and use `mirrorless failback`; to copy both ways, set mirrorless.both.directions=skip there; or choose "
            f"where to start: {reset}, of which `earliest` copies such records again"
        )
    else:
        reason = (
            f"{came} after this flow began, so the two copy in a loop; stop the other flow, or leave {topic} out of "
            f"one of them (topics.exclude), then run {reset} to resume after them"
        )
    return Loop(reason, topic=topic, partition=partition, offset=offset)
