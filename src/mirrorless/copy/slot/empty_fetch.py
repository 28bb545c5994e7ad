"""Finds out why a leader has no records for a copy: its position is outside the log, or none are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.copy.partition.errors import ends_before
from mirrorless.copy.partition.lifecycle import READABLE
from mirrorless.errors import GapKind
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_name
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.fetch_events import FetchEvents
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Fetched


async def out_of_range(
    source: ClusterClient, events: FetchEvents, node: int, copy: PartitionCopy, asked_from: int
) -> None:
    """Report the gap of a position `asked_from` outside the source's log, after OFFSET_OUT_OF_RANGE from its leader."""
    try:
        first = (await source.offsets(node, [copy.place], at=cluster_client.EARLIEST))[copy.place]
        latest = (await source.offsets(node, [copy.place], at=cluster_client.LATEST))[copy.place]
    except kafka_errors.KafkaError as error:
        if _waits_at(copy, asked_from):
            events.retry_later(copy, error)
        return
    if not _waits_at(copy, asked_from):
        return
    if not first.error_code and asked_from < first.offset:
        lost = first.offset - asked_from
        reason = f"the source begins at {first.offset}, {lost} offsets were deleted before they were copied"
        events.gap_found(copy, copy.gap(reason, GapKind.RETENTION, offset=asked_from, records=lost))
    elif not latest.error_code and asked_from > latest.offset:
        events.gap_found(copy, ends_before(copy, latest.offset, asked_from))
    elif copy.leader_epoch >= 0 and await _is_there(source, node, copy, asked_from):
        if _waits_at(copy, asked_from):
            reason = f"the source's log does not know the leader epoch {copy.leader_epoch} that was read before"
            gap = f"{reason}: it is another log, or was restored from an older one"
            events.gap_found(copy, copy.gap(gap, GapKind.TRUNCATED, offset=asked_from))
    elif _waits_at(copy, asked_from):
        events.retry_later(copy, f"fetch: {error_name(OFFSET_OUT_OF_RANGE)}")


async def _is_there(source: ClusterClient, node: int, copy: PartitionCopy, offset: int) -> bool:
    """Whether the leader reads at an offset without the leader epoch of the record before it."""
    try:
        fetched = await source.fetch_one(node, (copy.place, offset, -1), partition_max_bytes=1)
    except kafka_errors.KafkaError:
        return False
    return not fetched.error_code


async def pass_over_hole(
    source: ClusterClient, events: FetchEvents, node: int, copy: PartitionCopy, answer: Fetched
) -> None:
    """Pass a hole at the end of the log, which an empty response to a fetch of this partition alone shows.

    There is no record left up to the end (`LocalLog.read`), unless the position is in tiered storage, where a slow read
    has an empty response as well (`DelayedRemoteFetch`).
    """
    asked_from = copy.fetch_from
    try:
        local = (await source.offsets(node, [copy.place], at=cluster_client.EARLIEST_LOCAL))[copy.place]
    except kafka_errors.KafkaError as error:
        if _waits_at(copy, asked_from):
            events.retry_later(copy, error)
        return
    if not _waits_at(copy, asked_from):
        return  # it was resumed, or is being resumed
    if local.error_code or asked_from < local.offset:
        copy.note_problem(f"the source answers with nothing at offset {asked_from}: its tiered storage is slow")
    else:
        events.hole_at_end(copy, answer.last_stable_offset)


def _waits_at(copy: PartitionCopy, offset: int) -> bool:
    """Whether a copy is still at the position that its leader was asked about."""
    return copy.state in READABLE and copy.fetch_from == offset
