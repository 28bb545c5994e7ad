"""Counts the committed records between two offsets of the source, by batch headers (design, section 6).

Nothing is decompressed except a batch that an offset cuts and that compaction left holes in.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.batches.batch_filter import AbortedTransactions
from mirrorless.batches.header import FormatError, scan
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.stamp import body_of
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.errors import ClusterError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.broker_errors import error_name
from mirrorless.protocol.cluster_client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mirrorless.batches.header import BatchHeader
    from mirrorless.clusters.topics import Place
    from mirrorless.protocol.requests import Fetched
    from mirrorless.settings import Cluster

_CONNECT_TIMEOUT_MS: Final = 20_000
_PARTITION_BYTES: Final = 4 << 20
_RESPONSE_BYTES: Final = 32 << 20
_PLACES_A_REQUEST: Final = 50
_PATIENCE: Final = 4
_PAUSE_S: Final = 0.5


@dataclass(slots=True)
class Walk:
    """A walk over `place` from upstream `offset` on; `counts` are the records counted up to each offset of `until`.

    `until` is in ascending order. `trouble` says why the walk ended before the last of them, None if it did not.
    """

    place: Place
    offset: int
    until: Sequence[int]
    counts: dict[int, int] = field(default_factory=dict)
    trouble: str | None = None
    records: int = 0
    patience: int = _PATIENCE

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.trouble is not None or len(self.counts) == len(self.until)

    def take(self, fetched: Fetched, *, crowded: bool = False) -> None:
        """Count what a fetch from `offset` brought; `crowded` says that others may have left no room for it."""
        before = self.offset
        if fetched.error_code:
            self.stumble(error_name(fetched.error_code), for_good=fetched.error_code == _OFFSET_OUT_OF_RANGE)
            return
        aborted = AbortedTransactions(fetched.aborted)
        try:
            for header, at in scan(fetched.records):
                dropped = aborted.drops(header, fetched.records, at)
                if header.next_offset > self.offset:
                    self._pass(header, fetched.records, at, counts=not dropped)
                if self.over:
                    return
        except FormatError as error:
            self.trouble = f"offset {error.offset}: {error}"
            return
        if self.offset >= fetched.last_stable_offset:
            self._finish()  # there is nothing more to count, however far the group says it is
        elif self.offset == before and not crowded:
            self.stumble("the source answers with nothing")

    def _pass(self, header: BatchHeader, records: bytes | memoryview, at: int, *, counts: bool) -> None:
        """Go over one batch; the offsets asked for that lie in it, or before it, get their count."""
        inside = self._left_up_to(header.next_offset - 1)
        if not counts or not header.record_count:
            for offset in inside:
                self.counts[offset] = self.records
        elif header.is_dense:
            first = max(header.base_offset, self.offset)
            for offset in inside:
                self.counts[offset] = self.records + max(0, offset - first)
            self.records += header.next_offset - first
        elif inside or header.base_offset < self.offset:
            there = [one for one in records_of(header, body_of(records, at, header)).offsets if one >= self.offset]
            for offset in inside:
                self.counts[offset] = self.records + bisect_right(there, offset - 1)
            self.records += len(there)
        else:
            self.records += header.record_count
        self.offset = header.next_offset
        for offset in self._left_up_to(self.offset):
            self.counts[offset] = self.records

    def _left_up_to(self, last: int) -> Sequence[int]:
        """The offsets without a count, up to and including `last`."""
        begin = len(self.counts)
        if begin < len(self.until) and self.until[begin] <= last:
            return self.until[begin : bisect_right(self.until, last, begin)]
        return ()

    def _finish(self) -> None:
        for offset in self.until[len(self.counts) :]:
            self.counts[offset] = self.records

    def stumble(self, reason: str, *, for_good: bool = False) -> None:
        """Note that this attempt failed; after a few of them, or `for_good`, the walk is over."""
        self.patience -= 1
        if for_good or not self.patience:
            self.trouble = f"offset {self.offset}: {reason}"


@dataclass(slots=True)
class Search(Walk):
    """A walk that counts the other way round: `until` are numbers of records, `counts` the upstream offset behind them.

    That offset is the next record's. `base` is the caller's, `begin` where the walk began.
    """

    base: int = 0
    begin: int = 0

    def __post_init__(self) -> None:
        self.begin = self.offset

    def _pass(self, header: BatchHeader, records: bytes | memoryview, at: int, *, counts: bool) -> None:
        if counts and header.record_count:
            if header.is_dense:
                there: Sequence[int] = range(max(header.base_offset, self.offset), header.next_offset)
            else:
                offsets = records_of(header, body_of(records, at, header)).offsets
                there = [one for one in offsets if one >= self.offset]
            for number in self._left_up_to(self.records + len(there) - 1):
                self.counts[number] = there[number - self.records]
            self.records += len(there)
        self.offset = header.next_offset

    def _finish(self) -> None:
        for number in self._left_up_to(self.records):
            self.counts[number] = self.offset
        if not self.over:
            self.trouble = f"offset {self.offset}: the source ends {self.until[-1] - self.records} records too early"


_OFFSET_OUT_OF_RANGE: Final = 1


class Walker:
    """Walks over the partitions of one source; its connections are opened by the first walk."""

    def __init__(self, source: Cluster) -> None:
        self._cluster = source
        self._net: EventLoop | None = None
        self._wire: ClusterClient | None = None

    def walk(self, walks: Iterable[Walk], *, deadline: float) -> None:
        """Go on with all walks until they are over or the monotonic time `deadline` has come.

        What could not be counted is told in each walk's `trouble`; nothing is raised.
        """
        waiting = [walk for walk in walks if not walk.over]
        if not waiting:
            return
        if self._net is None or self._wire is None:
            self._net = EventLoop()
            self._wire = ClusterClient(
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
            if time.monotonic() >= deadline:
                for walk in waiting:
                    walk.trouble = f"offset {walk.offset}: no time left"
                return
            moved = False
            for node, walks in self._by_leader(waiting).items():
                moved |= await self._fetch(self._wire, node, walks)
            if not moved:
                self._wire.refresh_leaders()
                await self._net.sleep(_PAUSE_S)

    def _by_leader(self, walks: Iterable[Walk]) -> Mapping[int, list[Walk]]:
        """Some walks for each leader, at most one a partition: a fetch has every partition once."""
        assert self._wire is not None
        chosen: dict[int, dict[Place, Walk]] = defaultdict(dict)
        for walk in walks:
            node = self._wire.leader(walk.place)
            if node is None:
                walk.stumble("the partition has no leader at the moment")
            elif len(chosen[node]) < _PLACES_A_REQUEST:
                chosen[node].setdefault(walk.place, walk)
        return {node: list(some.values()) for node, some in chosen.items()}

    async def _fetch(self, wire: ClusterClient, node: int, walks: Sequence[Walk]) -> bool:
        """Fetch once for each walk; says whether any of them got further."""
        by_place = {walk.place: walk for walk in walks}
        before = [walk.offset for walk in walks]
        try:
            fetched = await wire.fetch(
                node,
                [(walk.place, walk.offset, -1) for walk in walks],
                max_bytes=_RESPONSE_BYTES,
                partition_max_bytes=_PARTITION_BYTES,
            )
        except kafka_errors.KafkaError as error:
            for walk in walks:
                walk.stumble(str(error))
            return False
        crowded = sum(len(part.records) for part in fetched) >= _RESPONSE_BYTES // 2
        for part in fetched:
            by_place[part.place].take(part, crowded=crowded)
        moved = [walk for walk, offset in zip(walks, before, strict=True) if walk.over or walk.offset != offset]
        for walk in moved:
            walk.patience = _PATIENCE  # a long walk may meet several elections
        return bool(moved)
