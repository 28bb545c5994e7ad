"""Reads a cluster's logs by batch headers: the committed batches of one partition, or counts of many at once.

A walk interprets the answers of leaders: deleted records, a truncated log (KIP-320), slow tiered storage, a gap that
compaction left up to the end, and a leader that does not know all records yet.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.batches.header import FormatError
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.errors import ClusterError, GapKind
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol import clients
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.cluster_client import EARLIEST_LOCAL, READ_COMMITTED
from mirrorless.protocol.leaders import NotNow, leader_of
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence

    from mirrorless.batches.record_counter import CommittedBatch, LogPosition, RecordCounter
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.event_loop import EventLoop
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Fetched
    from mirrorless.settings import Cluster

_CONNECT_TIMEOUT_MS: Final = 20_000
_MAX_WAIT_MS: Final = 500
_ALONE_BYTES: Final = 8 << 20
_PARTITION_BYTES: Final = 4 << 20
_RESPONSE_BYTES: Final = 32 << 20
_PARTITIONS_A_REQUEST: Final = 50
_PATIENCE: Final = 4
_PAUSE_S: Final = 0.5


class RecordsGone(Exception):
    """A log has no records at an offset that was read before: retention deleted them, or the log was truncated."""

    def __init__(self, reason: str, *, kind: GapKind, offset: int) -> None:
        self.reason = reason
        self.kind = kind
        self.offset = offset
        super().__init__(reason)


class LogEnd(NamedTuple):
    """A log has no more committed records at the moment; `end` is its last stable offset, `offset` where reading ended.

    `cleaned` says that compaction removed records from what was read.
    """

    end: int
    offset: int
    cleaned: bool


async def committed(
    source: ClusterClient,
    place: TopicPartition,
    position: LogPosition,
    *,
    until: int | None = None,
    isolation: int = READ_COMMITTED,
) -> AsyncIterator[CommittedBatch | LogEnd]:
    """Yield every batch with committed records from `position` on, which moves, to offset `until`.

    With the isolation `READ_UNCOMMITTED`, to the high watermark. If the log ends before that, the last item is a
    `LogEnd`. Raises `RecordsGone`, `FormatError`, and if a later answer may differ, `NotNow` or kafka-python's errors.
    """
    while until is None or position.offset < until:
        before = position.offset
        fetched = await _fetch_alone(source, place, position, isolation)
        for batch in _batches(position, fetched):
            if batch.record_count:
                yield batch
        if position.offset == before:
            await _refuse_slow_storage(source, place, before)
            end = fetched.last_stable_offset
            # A gap up to the end is compaction's as well.
            yield LogEnd(end, offset=min(before, end), cleaned=position.cleaned or end > before)
            return


def _batches(position: LogPosition, fetched: Fetched) -> Iterator[CommittedBatch]:
    """Yield the batches of a fetch from `position`; raises as `committed`, except `NotNow`."""
    if fetched.error_code == OFFSET_OUT_OF_RANGE:
        reason = f"the source has no records there ({error_name(OFFSET_OUT_OF_RANGE)})"
        raise RecordsGone(reason, kind=GapKind.RETENTION, offset=position.offset)
    if fetched.error_code:
        raise error_for(fetched.error_code)
    if fetched.diverges_at is not None:
        reason = f"the source's log was truncated at {fetched.diverges_at}"
        raise RecordsGone(reason, kind=GapKind.TRUNCATED, offset=min(position.offset, fetched.diverges_at))
    yield from position.read(fetched.records, fetched.aborted)


async def _fetch_alone(
    source: ClusterClient, place: TopicPartition, position: LogPosition, isolation: int = READ_COMMITTED
) -> Fetched:
    """Fetch one partition alone: then an empty answer means that no record is left, or that tiered storage is slow."""
    return await source.fetch_one(
        leader_of(source, place),
        (place, position.offset, position.leader_epoch),
        isolation=isolation,
        max_wait_ms=_MAX_WAIT_MS,
        partition_max_bytes=_ALONE_BYTES,
    )


async def _refuse_slow_storage(source: ClusterClient, place: TopicPartition, offset: int) -> None:
    """Raise `NotNow` if an empty answer is inconclusive: tiered storage is slow (`DelayedRemoteFetch`)."""
    local = (await source.offsets(leader_of(source, place), [place], at=EARLIEST_LOCAL))[place]
    if local.error_code:
        raise error_for(local.error_code)
    if offset < local.offset:
        raise NotNow(f"the source returned no records at offset {offset}: its tiered storage is slow")


@dataclass(slots=True)
class Walk:
    """A walk of one partition by a `Walker`; `trouble` says why it ended before its counter was complete.

    `patience` is how many more answers without progress end it, `not_before` the monotonic time of the next request.
    `asks_alone` says that it is to be for this partition only.
    """

    place: TopicPartition
    counter: RecordCounter
    trouble: str | None = None
    patience: int = _PATIENCE
    not_before: float = 0.0
    asks_alone: bool = False

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.trouble is not None or self.counter.is_complete

    def take(self, fetched: Fetched, *, crowded: bool = False) -> None:
        """Count the records of a fetch from the counter's offset; `crowded` says that others may have left no room."""
        before = self.counter.offset
        try:
            for batch in _batches(self.counter, fetched):
                self.counter.add(batch)
                if self.over:
                    return
        except RecordsGone as gone:
            self.trouble = f"offset {gone.offset}: {gone.reason}"
        except kafka_errors.KafkaError:
            self.stumble(error_name(fetched.error_code))
        except FormatError as error:
            self.trouble = f"offset {error.offset}: {error}"
        else:
            if self.counter.offset >= fetched.last_stable_offset:
                self.end_at(fetched.last_stable_offset, high=fetched.high_watermark)
            elif self.counter.offset == before and not crowded:
                self.asks_alone = True

    def end_at(self, end: int, *, high: int = -1) -> None:
        """Take `end` as the end of the log: at once if the walk is complete there, else after a few such answers.

        A new leader may not know all committed records yet. An offset up to the high watermark `high` is held back by
        an open transaction, not by such a leader.
        """
        self.patience -= 1
        self.counter.end_at(end, believed=not self.patience or high >= self.counter.until[-1])
        if not self.patience and not self.over:
            missing = self.counter.until[-1] - self.counter.records
            self.trouble = f"offset {self.counter.offset}: the source ends {missing} records too early"

    def stumble(self, reason: str) -> None:
        """Count a failed attempt; after a few of them the walk is over."""
        self.patience -= 1
        if not self.patience:
            self.trouble = f"offset {self.counter.offset}: {reason}"


class Walker:
    """Walks over the partitions of one cluster; connects at the first walk."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._net: EventLoop | None = None
        self._wire: ClusterClient | None = None

    def walk(self, walks: Iterable[Walk], *, deadline: float) -> None:
        """Continue all walks until they are over or the monotonic time `deadline` has passed.

        Why something could not be counted is in each walk's `trouble`; nothing is raised.
        """
        waiting = [walk for walk in walks if not walk.over]
        if not waiting:
            return
        if self._net is None or self._wire is None:
            self._net = clients.event_loop()
            self._wire = clients.cluster_client(
                self._net,
                cluster=self._cluster.alias,
                config=for_kafka_python(self._cluster, role="consumer"),
            )
        self._net.run(lambda: self._run(waiting, deadline))

    def close(self) -> None:
        """Close all connections."""
        if self._wire is not None:
            self._wire.close()
        if self._net is not None:
            self._net.close()
        self._wire = self._net = None

    async def _run(self, waiting: list[Walk], deadline: float) -> None:
        assert self._wire is not None
        assert self._net is not None
        try:
            await self._wire.connect(timeout_ms=_CONNECT_TIMEOUT_MS, topics={walk.place[0] for walk in waiting})
        except ClusterError as error:
            for walk in waiting:
                walk.trouble = str(error)
            return
        while waiting := [walk for walk in waiting if not walk.over]:
            now = time.monotonic()
            if now >= deadline:
                for walk in waiting:
                    walk.trouble = f"offset {walk.counter.offset}: no time left"
                return
            if ready := [walk for walk in waiting if walk.not_before <= now]:
                await self._once(self._wire, ready)
            else:
                self._wire.refresh_leaders()
                await self._net.sleep(_PAUSE_S)

    async def _once(self, wire: ClusterClient, walks: Sequence[Walk]) -> None:
        """Ask each leader once, and once more for one walk that asks alone."""
        together: dict[int, dict[TopicPartition, Walk]] = defaultdict(dict)
        alone: dict[int, Walk] = {}
        for walk in walks:
            node = wire.leader(walk.place)
            if node is None:
                walk.stumble("the partition has no leader at the moment")
                walk.not_before = time.monotonic() + _PAUSE_S
                wire.refresh_leaders()
            elif walk.asks_alone:
                alone.setdefault(node, walk)  # one in each round: it may take half a second, and there is a deadline
            elif len(together[node]) < _PARTITIONS_A_REQUEST:
                together[node].setdefault(walk.place, walk)  # a fetch has every partition once
        for node, by_place in together.items():
            await _step([*by_place.values()], _ask_together(wire, node, by_place))
        for walk in alone.values():
            await _step([walk], _ask_alone(wire, walk))


async def _step(walks: Sequence[Walk], asking: Awaitable[None]) -> None:
    """Query a leader for some walks; walks without progress pause, and end after a few times."""
    before = [walk.counter.offset for walk in walks]
    try:
        await asking
    except (kafka_errors.KafkaError, NotNow) as error:
        for walk in walks:
            walk.stumble(str(error))
    for walk, offset in zip(walks, before, strict=True):
        if walk.counter.offset != offset:
            walk.patience = _PATIENCE  # a long walk may meet several elections
        else:
            walk.not_before = time.monotonic() + _PAUSE_S


async def _ask_together(wire: ClusterClient, node: int, by_place: Mapping[TopicPartition, Walk]) -> None:
    fetched = await wire.fetch(
        node,
        [(place, walk.counter.offset, walk.counter.leader_epoch) for place, walk in by_place.items()],
        max_bytes=_RESPONSE_BYTES,
        partition_max_bytes=_PARTITION_BYTES,
    )
    crowded = sum(len(part.records) for part in fetched) >= _RESPONSE_BYTES // 2
    for part in fetched:
        by_place[part.place].take(part, crowded=crowded)


async def _ask_alone(wire: ClusterClient, walk: Walk) -> None:
    """Find out why an answer before the end of the log had no records."""
    before = walk.counter.offset
    walk.asks_alone = False
    fetched = await _fetch_alone(wire, walk.place, walk.counter)
    walk.take(fetched)
    if walk.asks_alone:
        walk.asks_alone = False
        await _refuse_slow_storage(wire, walk.place, before)
        walk.end_at(fetched.last_stable_offset)  # compaction left a gap up to there
