"""Reads the target's last record of a partition, to compare it with the source's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import SEQUENCES, FormatError, scan
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.stamp import body_of
from mirrorless.copy.partition.errors import append_error
from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.decision import Continue
    from mirrorless.protocol.cluster_client import ClusterClient


class TargetRecord(NamedTuple):
    """A record: its timestamp, in ms since the epoch, and what follows its deltas."""

    timestamp_ms: int
    rest: bytes


async def record_before(
    target: ClusterClient, node: int, copy: PartitionCopy, decision: Continue
) -> TargetRecord | None:
    """Return the target's record before the next one to append; None if it is not there.

    Raises `AppendRefused` where its batch cannot be read.
    """
    try:
        records = await target.read_at(node, copy.remote_place, decision.last_downstream)
    except kafka_errors.OffsetOutOfRangeError:
        return None  # deleted by retention
    try:
        for header, at in scan(records):
            number = (decision.sequence - 1 - header.base_sequence) % SEQUENCES
            ours = header.producer_id == copy.producer_id and header.producer_epoch == decision.epoch
            if ours and number < header.record_count:
                found = records_of(header, body_of(records, at, header))
                return TargetRecord(found.timestamps_ms[number], found.rests[number])
    except FormatError as error:
        where = f"{copy.row.remote_topic}-{copy.row.partition} at offset {decision.last_downstream}"
        raise append_error(copy, f"the batch in {where} of the target cannot be read: {error}") from None
    return None
