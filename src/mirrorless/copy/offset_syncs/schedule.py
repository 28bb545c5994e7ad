"""Decides when offset syncs are written, and which: a pure decision per partition.

The caller owns the clock and the writer. It calls `appended` for every acknowledged append in order, `due` at
intervals (a few times per second), and `rest` at the end of a lifetime: at a lease's end, or when
the partition is resumed or halted. The returned syncs are to be written in that order.

A tail sync is written when MirrorMaker 2's rule requires one (the first of a lifetime, `lag_max` records since the
last one, a gap or a rewind), at most once per interval, and always once nothing was
appended for an interval. An index sync is written at once when the upstream offset enters the next block.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mirrorless.formats import INDEX_SLOTS, OffsetSync

INTERVAL_MS: Final = 1000


class AppendedBatch(NamedTuple):
    """An append that the target acknowledged: `record_count` records to the target, from `first_downstream` on.

    `dense` says that the source has no gap between the first and the last of them.
    """

    first_upstream: int
    last_upstream: int
    first_downstream: int
    record_count: int
    dense: bool


class Tail(NamedTuple):
    """The end of a partition's copy: its last record on both sides, and how many records without a gap end there."""

    last_upstream: int
    last_downstream: int
    run: int


class SyncSchedule:
    """Decides for one source partition during one lifetime, in which one writer copies it.

    `index_records` is the size of a block (`mirrorless.sync.index.records`), `lag_max` is `offset.lag.max`. `tail` is
    the end of an earlier lifetime, if known: its run then continues, and its block is not indexed again.
    """

    def __init__(
        self, *, topic: str, partition: int, lag_max: int, index_records: int, tail: Tail | None = None
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._lag_max = lag_max
        self._index_records = index_records
        self._tail = tail
        self._block = None if tail is None else tail.last_upstream // index_records
        self._asked = False
        self._written: Tail | None = None
        self._asked_at: int | None = None
        self._written_ms = 0
        self._appended_ms = 0

    @property
    def tail(self) -> Tail | None:
        """The last record known to be on both sides, for the next lifetime."""
        return self._tail

    def appended(self, append: AppendedBatch, *, time_ms: int) -> list[OffsetSync]:
        """Process an acknowledged append; return the syncs to write now."""
        first_upstream, last_upstream, first_downstream, record_count, dense = append
        last_downstream = first_downstream + record_count - 1
        before = self._tail
        follows_upstream = before is not None and dense and first_upstream == before.last_upstream + 1
        first_of_lifetime = self._asked_at is None
        # MirrorMaker 2's rule, per batch.
        if (
            self._asked_at is None
            or not follows_upstream
            or last_downstream - (self._asked_at + 1) >= self._lag_max
            or (before is not None and first_downstream < before.last_downstream)
        ):
            self._asked = True
            self._asked_at = last_downstream
        run = record_count if dense else 1  # only at the last record there is certainly no gap
        if follows_upstream and before is not None and first_downstream == before.last_downstream + 1:
            run += before.run
        self._tail = tail = Tail(last_upstream, last_downstream, run)
        self._appended_ms = time_ms
        block = last_upstream // self._index_records
        syncs = [self._sync(tail, block % INDEX_SLOTS)] if block != self._block else []
        self._block = block
        if self._asked and (first_of_lifetime or time_ms - self._written_ms >= INTERVAL_MS):
            syncs.append(self._tail_sync(tail, time_ms))
        return syncs

    def due(self, *, time_ms: int) -> list[OffsetSync]:
        """Return the tail sync that is due, if there is one: required by the rule, or the last before a pause."""
        if self._unwritten is None:
            return []
        since_ms = time_ms - (self._written_ms if self._asked else self._appended_ms)
        return [self._tail_sync(self._unwritten, time_ms)] if since_ms >= INTERVAL_MS else []

    def rest(self, *, time_ms: int) -> list[OffsetSync]:
        """Return unwritten syncs; nothing more will be appended in this lifetime."""
        return [] if self._unwritten is None else [self._tail_sync(self._unwritten, time_ms)]

    @property
    def is_written(self) -> bool:
        """Whether the last appended record has its sync, or needs none."""
        return self._unwritten is None

    @property
    def _unwritten(self) -> Tail | None:
        """The last record, if it was appended in this lifetime and has no sync yet."""
        return None if self._asked_at is None or self._tail == self._written else self._tail

    def _tail_sync(self, tail: Tail, time_ms: int) -> OffsetSync:
        self._asked = False
        self._written = tail
        self._written_ms = time_ms
        return self._sync(tail, None)

    def _sync(self, tail: Tail, block: int | None) -> OffsetSync:
        return OffsetSync(
            topic=self._topic,
            partition=self._partition,
            last_upstream=tail.last_upstream,
            last_downstream=tail.last_downstream,
            run=tail.run,
            block=block,
        )
