"""Fetches from the source's leaders and queues the records as stamped batches for the appender."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mirrorless.batches.header import FormatError
from mirrorless.batches.intake import PassedTo, take_in
from mirrorless.batches.reverse_copy import LoopedBatch
from mirrorless.batches.stamp import stamp
from mirrorless.clusters.connection_errors import grant
from mirrorless.copy.partition.errors import cut_at, fetch_error
from mirrorless.copy.partition.lifecycle import READABLE
from mirrorless.copy.partition.loop_check import loop_at
from mirrorless.copy.partition.pending import Pending
from mirrorless.copy.slot.empty_fetch import out_of_range, pass_over_hole
from mirrorless.copy.slot.fetch_queue import FetchQueue
from mirrorless.errors import without_frames
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.receive_buffers import outlasts
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.fetch_session import FetchSession
from mirrorless.protocol.leaders import TROUBLE
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.fetch_events import FetchEvents
    from mirrorless.copy.slot.rate_limit import RateLimit
    from mirrorless.copy.slot.send_queues import SendQueues
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Fetched

_WAIT_MS = 500
_CROWDED_WAIT_MS = 10
_IDLE_S = 0.02
_LONGEST_PAUSE_S = 0.1
_CROWDED_S = 0.002
_PARTITION_BYTES = 2 << 20
_RESPONSE_BYTES = 8 << 20
_MERGED_BYTES = 768 << 10
"""Below Kafka's default of `max.message.bytes`, records uncompressed."""
_SHARES = 8
"""The buffer has so many shares; the copies with something queued may fill one of them together."""
_DOUBTS = 3
_LOOK_EVERY_S = 0.5
"""Where responses are full, nearly all partitions without records only wait for their turn."""


class Fetcher:
    """Fetches the partitions of `copies` from their source leaders, until `stop`.

    `bounded` leaves out what follows each row's `source_end`; `buffer_bytes` bounds what waits for the target, `budget`
    the bytes per second. A partition that had its turn goes to the end of its leader's queue, so that none starves; in
    a session the leader does that. Where many partitions lag, only as many are asked for as may fill a response, and
    without a session.

    Memory: besides what waits, each source leader has one response in flight, of `_RESPONSE_BYTES` or one batch, and
    the source keeps the buffers of some responses (`kafka_python.receive_buffers`).
    """

    def __init__(
        self,
        *,
        source: ClusterClient,
        copies: Mapping[TopicPartition, PartitionCopy],
        queues: SendQueues,
        send: Callable[[], None],
        events: FetchEvents,
        bounded: bool,
        buffer_bytes: int,
        budget: RateLimit,
        sleep: Callable[[float], Any],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._source = source
        self._copies = copies
        self._queues = queues
        self._send = send
        self._events = events
        self._bounded = bounded
        self._buffer_bytes = buffer_bytes
        self._budget = budget
        self._sleep = sleep
        self._spawn = spawn
        self._led: dict[int, FetchQueue] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._aside: set[PartitionCopy] = set()
        self._stopped = False
        self._hurried = False

    def stop(self) -> None:
        """Queue nothing more; the response to a fetch in flight is dropped."""
        self._stopped = True

    def hurry(self, hurried: bool) -> None:
        """Have leaders answer soon even without records: a fetch in flight delays a partition that is to be added."""
        self._hurried = hurried

    def assign(self) -> None:
        """Group the copies by their leaders, and fetch from each leader in a loop.

        Copies keep their order in the queues, or those at the end would never be served.
        """
        queued = dict.fromkeys(
            copy for queue in self._led.values() for copy in queue if self._copies.get(copy.place) is copy
        )
        for queue in self._led.values():
            queue.clear()
        for copy in _readable(queued | dict.fromkeys(self._copies.values())):
            self._join(copy)
        self._led = {node: queue for node, queue in self._led.items() if len(queue)}

    def add(self, copy: PartitionCopy) -> None:
        """Fetch a copy that was resumed."""
        for session in self._sessions.values():
            session.renew(copy.place)
        self._join(copy)

    def _join(self, copy: PartitionCopy) -> None:
        if copy in self._aside:
            return
        node = self._source.leader(copy.place)
        if node is None:
            self._events.retry_later(copy, f"{copy.row.topic}-{copy.row.partition} has no leader at the moment")
            return
        self._led.setdefault(node, FetchQueue()).join(copy)
        if node not in self._sessions:
            self._sessions[node] = FetchSession()
            self._spawn(self._loop(node))

    async def _loop(self, node: int) -> None:
        session = self._sessions[node]
        look_due = 0.0
        try:
            while not self._stopped and node in self._led:
                if pause := self._budget.pause_s(time.monotonic()):
                    await self._sleep(min(pause, _LONGEST_PAUSE_S))
                    continue
                if quiet_s := self._source.quiet_s(node):
                    await self._be_quiet(node, min(quiet_s, _LONGEST_PAUSE_S))
                    continue
                queue = self._led[node]
                wanted, crowded = self._wanted(queue)
                front = queue.front(wanted, now=time.monotonic())
                if not (asked := self._still_there(front)):
                    await self._sleep(_CROWDED_S if crowded else _IDLE_S)
                    continue
                some = len(front) < len(wanted)  # of these, records are known to be there
                hurry = some or crowded or self._hurried
                answers = await self._fetch(node, asked, None if some else session, hurry=hurry)
                served = {part.place for part in answers if len(part.records)}
                if answers or not some:  # a broker whose quota is used up answers without partitions
                    queue.answered(front, served, in_order=some)
                del answers  # views of a buffer that is filled again
                if time.monotonic() >= look_due and (doubtful := _doubtful(wanted)):
                    look_due = time.monotonic() + _LOOK_EVERY_S
                    await self._look_closer(node, doubtful)
        finally:
            del self._sessions[node]
        await self._source.forget(node, session)

    async def _be_quiet(self, node: int, seconds: float) -> None:
        await self._sleep(seconds)
        for copy in self._led.get(node, ()):
            copy.stats.throttled(fetch_ms=round(seconds * 1000))

    async def _fetch(
        self, node: int, wanted: Sequence[PartitionCopy], session: FetchSession | None, *, hurry: bool
    ) -> list[Fetched]:
        """Fetch once and queue the records; returns the partitions of the response that were looked at."""
        asked = {copy.place: copy.fetch_from for copy in wanted}
        try:
            fetched = await self._source.fetch(
                node,
                [(copy.place, copy.fetch_from, copy.leader_epoch) for copy in wanted],
                max_wait_ms=_CROWDED_WAIT_MS if hurry else _WAIT_MS,
                max_bytes=self._budget.most_bytes(_RESPONSE_BYTES),
                partition_max_bytes=_PARTITION_BYTES,
                session=session,
            )
        except TROUBLE as error:
            if not self._stopped:
                for copy in _readable(wanted):
                    self._events.retry_later(copy, error)
            return []
        except kafka_errors.KafkaError as error:
            for copy in _readable(wanted):
                self._events.halt(copy, fetch_error(copy, f"the source refuses to be read: {error}"))
            return []
        if self._stopped:
            return []
        if session is not None:
            _note_silence(wanted, fetched)
        # A lease that was renewed meanwhile may not have all of them.
        known = [part for part in fetched if part.place in asked and part.place in self._copies]
        outside: list[PartitionCopy] = []
        for part in known:
            copy = self._copies[part.place]
            if len(part.records):
                self._budget.spend(len(part.records))
            self._take(copy, part, asked[part.place])
            if part.error_code == OFFSET_OUT_OF_RANGE:
                outside.append(copy)
        self._send()
        for copy in outside:
            await out_of_range(self._source, self._events, node, copy, asked[copy.place])
        return known

    async def _look_closer(self, node: int, copy: PartitionCopy) -> None:
        """Fetch a partition alone whose leader sends no records although the source has more.

        A response with many partitions may have been full.
        """
        copy.expect_records()
        before = copy.fetch_from
        answers = await self._fetch(node, [copy], None, hurry=False)
        if answers and not answers[0].error_code and not answers[0].records and copy.fetch_from == before:
            await pass_over_hole(self._source, self._events, node, copy, answers[0])

    def _wanted(self, queue: FetchQueue) -> tuple[list[PartitionCopy], bool]:
        """Return copies that can take more, in the queue's order, and whether others have to wait for the target."""
        if self._queues.queued_bytes > self._buffer_bytes:
            return [], True
        # A partition that is not asked for waits for the next fetch, so where few are busy they may queue more.
        busy = sum(1 for copy in queue if copy.queue)
        room = max(_PARTITION_BYTES, self._buffer_bytes // _SHARES // max(1, busy))
        wanted = [
            copy for copy in _readable(queue) if copy.queued_bytes < room and (copy.is_behind or not self._bounded)
        ]
        return wanted, busy > 0

    def _still_there(self, copies: Iterable[PartitionCopy]) -> list[PartitionCopy]:
        """Return the copies whose topic has the id that they were resumed with; the others are resumed."""
        for copy in copies:
            if self._source.topic_id(copy.row.topic) != copy.source_id:
                self._events.retry_later(copy, f"{copy.row.topic} was deleted, or deleted and recreated")
        return _readable(copies)

    def _take(self, copy: PartitionCopy, fetched: Fetched, asked_from: int) -> None:
        """Queue the records of one partition's response."""
        if copy.state not in READABLE or copy.fetch_from != asked_from:
            return  # it was resumed at another position meanwhile
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
            self._spawn(self._set_aside(copy))
        try:
            self._queue(copy, fetched)
        except FormatError as error:
            self._events.batch_damaged(copy, without_frames(error))
        except LoopedBatch as found:
            self._events.halt(copy, loop_at(copy, found.offset), finish_queue=True)
        if copy.queue and not self._queues.offer(copy):
            self._events.retry_later(
                copy, f"{copy.row.remote_topic}-{copy.row.partition} has a new leader, or was deleted and recreated"
            )
        self._events.position_changed(copy)

    async def _set_aside(self, copy: PartitionCopy) -> None:
        """Do not fetch a copy for a while whose position is after the last stable offset, as after a takeover.

        The broker would answer at once, again and again (`DelayedFetch.tryComplete`).
        """
        self._aside.add(copy)
        for queue in self._led.values():
            queue.leave(copy)
        await self._sleep(_WAIT_MS / 1000)
        self._aside.discard(copy)
        if not self._stopped and self._copies.get(copy.place) is copy and copy.state in READABLE:
            self.add(copy)  # as a new one of its session: a response leaves out what has not changed

    def _queue(self, copy: PartitionCopy, fetched: Fetched) -> None:
        now_ms = int(time.time() * 1000)
        for taken in take_in(
            fetched.records,
            fetched.aborted,
            wanted_from=copy.fetch_from,
            until=copy.source_end if self._bounded else None,
            max_batch_bytes=copy.intake.max_batch_bytes,
            verify=copy.intake.verifies,
            views=outlasts(fetched.records),
            merge_below=_MERGED_BYTES if copy.window.merges else 0,
            opposite=copy.opposite,
        ):
            if isinstance(taken, PassedTo):
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

    def _failed(self, copy: PartitionCopy, fetched: Fetched) -> None:
        name = error_name(fetched.error_code)
        if fetched.error_code == OFFSET_OUT_OF_RANGE:
            return  # handled after all other partitions, see `out_of_range`
        if issubclass(error_for(fetched.error_code), TROUBLE):
            self._events.retry_later(copy, f"fetch: {name}")
        else:
            name += grant(fetched.error_code, "READ on the topic")
            self._events.halt(copy, fetch_error(copy, f"the source refuses to be read: {name}"))


def _readable(copies: Iterable[PartitionCopy]) -> list[PartitionCopy]:
    return [copy for copy in copies if copy.state in READABLE and copy.skip is None]


def _left_to_another_run(copy: PartitionCopy) -> str:
    return (
        f"another run of this flow copies {copy.row.topic}-{copy.row.partition}, whose next record is too old for the "
        "target to tell two runs apart; this run continues when the other has stopped"
    )


def _doubtful(copies: Iterable[PartitionCopy]) -> PartitionCopy | None:
    """Return the copy with the most empty responses, if these are too many."""
    most = max(_readable(copies), key=lambda copy: copy.empty_answers, default=None)
    return most if most is not None and most.empty_answers > _DOUBTS else None


def _note_silence(wanted: Iterable[PartitionCopy], fetched: Iterable[Fetched]) -> None:
    """Count it as an empty response if a lagging copy is not in the response."""
    present = {part.place for part in fetched}
    for copy in wanted:
        if copy.is_behind and copy.place not in present and copy.held_by is None:
            copy.note_silence()
