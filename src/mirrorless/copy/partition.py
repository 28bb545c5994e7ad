"""One partition's copy while a lease lasts: what was fetched, what is on its way, what the target acknowledged."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import SEQUENCES
from mirrorless.copy.progress import Progress
from mirrorless.errors import AppendRefused, Gap, PartitionError

if TYPE_CHECKING:
    from mirrorless.copy.progress import Announcement
    from mirrorless.copy.progress_topic import Known
    from mirrorless.copy.rows import LeaseRow
    from mirrorless.copy.wire import Place


BATCHES_IN_FLIGHT = 5
"""Brokers recognise a resent batch among the last five of a producer (`ProducerStateEntry`)."""


class State(StrEnum):
    """What a partition's copy is doing, as reports show it."""

    RESUMING = "resuming"
    COPYING = "copying"
    CAUGHT_UP = "caught up"
    HALTED = "halted"


class Pending(NamedTuple):
    """A stamped batch that the target has not acknowledged; offsets are upstream, the timestamp its latest record's."""

    batch: bytes
    base_offset: int
    last_offset: int
    record_count: int
    base_sequence: int
    max_timestamp_ms: int


def _how_far(progress: Progress) -> tuple[int, int]:
    return -1 if progress.epoch is None else progress.epoch, progress.last_offset


@dataclass(slots=True, eq=False)
class PartitionCopy:
    """State of one partition's copy; only the lease that owns it changes it.

    `fetch_from` is the next upstream offset to ask for, `next_sequence` that of the next record to stamp. `acked` is
    what the target acknowledged, `journaled` what the progress topic said at first, `written` what went into it.
    """

    row: LeaseRow
    producer_id: int
    announced: dict[int, Announcement]
    state: State = State.RESUMING
    epoch: int = 0
    fetch_from: int = 0
    next_sequence: int = 0
    queue: deque[Pending] = field(default_factory=deque)
    queued_bytes: int = 0
    in_flight: int = 0
    node: int = -1
    window: int = 1
    in_doubt: bool = False
    empty_answers: int = 0
    max_batch_bytes: int | None = None
    acked: Progress | None = None
    journaled: Progress | None = None
    written: Progress | None = None
    written_at: float = 0.0
    attempts: int = 0
    retry_at: float = 0.0
    records: int = 0
    copied_bytes: int = 0
    first_offset: int | None = None
    source_end: int = 0
    latency_ms: int | None = None
    began_ms: int | None = None
    ended_ms: int | None = None
    error: str | None = None

    @property
    def place(self) -> Place:
        """Source topic and partition."""
        return self.row.topic, self.row.partition

    @property
    def remote_place(self) -> Place:
        """Remote topic and partition."""
        return self.row.remote_topic, self.row.partition

    def error_at_fetch(self, reason: str) -> PartitionError:
        """An error at the next upstream offset to fetch."""
        return PartitionError(reason, topic=self.row.topic, partition=self.row.partition, offset=self.fetch_from)

    def error_at_append(self, reason: str) -> AppendRefused:
        """An error of the target that is not about one offset."""
        return AppendRefused(reason, topic=self.row.topic, partition=self.row.partition)

    @property
    def known_progress(self) -> Progress | None:
        """The progress to go on from: what was acknowledged in this lease, else what the progress topic said."""
        return self.acked if self.acked is not None else self.journaled

    def learn(self, known: Known | None) -> None:
        """Take over what the progress topic says now."""
        self.announced |= known.announced if known is not None else {}
        self.journaled = known.progress if known is not None else None
        if self.journaled is not None and self.acked is not None:
            self.acked = max(self.acked, self.journaled, key=_how_far)

    def resume_at(
        self, offset: int, *, epoch: int, sequence: int, last_downstream: int, node: int, remembered: bool
    ) -> None:
        """Begin to copy at upstream `offset`, whose first record gets `sequence`, by way of the target's leader `node`.

        Where the leader does not remember our producer, it would take any sequence: a batch that follows a refused one
        would be appended, and the refused one be missing. So one goes alone until the first is acknowledged.
        """
        self.in_doubt = False
        self.node = node
        self.window = BATCHES_IN_FLIGHT if remembered else 1
        self.epoch = epoch
        self.fetch_from = offset
        self.next_sequence = sequence
        self.acked = Progress(last_offset=offset - 1, sequence=sequence, epoch=epoch, last_downstream=last_downstream)
        self.state = State.COPYING

    def enqueue(self, pending: Pending) -> None:
        """Take a stamped batch that follows everything taken before."""
        if self.began_ms is None:
            self.began_ms = int(time.time() * 1000)
        self.queue.append(pending)
        self.queued_bytes += len(pending.batch)
        self.fetch_from = pending.last_offset + 1
        self.next_sequence = (self.next_sequence + pending.record_count) % SEQUENCES

    def next_to_send(self) -> Pending:
        """Take the oldest batch out of the queue, to be sent."""
        pending = self.queue.popleft()
        self.queued_bytes -= len(pending.batch)
        self.in_flight += 1
        return pending

    def acknowledge(self, pending: Pending, base_offset: int, *, now_ms: int) -> None:
        """Note that the target holds `pending` from `base_offset` on; raises `Gap` where it cannot."""
        assert self.acked is not None
        if self.in_doubt:
            return  # something before it failed; the resume will count what arrived all the same
        last = -1 if self.acked.last_downstream is None else self.acked.last_downstream
        if self.acked.sequence != pending.base_sequence or base_offset <= last:
            raise Gap(
                f"the target took records with sequence {pending.base_sequence} to its offset {base_offset}, but "
                f"sequence {self.acked.sequence} comes next, behind offset {last}: the remote topic was created again",
                topic=self.row.topic,
                partition=self.row.partition,
                offset=pending.base_offset,
            )
        self.window = BATCHES_IN_FLIGHT
        self.acked = Progress(
            last_offset=pending.last_offset,
            sequence=(pending.base_sequence + pending.record_count) % SEQUENCES,
            epoch=self.epoch,
            last_downstream=base_offset + pending.record_count - 1,
        )
        self.records += pending.record_count
        self.copied_bytes += len(pending.batch)
        if self.first_offset is None:
            self.first_offset = pending.base_offset
        self.latency_ms = max(0, now_ms - pending.max_timestamp_ms)
        self.ended_ms = now_ms
        self.attempts = 0

    def drop_queue(self) -> None:
        """Forget what was not sent; it will be fetched again."""
        self.queue.clear()
        self.queued_bytes = 0

    def progress(self) -> Progress | None:
        """What the progress topic should say now; markers and aborted records behind the last copied one are done."""
        if self.acked is None or self.acked.sequence != self.next_sequence:
            return self.acked  # something is stamped and not acknowledged
        if self.fetch_from <= self.acked.last_offset + 1:
            return self.acked
        return Progress(
            last_offset=self.fetch_from - 1,
            sequence=self.acked.sequence,
            epoch=self.acked.epoch,
            last_downstream=self.acked.last_downstream,
        )
