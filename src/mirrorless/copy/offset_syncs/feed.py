"""Offset syncs of a lease: one schedule per partition, one writer for all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mirrorless.copy.offset_syncs.schedule import AppendedBatch, SyncSchedule, Tail

if TYPE_CHECKING:
    from mirrorless.copy.offset_syncs.writer import SyncWriter
    from mirrorless.copy.partition.pending import Pending
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.progress.records import Progress


class SyncFeed:
    """Passes acknowledged batches to the schedules, and their syncs to the writer.

    `lag_max` is `offset.lag.max`, `index_records` `mirrorless.sync.index.records`.
    """

    def __init__(self, writer: SyncWriter, *, lag_max: int, index_records: int) -> None:
        self._writer = writer
        self._lag_max = lag_max
        self._index_records = index_records
        self._schedules: dict[PartitionCopy, SyncSchedule] = {}
        self._unwritten: dict[PartitionCopy, None] = {}

    @property
    def error(self) -> str | None:
        """Why offset syncs cannot be written at the moment, None if they can."""
        return self._writer.error

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int, *, now_ms: int) -> None:
        """Process a batch acknowledged at `now_ms`, which is on the target from `base_offset` on."""
        schedule = self._schedules.get(copy)
        if schedule is None:
            schedule = self._schedules[copy] = self._begin(copy, pending)
        _, first, last, records, *_ = pending
        append = AppendedBatch(first, last, base_offset, records, last - first + 1 == records)
        if syncs := schedule.appended(append, time_ms=now_ms):
            self._writer.write(syncs)
        self._unwritten[copy] = None

    def tick(self) -> None:
        """Write syncs that are due."""
        now_ms = _now_ms()
        for copy in list(self._unwritten):
            schedule = self._schedules[copy]
            if syncs := schedule.due(time_ms=now_ms):
                self._writer.write(syncs)
            if schedule.is_written:
                del self._unwritten[copy]
        self._writer.poll()

    def rest(self, copy: PartitionCopy) -> None:
        """Write the last sync of a partition that is resumed or halted; then it begins another lifetime."""
        schedule = self._schedules.pop(copy, None)
        self._unwritten.pop(copy, None)
        if schedule is not None:
            self._writer.write(schedule.rest(time_ms=_now_ms()))

    def land(self, seconds: float) -> None:
        """Write the last sync of every partition and wait for it; the next lifetime writes what is still missing."""
        for copy in list(self._schedules):
            self.rest(copy)
        self._writer.flush(seconds)

    def run_at(self, copy: PartitionCopy, progress: Progress) -> int | None:
        """How many records without a gap end at this progress, None if unknown or if it is not at a record."""
        schedule = self._schedules.get(copy)
        tail = None if schedule is None else schedule.tail
        return tail.run if tail is not None and tail.last_upstream == progress.last_offset else None

    def _begin(self, copy: PartitionCopy, pending: Pending) -> SyncSchedule:
        tail = None
        was = copy.written
        goes_on = was is not None and was.epoch == copy.epoch and was.last_offset + 1 == pending.base_offset
        if goes_on and was is not None and was.run is not None and was.last_downstream is not None:
            tail = Tail(last_upstream=was.last_offset, last_downstream=was.last_downstream, run=was.run)
        topic, partition = copy.place
        return SyncSchedule(
            topic=topic, partition=partition, lag_max=self._lag_max, index_records=self._index_records, tail=tail
        )


def _now_ms() -> int:
    return int(time.time() * 1000)
