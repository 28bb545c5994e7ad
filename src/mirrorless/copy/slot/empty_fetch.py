"""Finds out why a leader has no records for a copy: its position lies outside the log, or there are none left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.copy.partition.state import READABLE, ends_before
from mirrorless.errors import GapKind
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol import cluster_client as wires
from mirrorless.protocol.broker_errors import error_name
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.keeper import Keeper
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Fetched


async def out_of_range(source: ClusterClient, keeper: Keeper, node: int, copy: PartitionCopy, asked_from: int) -> None:
    """Tell on which side of the source's log upstream offset `asked_from` lies; its leader refused to read there."""
    try:
        first = (await source.offsets(node, [copy.place], at=wires.EARLIEST))[copy.place]
        behind = (await source.offsets(node, [copy.place], at=wires.LATEST))[copy.place]
    except kafka_errors.KafkaError as error:
        if _waits_at(copy, asked_from):
            keeper.later(copy, error)
        return
    if not _waits_at(copy, asked_from):
        return
    if not first.error_code and asked_from < first.offset:
        lost = first.offset - asked_from
        reason = f"the source begins at {first.offset}, {lost} offsets were deleted before they were copied"
        keeper.gap(copy, copy.gap(reason, GapKind.RETENTION, offset=asked_from, records=lost))
    elif not behind.error_code and asked_from > behind.offset:
        keeper.gap(copy, ends_before(copy, behind.offset, asked_from))
    elif copy.leader_epoch >= 0 and await _is_there(source, node, copy, asked_from):
        if _waits_at(copy, asked_from):
            reason = f"the source's log does not know the leader epoch {copy.leader_epoch} that was read before"
            gap = f"{reason}: it is another log, or was restored from an older one"
            keeper.gap(copy, copy.gap(gap, GapKind.TRUNCATED, offset=asked_from))
    elif _waits_at(copy, asked_from):
        keeper.later(copy, f"fetch: {error_name(OFFSET_OUT_OF_RANGE)}")


async def _is_there(source: ClusterClient, node: int, copy: PartitionCopy, offset: int) -> bool:
    """Whether the leader reads at an offset if it is not told which epoch was read before."""
    try:
        fetched = await source.fetch_one(node, (copy.place, offset, -1), partition_max_bytes=1)
    except kafka_errors.KafkaError:
        return False
    return not fetched.error_code


async def pass_over_hole(
    source: ClusterClient, keeper: Keeper, node: int, copy: PartitionCopy, answer: Fetched
) -> None:
    """Go on behind a hole at the end of the log, which is what an empty answer to a fetch of one partition tells of.

    There is then no record left up to the end (`LocalLog.read`); unless the position is in tiered storage, where a slow
    read is answered with nothing as well (`DelayedRemoteFetch`).
    """
    asked_from = copy.fetch_from
    try:
        local = (await source.offsets(node, [copy.place], at=wires.EARLIEST_LOCAL))[copy.place]
    except kafka_errors.KafkaError as error:
        if _waits_at(copy, asked_from):
            keeper.later(copy, error)
        return
    if not _waits_at(copy, asked_from):
        return  # it is resumed, or was
    if local.error_code or asked_from < local.offset:
        copy.error = f"the source answers with nothing at offset {asked_from}: its tiered storage is slow"
    else:
        # A leader that has just become one may not yet know of all that is committed.
        copy.fetch_from = max(asked_from, min(copy.source_end, answer.last_stable_offset))
        copy.leader_epoch = -1  # whose the offset before this one is was not said
        keeper.moved(copy)


def _waits_at(copy: PartitionCopy, offset: int) -> bool:
    """Whether a copy is still where it was when its leader was asked."""
    return copy.state in READABLE and copy.fetch_from == offset
