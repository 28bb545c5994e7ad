"""A partition's log with what a leader keeps beside it: epochs, watermarks, transactions, producers.

The rules are those of Kafka's `UnifiedLog`, `ProducerStateManager`, `ProducerAppendInfo` and `LeaderEpochFileCache`;
tests/simulation/test_conformance.py compares them with a broker's.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import CONTROL, HEADER_BYTES, SEQUENCES, TRANSACTIONAL, BatchHeader
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.records import varint
from tests.support.fake_log import (
    CORRUPT_MESSAGE,
    INVALID_PRODUCER_EPOCH,
    MESSAGE_TOO_LARGE,
    OUT_OF_ORDER_SEQUENCE,
    Appended,
    Batch,
    FakeLog,
    Producer,
    _checksum,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from mirrorless.batches.stamp import Stamped

OFFSET_OUT_OF_RANGE = 1
LENGTH_COUNTS_FROM = 12
EXPIRY_MS = 86_400_000
UNKNOWN = -1
_TYPE_AT = 8
"""Where a marker's record says whether it commits: after length, attributes, deltas, the key's length and version."""


class Aborted(NamedTuple):
    """An aborted transaction: its producer, first offset, and its marker's offset."""

    producer_id: int
    first: int
    marker: int


def batch_of(
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    timestamp_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
) -> Batch:
    """Return one batch as a producer would send it; `records` are keys and values."""
    rests = [_field(key) + _field(value) + b"\0" for key, value in records]
    body = b"".join(_record(delta, rest) for delta, rest in enumerate(rests))
    header = BatchHeader(
        base_offset=0,
        length_bytes=HEADER_BYTES - LENGTH_COUNTS_FROM + len(body),
        partition_leader_epoch=-1,
        magic=2,
        checksum=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return Batch(header._replace(checksum=_checksum(header, body)), body)


def _record(offset_delta: int, rest: bytes) -> bytes:
    content = b"\0\0" + varint(offset_delta) + rest
    return varint(len(content)) + content


def _field(content: bytes | None) -> bytes:
    return b"\x01" if content is None else varint(len(content)) + content


class PartitionLog(FakeLog):
    """The log that the leader of a partition has; `changed` is called when its end or a watermark moves.

    `held_at` is the offset at which the followers stopped to fetch, None while they keep up.
    """

    def __init__(self, topic_id: UUID, *, changed: Callable[[], None] = lambda: None) -> None:
        super().__init__(topic_id)
        self.changed = changed
        self.epochs: list[tuple[int, int]] = [(0, 0)]
        self.open: dict[int, int] = {}
        self.ended: list[Aborted] = []
        self.completed: list[tuple[int, int]] = []
        self.held_at: int | None = None
        self.waiting: list[tuple[int, Callable[[int], None]]] = []
        self._bases: list[int] = []

    # Watermarks

    @property
    def high_watermark(self) -> int:
        return self.end if self.held_at is None else min(self.held_at, self.end)

    @property
    def stable(self) -> int:
        """The last stable offset: below open transactions, and ended ones whose marker is not replicated."""
        high = self.high_watermark
        first = min(self.open.values(), default=high)
        for began, marker in self.completed:
            if marker >= high:
                first = min(first, began)
        return min(high, first)

    def hold(self) -> None:
        """Let the followers stop fetching."""
        if self.held_at is None:
            self.held_at = self.end

    def catch_up(self) -> None:
        """Let the followers have everything."""
        self.held_at = None
        self._moved()

    def when_replicated(self, offset: int, heard: Callable[[int], None]) -> None:
        """Call with 0 once the high watermark is at `offset`, or with an error code."""
        if self.high_watermark >= offset:
            heard(0)
        else:
            self.waiting.append((offset, heard))

    def _moved(self) -> None:
        high = self.high_watermark
        if self.waiting:
            due = [one for one in self.waiting if one[0] <= high]
            self.waiting = [one for one in self.waiting if one[0] > high]
            for _, heard in due:
                heard(0)
        self.completed = [one for one in self.completed if one[1] >= high]
        self.changed()

    def fail_waiting(self, code: int) -> None:
        """Answer everyone who waits for replication with an error."""
        waiting, self.waiting = self.waiting, []
        for _, heard in waiting:
            heard(code)

    # Writing

    def write(self, batch: Batch) -> int:
        """Append what an application produced, and return its first offset."""
        header = batch.header
        if header.attributes & TRANSACTIONAL and header.producer_id not in self.open:
            self.open[header.producer_id] = self.end
        base = self._store(header, batch.body)
        if header.producer_id >= 0:
            self._remember(header, base)
        self._moved()
        return base

    def append(self, batch: Stamped) -> Appended:
        """Append a batch of an idempotent producer as `ProducerAppendInfo` decides."""
        header = BatchHeader.parse(batch.head)
        body = bytes(batch.body)
        if header.checksum != _checksum(header, body):
            return Appended(-1, CORRUPT_MESSAGE)
        if self.max_message_bytes is not None and batch.size_bytes > self.max_message_bytes:
            return Appended(-1, MESSAGE_TOO_LARGE)
        known = self.producers.get(header.producer_id)
        if header.producer_id >= 0 and known is not None:
            if header.producer_epoch < known.epoch:
                return Appended(-1, INVALID_PRODUCER_EPOCH)
            if header.producer_epoch == known.epoch:
                for base_sequence, records, base_offset in known.batches:
                    if (base_sequence, records) == (header.base_sequence, header.record_count):
                        return Appended(base_offset)
                expected = (known.last_sequence + 1) % SEQUENCES
            else:
                expected = 0
            if header.base_sequence != expected:
                return Appended(-1, OUT_OF_ORDER_SEQUENCE)
        base_offset = self._store(header, body)
        if header.producer_id >= 0:
            self._remember(header, base_offset)
        self._moved()
        return Appended(base_offset)

    def mark(self, producer_id: int, epoch: int, *, commit: bool, now_ms: int) -> int:
        """Append a transaction marker; returns the error code."""
        known = self.producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            return INVALID_PRODUCER_EPOCH
        key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0)
        marker = batch_of(
            [(key, value)],
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            attributes=CONTROL | TRANSACTIONAL,
        )
        base = self._store(marker.header, marker.body)
        self._end(producer_id, base, commit=commit)
        if known is None or epoch > known.epoch:
            known = self.producers[producer_id] = Producer(epoch)
        known.timestamp_ms = now_ms
        self._moved()
        return 0

    def _end(self, producer_id: int, marker: int, *, commit: bool) -> None:
        first = self.open.pop(producer_id, None)
        if first is None:
            return
        self.completed.append((first, marker))
        if not commit:
            self.ended.append(Aborted(producer_id, first, marker))

    def _store(self, header: BatchHeader, body: bytes) -> int:
        self._bases.append(self.end)
        return super()._store(header, body)

    def _remember(self, header: BatchHeader, base_offset: int) -> None:
        known = self.producers.get(header.producer_id)
        if known is None or header.producer_epoch > known.epoch:
            known = self.producers[header.producer_id] = Producer(header.producer_epoch)
        known.last_sequence = header.last_sequence
        known.timestamp_ms = header.max_timestamp_ms
        known.batches.append((header.base_sequence, header.record_count, base_offset))

    # What happens to a log

    def lead(self, epoch: int) -> None:
        """A new leader begins an epoch at the end of its log."""
        self.leader_epoch = epoch
        if self.epochs[-1][1] == self.end:
            self.epochs[-1] = (epoch, self.end)
        else:
            self.epochs.append((epoch, self.end))

    def truncate(self, offset: int) -> None:
        """Cut the log to whole batches below `offset`, as the log of a new leader that lagged."""
        self.batches = [batch for batch in self.batches if batch.header.next_offset <= offset]
        self._bases = [batch.header.base_offset for batch in self.batches]
        self.end = max(self.batches[-1].header.next_offset if self.batches else self.start, self.start)
        if not self.batches or self.end < offset:
            self.end = max(self.end, min(offset, self.start))
        self.epochs = [one for one in self.epochs if one[1] <= self.end] or [(self.epochs[0][0], self.end)]
        lost = {one for one, known in self.producers.items() if any(base >= self.end for _, _, base in known.batches)}
        markers = {batch.header.producer_id for batch in self.batches if batch.header.is_control}
        for producer_id in lost | (self.producers.keys() & markers):
            self.producers.pop(producer_id, None)
            for batch in self.batches:
                if batch.header.producer_id == producer_id:
                    self._replay(batch.header)
        self.open, self.ended, self.completed = {}, [], []
        for header, body in self.batches:
            if header.is_control:
                self._end(header.producer_id, header.base_offset, commit=body[_TYPE_AT] == 1)
            elif header.is_transactional:
                self.open.setdefault(header.producer_id, header.base_offset)
        self.completed = [one for one in self.completed if one[1] >= self.high_watermark]
        if self.held_at is not None:
            self.held_at = min(self.held_at, self.end)
        self.changed()

    def _replay(self, header: BatchHeader) -> None:
        if header.is_control:
            known = self.producers.get(header.producer_id)
            if known is None or header.producer_epoch > known.epoch:
                self.producers[header.producer_id] = Producer(
                    header.producer_epoch, timestamp_ms=header.max_timestamp_ms
                )
        else:
            self._remember(header, header.base_offset)

    def delete_before(self, offset: int) -> None:
        """Delete as retention and DeleteRecords do: whole batches before `offset`, where the log then starts."""
        self.start = max(self.start, offset)
        self.batches = [batch for batch in self.batches if batch.header.next_offset > self.start]
        self._bases = [batch.header.base_offset for batch in self.batches]
        self.end = max(self.end, self.start)
        self.changed()

    def clean(self, offsets: set[int]) -> None:
        """Remove records as the log cleaner does: their offsets stay, and batches of producers that are known.

        (`LogCleaner.cleanInto`; batches without a producer go when they are empty.)
        """
        left = []
        for batch in self.batches:
            header = batch.header
            if header.is_control or offsets.isdisjoint(range(header.base_offset, header.next_offset)):
                left.append(batch)
                continue
            found = records_of(header, batch.body)
            kept = [(at, rest) for at, rest in zip(found.offsets, found.rests, strict=True) if at not in offsets]
            if not kept and header.producer_id < 0:
                continue
            body = b"".join(_record(at - header.base_offset, rest) for at, rest in kept)
            header = header._replace(record_count=len(kept), length_bytes=HEADER_BYTES - LENGTH_COUNTS_FROM + len(body))
            left.append(Batch(header._replace(checksum=_checksum(header, body)), body))
        self.batches = left
        self._bases = [batch.header.base_offset for batch in left]

    def expire_producers(self, now_ms: int, expiry_ms: int = EXPIRY_MS) -> int:
        """Forget producers as a broker does every ten minutes, by the age of their records; returns how many."""
        old = [one for one, known in self.producers.items() if now_ms - known.timestamp_ms >= expiry_ms]
        for producer_id in old:
            if producer_id not in self.open:
                del self.producers[producer_id]
        return len(old)

    # Reading

    def batches_from(self, offset: int) -> list[Batch]:
        """The batches that end after an offset."""
        return self.batches[max(0, bisect_right(self._bases, offset) - 1) :] if offset < self.end else []

    def read(self, offset: int, *, below: int, max_bytes: int) -> bytes:
        """Whole batches from that with `offset` on and below an offset; the first one whatever its size.

        None at all where `max_bytes` is 0.
        """
        found: list[bytes] = []
        size = 0
        if not max_bytes:
            return b""
        batches = self.batches
        for at in range(max(0, bisect_right(self._bases, offset) - 1), len(batches)):
            header, body = batches[at]
            if header.next_offset <= offset:
                continue
            if header.base_offset >= below:
                break
            size += HEADER_BYTES + len(body)
            if found and size > max_bytes:
                break
            found.append(header.pack() + body)
        return b"".join(found)

    def aborted_between(self, offset: int, below: int) -> list[tuple[int, int]]:
        """Aborted transactions with records in a range, as a fetch response has them."""
        return [(one.producer_id, one.first) for one in self.ended if one.marker >= offset and one.first < below]

    def diverges(self, offset: int, epoch: int) -> int | None:
        """Where a reader's log that has `epoch` before `offset` differs from this one (KIP-320); UNKNOWN: no idea."""
        end = self.end_of_epoch(epoch)
        if end is None:
            return UNKNOWN
        found, end_offset = end
        if found < epoch or end_offset < offset:
            return end_offset
        return None

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """As `LeaderEpochFileCache.endOffsetFor`: the greatest epoch up to this one, and where it ends."""
        if epoch == self.epochs[-1][0]:
            return epoch, self.end
        higher = next((one for one in self.epochs if one[0] > epoch), None)
        if higher is None:
            return None
        floor = [one for one in self.epochs if one[0] <= epoch]
        return (floor[-1][0] if floor else epoch), higher[1]
