"""Reads lagging partitions over several connections to a leader at once, where one leaves the target waiting.

Source of the idea: bandwidth times round trip has to be in flight, and a connection has one answer in flight.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from mirrorless.batches.continuity import continues, offset_spread
from mirrorless.copy.partition.lifecycle import READABLE
from mirrorless.copy.slot.read_ahead import ReadAhead
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.connection_manager import ExtraConnection
from mirrorless.protocol.leaders import TROUBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.flow.memory_limits import MemoryLimits
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.rate_limit import RateLimit
    from mirrorless.copy.slot.read_ahead import RangeRead
    from mirrorless.copy.slot.read_replicas import ServingBroker
    from mirrorless.copy.slot.send_queues import SendQueues
    from mirrorless.kafka_python.connection_manager import Node
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Fetched

MOST_CONNECTIONS: Final = 32
_WAITED_S: Final = 0.02
_ANSWERS: Final = 2
"""One alone may be a pause of the target's broker."""
_SHARE: Final = 0.5
_SHORT_WAITS: Final = 4
"""Answers of several connections come one after the other, so the target waits often rather than long."""
_FIRST: Final = 4
_FIRST_NUMBER: Final = 3
_PAUSE_S: Final = 0.5
_DOUBLED: Final = 6


class ReadConnections:
    """Connections to one leader: one at first, twice as many each time that full answers find the target waiting.

    `most` bounds them. `idle` is the number of one that is not in use, from 3 on: the first one has the leader's
    session, and 2 is that of requests without a rack (`ServingBroker`). It is in use from `take` to `give_back`. Times
    are those of `time.monotonic`.
    """

    def __init__(self, most: int) -> None:
        self.count = 1
        self._most = min(most, MOST_CONNECTIONS)
        self._free: dict[int, float] = {}
        self._failures: dict[int, int] = {}
        self._hungry = 0
        self._short_waits = 0
        self._last = 0.0

    def answered(self, *, waited_s: float, now: float) -> None:
        """Note a full answer, before which the target had nothing to do for so long."""
        self._hungry = self._hungry + 1 if waited_s >= _WAITED_S else 0
        often = self.count > 1 and 0.0 < now - self._last <= waited_s / _SHARE
        self._short_waits = self._short_waits + 1 if often else 0
        self._last = now
        enough = self._hungry >= (_ANSWERS if self.count == 1 else 1) or self._short_waits >= _SHORT_WAITS
        if self.count < self._most and enough:
            self._short_waits = 0
            more = min(self._most, max(_FIRST, 2 * self.count))
            self._free |= dict.fromkeys(range(self.count + _FIRST_NUMBER - 1, more + _FIRST_NUMBER - 1), 0.0)
            self.count = more

    @property
    def has_idle(self) -> bool:
        """Whether an extra connection is not in use."""
        return bool(self._free)

    def idle(self, *, now: float) -> int | None:
        """Return the number of a connection that may be used, None if there is none."""
        return next((number for number, due in self._free.items() if due <= now), None)

    def take(self, number: int) -> None:
        """Note that a connection is in use."""
        del self._free[number]

    def give_back(self, number: int, *, now: float, failed: bool = False) -> None:
        """Take a connection back; one that failed is not used for a while, twice as long after each failure."""
        if failed:
            failures = self._failures[number] = self._failures.get(number, 0) + 1
            self._free[number] = now + _PAUSE_S * 2 ** min(failures - 1, _DOUBLED)
        else:
            self._failures.pop(number, None)
            self._free[number] = 0.0


_READ_BYTES: Final = 2 << 20
_WAIT_MS: Final = 10
_BLOCKED_S: Final = 0.005
_READS_LEFT: Final = 2
"""A partition that lags by less than so many reads is left to the first connection."""
_PARTITIONS_PER_CONNECTION: Final = 2


class AnswerIntake(Protocol):
    """What is done with answers; `Fetcher` does it."""

    def is_readable(self, copy: PartitionCopy, broker: ServingBroker) -> bool:
        """Whether a partition may be read from a broker: it is copied, and its topic is the one it was resumed with."""

    def take_part(self, copy: PartitionCopy, part: Fetched) -> None:
        """Queue the records of a leader's answer that begins at the copy's position, or before it."""


class ParallelReads:
    """The reads of one fetcher over extra connections. Partitions in `owns` are not read over the first one.

    Only leaders are read so: a follower is near (KIP-392).

    Memory: what was asked for and what waits for the target are at most three quarters of `memory.queued`, so that
    partitions on the first connection always have some.
    """

    def __init__(
        self,
        *,
        source: ClusterClient,
        copies: Mapping[TopicPartition, PartitionCopy],
        queues: SendQueues,
        memory: MemoryLimits,
        budget: RateLimit,
        intake: AnswerIntake,
        send: Callable[[], None],
        sleep: Callable[[float], Any],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._source = source
        self._copies = copies
        self._queues = queues
        self._budget = budget
        self._intake = intake
        self._send = send
        self._sleep = sleep
        self._spawn = spawn
        self._room_bytes = memory.queued * 3 // 4
        self._read_bytes = min(_READ_BYTES, memory.response)
        self._connections: dict[ServingBroker, ReadConnections] = {}
        self._ahead: dict[PartitionCopy, ReadAhead] = {}
        self._dropped_bytes = 0
        self._blocked: set[ServingBroker] = set()
        self._stopped = False

    def stop(self) -> None:
        """Read nothing more; answers to reads in flight are dropped."""
        self._stopped = True
        self._ahead.clear()

    def owns(self, copy: PartitionCopy) -> bool:
        """Whether a partition is read over extra connections."""
        return copy in self._ahead

    def connections(self, broker: ServingBroker) -> ReadConnections:
        """Return the connections to a broker."""
        if broker not in self._connections:
            self._connections[broker] = ReadConnections(self._room_bytes // self._read_bytes)
        return self._connections[broker]

    def answered(self, broker: ServingBroker, connection: Node, size_bytes: int) -> None:
        """Note an answer before its records are taken: a full one shows whether the target waits for this broker.

        `size_bytes` are the most of a partition that lagged when the request was sent; otherwise the broker waited for
        producers.
        """
        now = time.monotonic()
        throttled = self._budget.pause_s(now) or self._source.quiet_s(connection)
        if size_bytes * 2 >= self._read_bytes and not throttled:
            self.connections(broker).answered(waited_s=self._queues.idle_s(now), now=now)

    def served(self, copy: PartitionCopy, broker: ServingBroker, *, offsets: int, records: bytes | memoryview) -> None:
        """Note so many offsets of a partition from its leader, with their records; it may be read ahead from here."""
        count, size_bytes = self.connections(broker).count, len(records)
        if count == 1 or offsets <= 0 or not self._read_bytes // 2 <= size_bytes <= self._read_bytes:
            return  # a batch larger than a read comes whole, and again with the next read
        if (seen := offset_spread(records)) is None:
            return  # messages of formats 0 and 1 have no epochs: no answer would be known to continue the log
        if len(self._ahead) >= _PARTITIONS_PER_CONNECTION * count:
            return  # more of them would not be faster
        lag_bytes = (copy.source_end - copy.fetch_from) * size_bytes / offsets
        if lag_bytes > _READS_LEFT * self._read_bytes:
            self._ahead[copy] = ReadAhead(copy, broker, seen)

    def keep(self, copy: PartitionCopy, broker: ServingBroker) -> None:
        """Leave a partition to the first connection, unless it is read from this broker."""
        ahead = self._ahead.get(copy)
        if ahead is not None and ahead.broker != broker:
            self.drop(copy)

    def drop(self, copy: PartitionCopy) -> None:
        """Leave a partition to the first connection; answers to its reads in flight are dropped."""
        if (ahead := self._ahead.pop(copy, None)) is not None:
            self._dropped_bytes += ahead.in_flight_bytes

    def pump(self, broker: ServingBroker) -> None:
        """Begin as many reads from a broker as there are connections and memory for."""
        connections = self.connections(broker)
        if self._stopped or connections.count == 1:
            return
        now = time.monotonic()
        while (
            (number := connections.idle(now=now)) is not None
            and not self._budget.pause_s(now)
            and (found := self._next(broker)) is not None
        ):
            connections.take(number)
            self._budget.spend(found[1].size_bytes)
            self._spawn(self._read(broker, number, *found))
        if connections.has_idle and broker not in self._blocked and self._has_work(broker):
            self._blocked.add(broker)
            self._spawn(self._pump_later(broker))

    async def _pump_later(self, broker: ServingBroker) -> None:
        """Look again soon: the target may have taken something, or a connection may be used again."""
        await self._sleep(_BLOCKED_S)
        self._blocked.discard(broker)
        self.pump(broker)

    def _has_work(self, broker: ServingBroker) -> bool:
        return any(ahead.broker == broker for ahead in self._ahead.values())

    def _next(self, broker: ServingBroker) -> tuple[ReadAhead, RangeRead] | None:
        """Return a read that others wait for, else one of the partition with the least read ahead; None without memory.

        What others wait for is read in any case, since they keep their memory until then.
        """
        for copy, ahead in list(self._ahead.items()):
            if not self._may_continue(copy, ahead):
                self.drop(copy)
        own = [ahead for ahead in self._ahead.values() if ahead.broker == broker]
        for ahead in own:
            if (read := ahead.first_read(self._read_bytes)) is not None:
                return ahead, read
        taken = self._dropped_bytes + self._queues.queued_bytes + sum(one.size_bytes for one in self._ahead.values())
        if taken + self._read_bytes > self._room_bytes:
            return None
        for ahead in sorted(own, key=lambda one: one.size_bytes + one.copy.queued_bytes):
            if (read := ahead.next_read(self._read_bytes)) is not None:
                return ahead, read
        return None

    def _may_continue(self, copy: PartitionCopy, ahead: ReadAhead) -> bool:
        return (
            self._copies.get(copy.place) is copy
            and not ahead.is_stale
            and not ahead.is_over
            and self._intake.is_readable(copy, ahead.broker)
        )

    async def _read(self, broker: ServingBroker, number: int, ahead: ReadAhead, read: RangeRead) -> None:
        copy, connections = ahead.copy, self.connections(broker)
        connection = ExtraConnection(broker.node, number)
        answer: Fetched | None = None
        try:
            answers = await self._source.fetch(
                connection,
                [(copy.place, read.start, -1)],
                max_wait_ms=_WAIT_MS,
                max_bytes=read.size_bytes,
                partition_max_bytes=read.size_bytes,
            )
            answer = answers[0] if answers else None  # none if a quota is used up
        except (*TROUBLE, kafka_errors.KafkaError):
            self._source.refresh_leaders()
        connections.give_back(number, now=time.monotonic(), failed=answer is None)
        asked_bytes, got_bytes = read.size_bytes, 0 if answer is None else len(answer.records)
        self._budget.spend(got_bytes - asked_bytes)
        self.answered(broker, connection, got_bytes)
        if self._ahead.get(copy) is not ahead:
            self._dropped_bytes -= asked_bytes
        elif answer is None:
            if not ahead.failed(read):
                self.drop(copy)
        else:
            read.answer, read.size_bytes = answer, max(asked_bytes, got_bytes)
            self._take_answers(ahead)
        self.pump(broker)

    def _take_answers(self, ahead: ReadAhead) -> None:
        copy = ahead.copy
        while self._may_continue(copy, ahead) and (read := ahead.next_answer()) is not None:
            answer = read.answer
            if (
                answer is None
                or answer.error_code
                or answer.diverges_at is not None
                or not continues(answer.records, position=copy.fetch_from, leader_epoch=copy.leader_epoch)
            ):
                self.drop(copy)  # the first connection finds out what it is
                break
            self._intake.take_part(copy, answer)
            ahead.taken(read)
            if copy.state not in READABLE:
                break
        self._send()
        if not self._may_continue(copy, ahead):
            self.drop(copy)
