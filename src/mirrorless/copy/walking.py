"""Walks the source by batch headers, counting records: how far a copy is that went on without its progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.batches.admission import AbortedTransactions
from mirrorless.batches.header import FormatError, scan
from mirrorless.batches.rebuild import offsets_of
from mirrorless.batches.stamp import body_of
from mirrorless.copy import wire as wires
from mirrorless.copy.leaders import NotNow, leader_of
from mirrorless.errors import CorruptBatch, Gap, UnsupportedBatch

if TYPE_CHECKING:
    from mirrorless.copy.partition import PartitionCopy
    from mirrorless.copy.wire import Wire

_OFFSET_OUT_OF_RANGE = 1
_PATIENCE = 6


async def walk(source: Wire, copy: PartitionCopy, offset: int, count: int) -> int:
    """Walk `count` committed records of the source from `offset` on, by batch headers; return the offset behind."""
    left = count
    while left > 0:
        node = leader_of(source, copy.place)
        (fetched,) = await source.fetch(node, [(copy.place, offset)], max_wait_ms=500, partition_max_bytes=8 << 20)
        if fetched.error_code == _OFFSET_OUT_OF_RANGE:
            reason = f"{left} records from this offset on were copied, but the source does not have them any more"
            raise _gap(copy, reason, offset)
        if fetched.error_code:
            raise wires.error_for(fetched.error_code)
        before = offset
        offset, left = _count(copy, fetched, offset, left)
        if offset == before and left > 0:
            end = fetched.last_stable_offset
            reason = f"the target holds {left} records that the source, which ends at {end}, does not have"
            if copy.attempts < _PATIENCE:
                raise NotNow(reason)  # a new leader's last stable offset may lag behind for a moment
            raise _gap(copy, f"{reason}: it lost them", offset)
    return offset


def _count(copy: PartitionCopy, fetched: wires.Fetched, offset: int, left: int) -> tuple[int, int]:
    """Count the committed records of a fetch from `offset` on; returns the offset behind them and how many are left."""
    aborted = AbortedTransactions(fetched.aborted)
    topic, partition = copy.place
    try:
        for header, at in scan(fetched.records):
            dropped = aborted.drops(header, fetched.records, at)
            if header.next_offset <= offset:
                continue
            if not dropped:
                count = header.record_count
                if header.base_offset < offset or count > left:
                    # The one batch that the position cuts has to be opened.
                    wanted = [one for one in offsets_of(header, body_of(fetched.records, at, header)) if one >= offset]
                    count = len(wanted)
                    if count > left:
                        return wanted[left], 0
                left -= count
            offset = header.next_offset
            if left == 0:
                break
    except FormatError as error:
        kind = UnsupportedBatch if error.magic != 2 else CorruptBatch
        raise kind(str(error), topic=topic, partition=partition, offset=error.offset) from error
    return offset, left


def _gap(copy: PartitionCopy, reason: str, offset: int) -> Gap:
    return Gap(reason, topic=copy.row.topic, partition=copy.row.partition, offset=offset)
