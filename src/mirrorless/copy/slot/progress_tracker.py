"""Writes the progress and halts of a lease to the progress topic, and makes its reports."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mirrorless.copy.partition.lease_rows import Report
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.errors import GapKind
from mirrorless.progress.records import Halt, SourcePartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.copy.offset_syncs.feed import SyncFeed
    from mirrorless.copy.partition.pending import Pending
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.errors import Gap, PartitionError
    from mirrorless.progress.records import LeaveOut
    from mirrorless.progress.writer import ProgressWriter
    from mirrorless.settings import Flow

_EVERY_S = 1.0
_LONG_OPEN_S = 60.0
"""Kafka's default of `transaction.timeout.ms`."""
_LOOK_S = 0.1
_WRITING_S = 0.005
"""So long at once: thousands of partitions take turns, since nothing is copied while progress is written."""


class ProgressTracker:
    """Tracks the copies of a flow; `syncs` takes pairs of offsets, None if no offset syncs are wanted."""

    def __init__(self, progress_writer: ProgressWriter, flow: Flow, *, syncs: SyncFeed | None = None) -> None:
        self._progress_writer = progress_writer
        self._syncs = syncs
        self._flow = flow
        self._unwritten: dict[PartitionCopy, None] = {}
        self._next_look = 0.0

    def moved(self, copy: PartitionCopy) -> None:
        """Note that a copy's position changed."""
        self._unwritten[copy] = None
        if copy.stop is not None and _is_beyond(copy, copy.stop):
            self.caught_up(copy)

    def caught_up(self, copy: PartitionCopy) -> None:
        """Delete why a copy had halted before: it has passed that, or has nothing left to copy."""
        if copy.stop is not None:
            copy.note_stop(None)
            self._progress_writer.write(self._where(copy).stop_key(), None)

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int, *, now_ms: int) -> None:
        """Note a batch that the target acknowledged at `now_ms`, from its `base_offset` on."""
        if self._syncs is not None:
            self._syncs.appended(copy, pending, base_offset, now_ms=now_ms)

    def interrupted(self, copy: PartitionCopy) -> None:
        """Note that a copy is resumed or halted: its next append may not follow its last one."""
        if self._syncs is not None:
            self._syncs.rest(copy)

    def dropped(self, copy: PartitionCopy) -> None:
        """Write a copy's progress, and forget the copy."""
        if copy in self._unwritten:
            self._write(copy)
        self.interrupted(copy)

    def tick(self, now: float) -> None:
        """Write the progress and offset syncs that are due; looks a few times a second."""
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        self.write(now)
        self._progress_writer.poll()
        if self._syncs is not None:
            self._syncs.tick()

    def write(self, now: float | None) -> None:
        """Write progress that changed, each partition's at most once a second; all of it if `now` is None.

        The partitions that wait longest come first; after a short time the rest is left to the next call.
        """
        until = time.monotonic() + _WRITING_S
        for copy in list(self._unwritten):
            if now is not None:
                if now - copy.written_at < _EVERY_S:
                    continue
                if time.monotonic() > until:
                    break
            self._write(copy)

    def halted(self, copy: PartitionCopy, gap: Gap) -> None:
        """Write a gap, which later leases could not find again; an unknown position they find anyway."""
        if gap.kind is GapKind.UNEXPLAINED or copy.halted_at is not None:
            return
        progress = copy.known_progress
        halt = Halt(
            epoch=copy.newest_epoch,
            offset=copy.fetch_from if gap.offset is None else gap.offset,
            kind=gap.kind,
            reason=gap.reason,
            records=gap.records,
            position=0 if progress is None else progress.last_offset + 1,
        )
        self._progress_writer.write(self._where(copy).halt_key(), halt.to_bytes())
        copy.note_halt(halt)

    def stopped(self, copy: PartitionCopy, error: PartitionError) -> None:
        """Write why a copy halts, for the status; a gap that waits for a decision is written by `halted`."""
        if copy.halted_at is not None:
            return
        progress = copy.known_progress
        copied_to = 0 if progress is None else progress.last_offset + 1
        stop = Halt(epoch=copy.newest_epoch, offset=max(error.offset or 0, copied_to), reason=error.reason)
        if stop != copy.stop:
            copy.note_stop(stop)
            self._progress_writer.write(self._where(copy).stop_key(), stop.to_bytes())

    def left_out(self, copy: PartitionCopy, what: LeaveOut) -> bool:
        """Write the offsets of records to leave out, and wait; returns whether they were written.

        They may be there twice if this process dies before it continues; they are never missing.
        """
        failures = self._progress_writer.failures
        if self._flow.dead_letter_topic:
            self._progress_writer.dead_letter(self._flow.dead_letter_topic, self._where(copy), what)
        return self._progress_writer.flush(5.0) and self._progress_writer.failures == failures

    def land(self, seconds: float) -> None:
        """Write all progress and offset syncs and wait for them, at most so long."""
        until = time.monotonic() + seconds
        self.write(None)
        if not self._progress_writer.flush(seconds) and self._progress_writer.error is None:
            self._progress_writer.error = f"progress was not acknowledged by {self._progress_writer.topic} in time"
        if self._syncs is not None:
            self._syncs.land(max(0.1, until - time.monotonic()))

    def reports(self, copies: Iterable[PartitionCopy]) -> list[Report]:
        """Return what every partition did so far."""
        return [self._report(copy) for copy in copies]

    def _write(self, copy: PartitionCopy) -> None:
        del self._unwritten[copy]
        progress = copy.progress()
        if progress is not None and self._syncs is not None:
            progress = progress._replace(run=self._syncs.run_at(copy, progress))
        if progress is not None and progress != copy.written:
            self._progress_writer.write(self._where(copy).progress_key(), progress.to_bytes())
            copy.note_written(progress, at=time.monotonic())

    def _where(self, copy: PartitionCopy) -> SourcePartition:
        return SourcePartition(self._flow.progress_alias, *copy.place, self._flow.connector_name)

    def _report(self, copy: PartitionCopy) -> Report:
        stats = copy.stats
        end = copy.source_end if copy.open_transaction is None else max(copy.source_end, copy.open_transaction.log_end)
        waits = _long_transaction(copy)
        progress = copy.known_progress if copy.acked is None else copy.progress()
        next_offset = None if progress is None else progress.last_offset + 1
        return Report(
            topic=copy.row.topic,
            partition=copy.row.partition,
            remote_topic=copy.row.remote_topic,
            state=str(copy.state if waits is None else PartitionState.WAITING),
            records=stats.records,
            copied_bytes=stats.copied_bytes,
            first_offset=stats.first_offset,
            next_offset=next_offset,
            lag_records=max(0, end - (0 if _is_of_another_topic(copy) else next_offset or 0)),
            latency_ms=stats.latency.last,
            began_ms=stats.began_ms,
            ended_ms=stats.ended_ms,
            left_out=stats.left_out,
            gaps=stats.gaps,
            foreign=stats.foreign,
            skipped=stats.skipped,
            events="\n".join(stats.events),
            error=copy.error
            or waits
            or self._progress_writer.error
            or (None if self._syncs is None else self._syncs.error),
            batches=stats.latency.count,
            latency_min_ms=stats.latency.least,
            latency_max_ms=stats.latency.greatest,
            latency_avg_ms=stats.latency.average,
            age_ms=stats.age.last,
            age_min_ms=stats.age.least,
            age_max_ms=stats.age.greatest,
            age_avg_ms=stats.age.average,
            fetch_throttle_ms=stats.fetch_throttle_ms,
            produce_throttle_ms=stats.produce_throttle_ms,
            waits=copy.retry.is_never,
            fetched_bytes=stats.fetched_bytes,
            follower_bytes=stats.follower_bytes,
        )


def _is_beyond(copy: PartitionCopy, stop: Halt) -> bool:
    """Whether a copy has passed the offset where it had halted, or is in a newer epoch."""
    at = copy.acked
    if at is None or at.epoch is None or copy.in_doubt:
        return False
    return at.epoch > stop.epoch or (at.epoch == stop.epoch and at.last_offset >= stop.offset)


def _long_transaction(copy: PartitionCopy) -> str | None:
    """Return the text about a transaction that has held a copy back for long, None if there is none."""
    held_by = copy.held_by
    if held_by is None or (open_s := time.monotonic() - held_by.since) < _LONG_OPEN_S:
        return None
    return (
        f"{copy.row.topic}-{copy.row.partition}: transaction open for {open_s:.0f} s at offset {held_by.offset} blocks "
        f"the next {held_by.log_end - held_by.offset} offsets; they are copied when it commits or aborts"
    )


def _is_of_another_topic(copy: PartitionCopy) -> bool:
    """Whether the source topic was recreated: the position is one of the topic before."""
    gap = copy.suspected if copy.halted_at is None else copy.halted_at
    return copy.state is PartitionState.HALTED and gap is not None and gap.kind is GapKind.CREATED_AGAIN
