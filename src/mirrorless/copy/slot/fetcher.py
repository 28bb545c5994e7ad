"""Fetches from the source's leaders, and from followers that they name, in one loop for each broker."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from mirrorless.copy.partition.errors import fetch_error
from mirrorless.copy.partition.lifecycle import READABLE
from mirrorless.copy.slot.empty_fetch import out_of_range, pass_over_hole
from mirrorless.copy.slot.fetch_queue import FetchQueue
from mirrorless.copy.slot.parallel_reads import ParallelReads
from mirrorless.copy.slot.read_replicas import ReadReplicas, ServingBroker
from mirrorless.copy.slot.response_intake import ResponseIntake
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol import cluster_client
from mirrorless.protocol.fetch_session import FetchSession
from mirrorless.protocol.leaders import TROUBLE
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Coroutine, Iterable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.flow.memory_limits import MemoryLimits
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.fetch_events import FetchEvents
    from mirrorless.copy.slot.rate_limit import RateLimit
    from mirrorless.copy.slot.send_queues import SendQueues
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Fetched


def led_by(source: ClusterClient, copies: Iterable[PartitionCopy]) -> dict[int, list[PartitionCopy]]:
    """Return the readable ones of the copies by the node that leads them on the source."""
    led: dict[int, list[PartitionCopy]] = defaultdict(list)
    for copy in copies:
        if copy.state in READABLE and (node := source.leader(copy.place)) is not None:
            led[node].append(copy)
    return led


async def learn_ends(
    source: ClusterClient, events: FetchEvents, node: int, copies: Sequence[PartitionCopy], *, bounded: bool
) -> None:
    """Note the last stable offset and the high watermark that the leader `node` has of each partition.

    A leader that does not answer is asked again the next time.
    """
    places = [copy.place for copy in copies]
    try:
        # In this order: records that are appended in between do not look like those of an open transaction.
        highs = await source.offsets(node, places, at=cluster_client.LATEST)
        stables = await source.offsets(node, places, at=cluster_client.LATEST, isolation=cluster_client.READ_COMMITTED)
    except kafka_errors.KafkaError:
        return
    for copy in copies:
        high, stable = highs.get(copy.place), stables.get(copy.place)
        if copy.state not in READABLE or high is None or stable is None or high.error_code or stable.error_code:
            continue
        before = copy.source_end
        copy.note_end(stable=stable.offset, high=max(high.offset, stable.offset), bounded=bounded)
        if copy.source_end != before:
            events.position_changed(copy)


_WAIT_MS = 500
_CROWDED_WAIT_MS = 10
_IDLE_S = 0.02
_LONGEST_PAUSE_S = 0.1
_CROWDED_S = 0.002
_PARTITION_BYTES = 2 << 20
_SHARES = 8
"""The buffer has so many shares; the copies with something queued may fill one of them together."""
_DOUBTS = 3
_ENDS_EVERY_S = 0.9
"""Less than the interval between two calls of `assign`."""
_ENDS_PER_S = 500
_LOOK_EVERY_S = 0.5
"""Where responses are full, nearly all partitions without records only wait for their turn."""


class Fetcher:
    """Fetches the partitions of `copies` from their source leaders, or from followers (`ReadReplicas`), until `stop`.

    `bounded` leaves out what follows each row's `source_end`; `memory` bounds what waits for the target, `budget` the
    bytes per second. A partition that had its turn goes to the end of its leader's queue, so that none starves; in
    a session the leader does that. Where many partitions lag, only as many are asked for as may fill a response, and
    without a session.

    Memory: besides what waits, each source leader has one response in flight, of `memory.response` or one batch, and
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
        memory: MemoryLimits,
        budget: RateLimit,
        sleep: Callable[[float], Any],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._source = source
        self._copies = copies
        self._queues = queues
        self._intake = ResponseIntake(
            queues=queues, events=events, bounded=bounded, set_aside=lambda copy: spawn(self._set_aside(copy))
        )
        self._replicas = ReadReplicas(source)
        self._send = send
        self._events = events
        self._bounded = bounded
        self._memory = memory
        self._budget = budget
        self._sleep = sleep
        self._spawn = spawn
        self._parallel = ParallelReads(
            source=source,
            copies=copies,
            queues=queues,
            memory=memory,
            budget=budget,
            intake=self,
            send=send,
            sleep=sleep,
            spawn=spawn,
        )
        self._led: dict[ServingBroker, FetchQueue] = {}
        self._sessions: dict[ServingBroker, FetchSession] = {}
        self._aside: set[PartitionCopy] = set()
        self._stopped = False
        self._hurried = False
        self._ends_due: dict[int, float] = {}

    def stop(self) -> None:
        """Queue nothing more; the response to a fetch in flight is dropped."""
        self._stopped = True
        self._parallel.stop()

    def hurry(self, hurried: bool) -> None:
        """Have leaders answer soon even without records: a fetch in flight delays a partition that is to be added."""
        self._hurried = hurried

    def assign(self) -> None:
        """Group the copies by the brokers that serve them, and fetch from each broker in a loop.

        Copies keep their order in the queues, or those at the end would never be served. To be called every second, it
        also asks leaders for the ends of partitions that followers serve.
        """
        self._replicas.tick(self._copies)
        queued = dict.fromkeys(
            copy for queue in self._led.values() for copy in queue if self._copies.get(copy.place) is copy
        )
        for queue in self._led.values():
            queue.clear()
        for copy in _readable(queued | dict.fromkeys(self._copies.values())):
            self._join(copy)
        self._led = {broker: queue for broker, queue in self._led.items() if len(queue)}
        now = time.monotonic()
        for node, copies in led_by(self._source, self._replicas.from_followers).items():
            if now >= self._ends_due.get(node, 0.0):
                self._ends_due[node] = math.inf
                self._spawn(self._learn_ends(node, copies))

    def add(self, copy: PartitionCopy) -> None:
        """Fetch a copy that was resumed."""
        self._parallel.drop(copy)
        for session in self._sessions.values():
            session.renew(copy.place)
        self._join(copy)

    def _join(self, copy: PartitionCopy) -> None:
        if copy in self._aside:
            return
        broker = self._replicas.broker_for(copy, now=time.monotonic())
        if broker is None:
            self._events.retry_later(copy, f"{copy.row.topic}-{copy.row.partition} has no leader at the moment")
            return
        self._parallel.keep(copy, broker)
        self._led.setdefault(broker, FetchQueue()).join(copy)
        if broker not in self._sessions:
            self._sessions[broker] = FetchSession()
            self._spawn(self._loop(broker))

    def _move(self, copy: PartitionCopy) -> None:
        """Fetch a copy from another broker."""
        for queue in self._led.values():
            queue.leave(copy)
        if self._copies.get(copy.place) is copy and copy.state in READABLE:
            self.add(copy)

    def _leave_follower(self, copy: PartitionCopy) -> None:
        """Ask the leader about what a follower's answer, or its silence, cannot show."""
        self._replicas.leave(copy, now=time.monotonic())
        self._move(copy)

    async def _learn_ends(self, node: int, copies: Sequence[PartitionCopy]) -> None:
        await learn_ends(self._source, self._events, node, copies, bounded=self._bounded)
        self._ends_due[node] = time.monotonic() + max(_ENDS_EVERY_S, len(copies) / _ENDS_PER_S)

    async def _loop(self, broker: ServingBroker) -> None:
        session = self._sessions[broker]
        look_due = 0.0
        try:
            while not self._stopped and broker in self._led:
                if pause := self._budget.pause_s(time.monotonic()):
                    await self._fetch_exempt(broker)
                    await self._sleep(min(pause, _LONGEST_PAUSE_S))
                    continue
                if quiet_s := self._source.quiet_s(broker.connection):
                    await self._be_quiet(broker, min(quiet_s, _LONGEST_PAUSE_S))
                    continue
                queue = self._led[broker]
                self._parallel.pump(broker)
                wanted, crowded = self._wanted(queue)
                front = queue.front(wanted, now=time.monotonic())
                if not (asked := self._still_there(front)):
                    await self._sleep(_CROWDED_S if crowded else _IDLE_S)
                    continue
                some = len(front) < len(wanted)  # of these, records are known to be there
                hurry = some or crowded or self._hurried
                answers = await self._fetch(broker, asked, None if some else session, hurry=hurry)
                served = {part.place for part in answers if len(part.records)}
                if answers or not some:  # a broker whose quota is used up answers without partitions
                    queue.answered(front, served, in_order=some)
                del answers  # views of a buffer that is filled again
                if time.monotonic() >= look_due and (doubtful := self._doubtful(wanted, broker)):
                    look_due = time.monotonic() + _LOOK_EVERY_S
                    await self._look_closer(broker, doubtful[0])
        finally:
            del self._sessions[broker]
        await self._source.forget(broker.connection, session)

    async def _fetch_exempt(self, broker: ServingBroker) -> None:
        """Fetch what does not wait for the limit: without heartbeats a flow that works would look broken."""
        copies, _ = self._wanted(self._led[broker])
        topics = self._budget.exempt_now({copy.row.topic for copy in copies}, now=time.monotonic())
        if exempt := self._still_there([copy for copy in copies if copy.row.topic in topics]):
            await self._fetch(broker, exempt, None, hurry=True)

    async def _be_quiet(self, broker: ServingBroker, seconds: float) -> None:
        await self._sleep(seconds)
        for copy in self._led.get(broker, ()):
            copy.stats.throttled(fetch_ms=round(seconds * 1000))

    async def _fetch(
        self, broker: ServingBroker, wanted: Sequence[PartitionCopy], session: FetchSession | None, *, hurry: bool
    ) -> list[Fetched]:
        """Fetch once and queue the records; returns the partitions of the response that were looked at."""
        asked = {copy.place: copy.fetch_from for copy in wanted}
        lagging = {copy.place for copy in wanted if copy.is_behind}
        followed = {copy for copy in wanted if self._replicas.is_follower(copy, broker)}
        self._replicas.asked(broker, now=time.monotonic())
        try:
            fetched = await self._source.fetch(
                broker.connection,
                [(copy.place, copy.fetch_from, copy.leader_epoch) for copy in wanted],
                max_wait_ms=_CROWDED_WAIT_MS if hurry else _WAIT_MS,
                max_bytes=self._budget.most_bytes(self._memory.response),
                partition_max_bytes=min(_PARTITION_BYTES, self._memory.response),
                session=session,
                rack="" if broker.alone else self._source.rack,
            )
        except (*TROUBLE, kafka_errors.KafkaError) as error:
            self._failed(wanted, followed, error)
            return []
        finally:
            self._replicas.answered(broker)
        if self._stopped:
            return []
        if session is not None:
            _note_silence(wanted, fetched)
        # A lease that was renewed meanwhile may not have all of them.
        known = [part for part in fetched if part.place in asked and part.place in self._copies]
        self._budget.spend(sum(len(part.records) for part in known))
        lagged = (len(part.records) for part in known if part.place in lagging)
        self._parallel.answered(broker, broker.connection, max(lagged, default=0))
        outside: list[PartitionCopy] = []
        for part in known:
            copy = self._copies[part.place]
            if len(part.records):
                copy.stats.fetched(len(part.records), follower=copy in followed)
            if copy.state not in READABLE or copy.fetch_from != asked[part.place]:
                continue  # it was resumed at another position meanwhile
            # By now it may follow: since version 11, brokers answer consumers also of partitions that they do not lead.
            shows_end = copy not in followed and (part.records or self._source.leader(copy.place) == broker.node)
            self._take(copy, part, broker, from_follower=not shows_end)
            if shows_end:
                offsets = copy.fetch_from - asked[part.place]
                self._parallel.served(copy, broker, offsets=offsets, records=part.records)
            if part.error_code == OFFSET_OUT_OF_RANGE and shows_end:
                outside.append(copy)
        self._send()
        for copy in outside:
            await out_of_range(self._source, self._events, broker.node, copy, asked[copy.place])
        return known

    def is_readable(self, copy: PartitionCopy, broker: ServingBroker) -> bool:
        """As of `AnswerIntake`."""
        return (
            copy.state in READABLE
            and copy.skip is None
            and copy in self._led.get(broker, ())
            and self._source.topic_id(copy.row.topic) == copy.source_id
        )

    def take_part(self, copy: PartitionCopy, part: Fetched) -> None:
        """As of `AnswerIntake`."""
        copy.stats.fetched(len(part.records), follower=False)
        self._intake.take(copy, part)

    def _take(self, copy: PartitionCopy, fetched: Fetched, broker: ServingBroker, *, from_follower: bool) -> None:
        if fetched.replica >= 0 and not fetched.error_code and not fetched.records:
            self._take_name(copy, fetched, broker, from_follower=from_follower)
        elif not from_follower:
            self._intake.take(copy, fetched)
        elif not self._intake.take_from_follower(copy, fetched):
            self._leave_follower(copy)
        elif fetched.records:
            self._replicas.served(copy)

    def _take_name(self, copy: PartitionCopy, fetched: Fetched, broker: ServingBroker, *, from_follower: bool) -> None:
        """Fetch from the replica that the leader names: it has not looked for records itself (`readFromLog`)."""
        if broker.alone:
            copy.note_problem(
                f"the leader names broker {fetched.replica} to a consumer without a rack (replica.selector.class), so "
                f"what is left of {copy.row.topic}-{copy.row.partition} at offset {copy.fetch_from} cannot be read"
            )
            self._spawn(self._set_aside(copy))
            return
        if not from_follower:
            copy.note_end(stable=fetched.last_stable_offset, high=fetched.high_watermark, bounded=self._bounded)
        self._replicas.follow(copy, fetched.replica, now=time.monotonic())
        self._move(copy)

    def _failed(
        self, wanted: Iterable[PartitionCopy], followed: Container[PartitionCopy], error: BaseException
    ) -> None:
        """Handle a request that failed: what a follower was asked for, its leader is asked for."""
        if self._stopped and isinstance(error, TROUBLE):
            return
        for copy in _readable(wanted):
            if copy in followed:
                self._leave_follower(copy)
            elif isinstance(error, TROUBLE):
                self._events.retry_later(copy, error)
            else:
                self._events.halt(copy, fetch_error(copy, f"the source refuses to be read: {error}"))

    async def _look_closer(self, broker: ServingBroker, copy: PartitionCopy) -> None:
        """Fetch a partition alone whose broker sends no records although the source has more.

        A response with many partitions may have been full. If a follower has none, the leaders are asked for all that
        it sends nothing of, since one thread replicates many. A leader that names a follower has not looked for any.
        """
        if copy not in self._led.get(broker, ()):
            return  # another broker is asked already
        copy.expect_records()
        before, from_follower = copy.fetch_from, self._replicas.is_follower(copy, broker)
        answers = await self._fetch(broker, [copy], None, hurry=False)
        if not answers or copy.fetch_from != before:
            return
        answer = answers[0]
        if answer.error_code or answer.records or answer.replica >= 0:
            return
        if from_follower:
            for one in {copy, *self._doubtful(self._led.get(broker, ()), broker)}:
                self._leave_follower(one)
        else:
            await pass_over_hole(self._source, self._events, broker.node, copy, answer)

    def _wanted(self, queue: FetchQueue) -> tuple[list[PartitionCopy], bool]:
        """Return copies that can take more, in the queue's order, and whether others have to wait for the target."""
        if self._queues.queued_bytes > self._memory.queued:
            return [], True
        # A partition that is not asked for waits for the next fetch, so where few are busy they may queue more.
        busy = sum(1 for copy in queue if copy.queue)
        room = max(_PARTITION_BYTES, self._memory.queued // _SHARES // max(1, busy))
        wanted = [
            copy
            for copy in _readable(queue)
            if copy.queued_bytes < room and (copy.is_behind or not self._bounded) and not self._parallel.owns(copy)
        ]
        return wanted, busy > 0

    def _doubtful(self, copies: Iterable[PartitionCopy], broker: ServingBroker) -> list[PartitionCopy]:
        """Return the copies with too many empty responses, those with the most first."""
        doubtful = [
            copy
            for copy in _readable(copies)
            if copy.empty_answers > _DOUBTS and not self._replicas.waits(copy, broker)
        ]
        return sorted(doubtful, key=lambda copy: -copy.empty_answers)

    def _still_there(self, copies: Iterable[PartitionCopy]) -> list[PartitionCopy]:
        """Return the copies whose topic has the id that they were resumed with; the others are resumed."""
        for copy in copies:
            if self._source.topic_id(copy.row.topic) != copy.source_id:
                self._events.retry_later(copy, f"{copy.row.topic} was deleted, or deleted and recreated")
        return _readable(copies)

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


def _readable(copies: Iterable[PartitionCopy]) -> list[PartitionCopy]:
    return [copy for copy in copies if copy.state in READABLE and copy.skip is None]


def _note_silence(wanted: Iterable[PartitionCopy], fetched: Iterable[Fetched]) -> None:
    """Count it as an empty response if a lagging copy is not in the response."""
    present = {part.place for part in fetched}
    for copy in wanted:
        if copy.is_behind and copy.place not in present and copy.held_by is None:
            copy.note_silence()
