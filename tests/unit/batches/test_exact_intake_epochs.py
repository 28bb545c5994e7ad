"""A hole that ends with a marker of a new leader's epoch has that epoch, or the leader calls the log truncated."""

from __future__ import annotations

from uuid import UUID

from mirrorless.batches.exact_intake import Hole, take_exactly
from mirrorless.batches.header import TRANSACTIONAL
from tests.simulation.log import PartitionLog, batch_of


def test_a_marker_that_begins_an_epoch() -> None:
    log = PartitionLog(UUID(int=1))
    log.write(batch_of([(None, b"one")], timestamp_ms=0))
    log.write(
        batch_of(
            [(None, b"two")],
            timestamp_ms=0,
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            attributes=TRANSACTIONAL,
        )
    )
    log.lead(1)
    log.mark(7, 0, commit=True, now_ms=0)
    data = log.read(0, below=log.stable, max_bytes=1 << 20)
    *_, last = take_exactly(data, log.aborted_between(0, log.stable), wanted_from=0, until=None)
    assert isinstance(last, Hole)
    assert (last.offset, last.next_offset, last.leader_epoch) == (2, 3, 1)
    assert log.diverges(last.next_offset, last.leader_epoch) is None
