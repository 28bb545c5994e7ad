"""What the source has at one offset, to compare the target's tail, and where its first record is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.exact_intake import Hole, take_exactly
from mirrorless.batches.header import SEQUENCES, FormatError, scan
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.record_counter import RecordCounter
from mirrorless.batches.stamp import body_of
from mirrorless.copy.partition.errors import cut_at, ends_before, fetch_error
from mirrorless.copy.resume.source_walk import count, counted
from mirrorless.errors import GapKind
from mirrorless.log_walk import LogEnd, RecordsGone, committed
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import NotNow, leader_of
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.protocol.cluster_client import ClusterClient

_FETCH_BYTES = 1 << 20


async def first_record(source: ClusterClient, copy: PartitionCopy, start: int) -> int:
    """Return the offset of the first record from `start` on, or as far as one fetch shows that there is none."""
    node = leader_of(source, copy.place)
    at = start
    while True:
        fetched = await source.fetch_one(node, (copy.place, at, -1), partition_max_bytes=_FETCH_BYTES)
        if fetched.error_code:
            raise error_for(fetched.error_code)
        reached = at
        try:
            for taken in take_exactly(fetched.records, fetched.aborted, wanted_from=at):
                if not isinstance(taken, Hole):
                    return taken.base_offset
                reached = taken.next_offset
        except FormatError:
            return reached
        if reached == at:
            return at
        at = reached


async def compare_tail(
    source: ClusterClient, target: ClusterClient, node: int, copy: PartitionCopy, *, log_start: int, log_end: int
) -> None:
    """Compare what both sides have at the target's last offset; raises `Gap` where the source has another record.

    Nothing is compared where the target is empty, or either side has deleted the record there.
    """
    at = log_end - 1
    if log_start > at:
        return
    ours = await _record_of_target(target, node, copy, at)
    if isinstance(ours, _Gone):
        return
    leader = leader_of(source, copy.place)
    first = (await source.offsets(leader, [copy.place], at=cluster_client.EARLIEST))[copy.place]
    if first.error_code:
        raise error_for(first.error_code)
    if first.offset > at:
        return
    epoch = -1
    if (progress := copy.known_progress) is not None and progress.last_offset == at:
        epoch = -1 if progress.leader_epoch is None else progress.leader_epoch
    # With the epoch of the record at `at`, a source log that was cut and written again is noticed (KIP-320).
    theirs = await _record_of_source(source, leader, copy, at, epoch)
    if ours != theirs and theirs is not None:
        has = "no record" if ours is None else "another one"
        raise copy.gap(
            f"the source has a record at offset {at}, {copy.row.remote_topic}-{copy.row.partition} has {has} there: "
            "the copy is not identical",
            GapKind.MISPLACED,
            offset=at,
        )


async def compare_count(source: ClusterClient, copy: PartitionCopy, *, sequence: int, log_end: int) -> None:
    """Compare how many records both sides have since the progress; raises `Gap` where the target has fewer.

    `sequence` is the copy's next one. Nothing is compared where the source has deleted some of these offsets.
    """
    progress = copy.known_progress
    if progress is None or progress.sequence is None or progress.last_offset + 1 >= log_end:
        return
    start = progress.last_offset + 1
    first = (await source.offsets(leader_of(source, copy.place), [copy.place], at=cluster_client.EARLIEST))[copy.place]
    if first.error_code:
        raise error_for(first.error_code)
    held = (sequence - progress.sequence) % SEQUENCES
    if first.offset > start or held >= SEQUENCES // 2:
        return
    records = await count(source, copy, start=start, end=log_end)
    if records > held:
        raise copy.gap(
            f"the source has {records} records from offset {start} to {log_end}, "
            f"{copy.row.remote_topic}-{copy.row.partition} has {held}: the copy is not identical",
            GapKind.MISPLACED,
            offset=start,
            records=records - held,
        )


async def compare_records(
    source: ClusterClient, target: ClusterClient, copy: PartitionCopy, *, start: int, end: int
) -> bool:
    """Compare how many records both sides have from `start` to the end of the target's log; raises `Gap` if not equal.

    Offsets that one side has deleted are left out, and nothing is compared where compaction removed records. Returns
    False where the source's records are not all known: a transaction is open, or its log ends before.
    """
    first = start
    for client, place in ((source, copy.place), (target, copy.remote_place)):
        begins = (await client.offsets(leader_of(client, place), [place], at=cluster_client.EARLIEST))[place]
        if begins.error_code:
            raise error_for(begins.error_code)
        first = max(first, begins.offset)
    if first >= end:
        return True
    counters = (
        await counted(source, copy, start=first, end=end),
        await _counted_on_target(target, copy, start=first, end=end),
    )
    if counters[0].offset < end:
        return False
    ours, theirs = (one.counts.get(end, one.records) for one in counters)
    if ours != theirs and not any(one.cleaned for one in counters):
        remote = f"{copy.row.remote_topic}-{copy.row.partition}"
        raise copy.gap(
            f"the source has {ours} records from offset {first} to {end}, where {remote} ends, {remote} has {theirs}: "
            "the copy is not identical",
            GapKind.MISPLACED,
            offset=first,
            records=abs(ours - theirs),
        )
    return True


async def _counted_on_target(target: ClusterClient, copy: PartitionCopy, *, start: int, end: int) -> RecordCounter:
    counter = RecordCounter(start, [end])
    try:
        async for batch in committed(target, copy.remote_place, counter, until=end):
            if isinstance(batch, LogEnd):
                raise NotNow(f"offset {end - 1} of the remote partition cannot be read yet: a transaction is open")
            counter.add(batch)
    except (RecordsGone, FormatError) as error:
        raise NotNow(f"the remote partition cannot be read: {error}") from None
    return counter


async def _record_of_source(
    source: ClusterClient, leader: int, copy: PartitionCopy, at: int, epoch: int
) -> bytes | None:
    """Return the source's record at an offset without its deltas; None if there is none.

    `epoch` is the leader epoch of the record, or -1: with it a log that was cut and written again is noticed (KIP-320).
    """
    probe = await source.fetch_one(leader, (copy.place, at + 1, epoch), partition_max_bytes=1)
    if probe.diverges_at is not None:
        raise cut_at(copy, min(probe.diverges_at, at + 1))
    fetched = await source.fetch_one(leader, (copy.place, at, -1))
    codes = {fetched.error_code, probe.error_code}
    if OFFSET_OUT_OF_RANGE in codes:
        end = (await source.offsets(leader, [copy.place], at=cluster_client.LATEST))[copy.place]
        if not end.error_code and end.offset <= at:
            raise ends_before(copy, end.offset, at + 1)
    for code in codes - {0}:
        raise error_for(code)
    try:
        for taken in take_exactly(fetched.records, fetched.aborted, wanted_from=at, until=at + 1):
            return None if isinstance(taken, Hole) else records_of(taken.header, bytes(taken.body)).rests[0]
    except FormatError as error:
        raise fetch_error(copy, f"the source's batch at offset {at} cannot be read: {error}") from None
    if fetched.last_stable_offset <= at:
        raise NotNow(f"the source's record at offset {at} is not stable yet")
    return None  # compaction removed all records from there on


class _Gone(NamedTuple):
    """Compaction removed the record."""


async def _record_of_target(target: ClusterClient, node: int, copy: PartitionCopy, at: int) -> bytes | _Gone | None:
    """Return the target's record at an offset without its deltas; None if a marker is there."""
    records = await target.read_at(node, copy.remote_place, at)
    for header, begins in scan(records):
        if header.next_offset <= at:
            continue
        if header.base_offset > at:
            break
        if header.is_control:
            return None
        opened = records_of(header, body_of(records, begins, header)).wanted(at, at + 1)
        return opened.rests[0] if opened.rests else _Gone()
    return _Gone()
