"""What is done with one partition of a fetch response: its records are queued, anything else is reported."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mirrorless.batches.exact_intake import Hole, take_exactly
from mirrorless.batches.header import FormatError
from mirrorless.batches.intake import PassedTo, take_in
from mirrorless.batches.producers import LoopedBatch
from mirrorless.batches.stamp import stamp
from mirrorless.clusters.connection_errors import grant
from mirrorless.copy.partition.errors import cut_at, fetch_error
from mirrorless.copy.partition.loop_check import loop_at
from mirrorless.copy.partition.pending import Pending, hole
from mirrorless.errors import without_frames
from mirrorless.kafka_python.receive_buffers import outlasts
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.leaders import TROUBLE
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.batches.passthrough import Ready
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.fetch_events import FetchEvents
    from mirrorless.copy.slot.send_queues import SendQueues
    from mirrorless.protocol.requests import Fetched

_MERGED_BYTES = 768 << 10
"""Below Kafka's default of `max.message.bytes`, records uncompressed."""


class ResponseIntake:
    """Takes the responses of a fetcher, of copies that are still at the offset that was asked for.

    `set_aside` is called for a copy whose position is after the last stable offset, as after a takeover.
    """

    def __init__(
        self,
        *,
        queues: SendQueues,
        events: FetchEvents,
        bounded: bool,
        set_aside: Callable[[PartitionCopy], None],
    ) -> None:
        self._queues = queues
        self._events = events
        self._bounded = bounded
        self._set_aside = set_aside

    def take(self, copy: PartitionCopy, fetched: Fetched) -> None:
        """Take what the leader answered."""
        asked_from = copy.fetch_from
        if fetched.error_code:
            self._failed(copy, fetched)
            return
        if fetched.diverges_at is not None:
            self._events.gap_found(copy, cut_at(copy, min(fetched.diverges_at, asked_from)))
            return
        stable, empty, was_held = fetched.last_stable_offset, not fetched.records, copy.open_transaction is not None
        copy.note_response(stable=stable, high=fetched.high_watermark, empty=empty, bounded=self._bounded)
        if empty and stable > copy.fetch_from:
            return
        if empty and stable < copy.fetch_from and (was_held or copy.open_transaction is not None):
            self._set_aside(copy)
        self._take_records(copy, fetched)

    def take_from_follower(self, copy: PartitionCopy, fetched: Fetched) -> bool:
        """Take what a follower answered; False if that shows nothing, so that the leader has to be asked (KIP-392).

        So it is with errors, with a log that diverges, and with a damaged batch, which the leader may have intact. An
        answer without records shows nothing either, also if the follower's end is before the copy's position, since it
        learns the high watermark later than the leader's clients: if the leader has more, the copy waits for the
        follower for a few answers (`PartitionCopy.empty_answers`).
        """
        stable, empty = fetched.last_stable_offset, not fetched.records
        if fetched.error_code or fetched.diverges_at is not None:
            return False
        copy.note_follower_response(stable=stable, empty=empty, bounded=self._bounded)
        if not empty:
            return self._take_records(copy, fetched, from_follower=True)
        if stable < copy.fetch_from:
            self._set_aside(copy)
        if not copy.is_behind:
            self._events.position_changed(copy)
        return True

    def _take_records(self, copy: PartitionCopy, fetched: Fetched, *, from_follower: bool = False) -> bool:
        """Queue the records; False if a follower's are damaged, after those before the damage were queued."""
        intact = True
        try:
            self._queue(copy, fetched)
        except FormatError as error:
            if from_follower:
                intact = False
            else:
                self._events.batch_damaged(copy, without_frames(error))
        except LoopedBatch as found:
            self._events.halt(copy, loop_at(copy, found.offset), finish_queue=True)
        if copy.queue and not self._queues.offer(copy):
            self._events.retry_later(
                copy, f"{copy.row.remote_topic}-{copy.row.partition} has a new leader, or was deleted and recreated"
            )
        self._events.position_changed(copy)
        return intact

    def _queue(self, copy: PartitionCopy, fetched: Fetched) -> None:
        now_ms = int(time.time() * 1000)
        for taken in self._taken(copy, fetched):
            if isinstance(taken, Hole):
                pending = hole(
                    taken.offset,
                    taken.next_offset,
                    sequence=copy.next_sequence,
                    leader_epoch=taken.leader_epoch,
                    now_ms=now_ms,
                )
                self._queues.enqueue(copy, pending, now_ms=now_ms)
                continue
            if isinstance(taken, PassedTo):
                copy.stats.passed_copies(taken.skipped)
                copy.advance(taken.offset, taken.leader_epoch)
                continue
            if not copy.row.is_first and not copy.window.remembers(taken.header.max_timestamp_ms, now_ms):
                self._events.leave_to_next_lease(copy, _left_to_another_run(copy))
                return
            batch = stamp(
                taken.header,
                taken.body,
                producer_id=copy.producer_id,
                producer_epoch=copy.epoch,
                base_sequence=copy.next_sequence,
            )
            self._queues.enqueue(
                copy,
                Pending(
                    batch,
                    taken.base_offset,
                    taken.last_offset,
                    taken.header.record_count,
                    copy.next_sequence,
                    taken.header.max_timestamp_ms,
                    taken.leader_epoch,
                ),
                now_ms=now_ms,
            )

    def _taken(self, copy: PartitionCopy, fetched: Fetched) -> Iterator[Ready | PassedTo | Hole]:
        until = copy.source_end if self._bounded else None
        merge_below = _MERGED_BYTES if copy.window.merges else 0
        if copy.exact is not None:
            return take_exactly(
                fetched.records,
                fetched.aborted,
                wanted_from=copy.fetch_from,
                until=until,
                max_batch_bytes=copy.intake.max_batch_bytes,
                merge_below=merge_below,
                opposite=copy.opposite,
            )
        return take_in(
            fetched.records,
            fetched.aborted,
            wanted_from=copy.fetch_from,
            until=until,
            max_batch_bytes=copy.intake.max_batch_bytes,
            verify=copy.intake.verifies,
            views=outlasts(fetched.records),
            merge_below=merge_below,
            opposite=copy.opposite,
            skipped=copy.local.ids,
        )

    def _failed(self, copy: PartitionCopy, fetched: Fetched) -> None:
        name = error_name(fetched.error_code)
        if fetched.error_code == OFFSET_OUT_OF_RANGE:
            return  # handled after all other partitions, see `out_of_range`
        if issubclass(error_for(fetched.error_code), TROUBLE):
            self._events.retry_later(copy, f"fetch: {name}")
        else:
            name += grant(fetched.error_code, "READ on the topic")
            self._events.halt(copy, fetch_error(copy, f"the source refuses to be read: {name}"))


def _left_to_another_run(copy: PartitionCopy) -> str:
    return (
        f"another run of this flow copies {copy.row.topic}-{copy.row.partition}, whose next record is too old for the "
        "target to tell two runs apart; this run continues when the other has stopped"
    )
