"""A partition's log in memory, with the rules by which brokers append (`ProducerStateManager`) and serve fetches."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.checksum import checksum
from mirrorless.batches.header import CHECKSUM_STARTS_AT, HEADER_BYTES, SEQUENCES, TRANSACTIONAL, BatchHeader
from mirrorless.batches.rebuild import merge, records_of
from mirrorless.batches.records import Records, varint

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from mirrorless.batches.stamp import Stamped

CORRUPT_MESSAGE = 2
MESSAGE_TOO_LARGE = 10
OUT_OF_ORDER_SEQUENCE = 45
INVALID_PRODUCER_EPOCH = 47
_REMEMBERED_BATCHES = 5


class Appended(NamedTuple):
    """The offset of a batch's first record, or an error code."""

    base_offset: int
    error_code: int = 0


@dataclass(slots=True)
class Producer:
    """What a leader remembers of a producer: its last batches, as base sequence, record count and base offset."""

    epoch: int
    last_sequence: int = -1
    timestamp_ms: int = -1
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_BATCHES))


class Batch(NamedTuple):
    """A batch as it is stored."""

    header: BatchHeader
    body: bytes

    @property
    def whole(self) -> bytes:
        """Header and body."""
        return self.header.pack() + self.body


class FakeLog:
    """One partition: `start` is the first offset left, `end` the next one; `open_since` is an open transaction's first.

    `replicated` is the high watermark where it is not the end.
    """

    def __init__(self, topic_id: UUID | None = None) -> None:
        self.topic_id = topic_id
        self.batches: list[Batch] = []
        self.start = 0
        self.end = 0
        self.replicated: int | None = None
        self.open_since: int | None = None
        self.aborted: list[tuple[int, int]] = []
        self.producers: dict[int, Producer] = {}
        self.leader_epoch = 0
        self.forgets = False
        self.diverges_at: int | None = None
        self.max_message_bytes: int | None = None

    @property
    def high_watermark(self) -> int:
        """The next offset after what is replicated."""
        return self.end if self.replicated is None else min(self.replicated, self.end)

    @property
    def stable(self) -> int:
        """The last stable offset."""
        return self.high_watermark if self.open_since is None else min(self.open_since, self.high_watermark)

    def produce(self, values: Iterable[bytes], *, timestamp_ms: int = 0, transaction: int | None = None) -> int:
        """Append one batch as a producer would, and return its first offset; `transaction` is a producer id."""
        rests = [varint(-1) + varint(len(value)) + value + varint(0) for value in values]
        offsets = list(range(len(rests)))
        (built,) = merge([(0, Records(offsets, [timestamp_ms] * len(rests), rests))], max_bytes=1 << 30)
        header = built.header
        if transaction is not None:
            header = header._replace(attributes=TRANSACTIONAL, producer_id=transaction, producer_epoch=0)
            header = header._replace(checksum=_checksum(header, built.body))
            self.open_since = self.end if self.open_since is None else self.open_since
        return self._store(header, built.body)

    def end_transaction(self, producer_id: int, *, first: int, commit: bool) -> None:
        """Close a transaction that began at offset `first`; its marker takes an offset, as a hole here."""
        self.open_since = None
        self.end += 1
        if not commit:
            self.aborted.append((producer_id, first))
            # As the cleaner does: the fake keeps no markers, by which aborted data would be known.
            self.batches = [batch for batch in self.batches if batch.header.producer_id != producer_id]

    def append(self, batch: Stamped) -> Appended:
        """Append a stamped batch if its producer's sequence is the next one; a repeated one is acknowledged again."""
        header = BatchHeader.parse(batch.head)
        if header.checksum != _checksum(header, bytes(batch.body)):
            return Appended(-1, CORRUPT_MESSAGE)
        if self.max_message_bytes is not None and batch.size_bytes > self.max_message_bytes:
            return Appended(-1, MESSAGE_TOO_LARGE)
        known = None if self.forgets else self.producers.get(header.producer_id)
        if known is not None:
            if header.producer_epoch < known.epoch:
                return Appended(-1, INVALID_PRODUCER_EPOCH)
            for base_sequence, records, base_offset in known.batches:
                if (known.epoch, base_sequence, records) == (
                    header.producer_epoch,
                    header.base_sequence,
                    header.record_count,
                ):
                    return Appended(base_offset)
            expected = 0 if header.producer_epoch > known.epoch else (known.last_sequence + 1) % SEQUENCES
            if header.base_sequence != expected:
                return Appended(-1, OUT_OF_ORDER_SEQUENCE)
        if known is None or header.producer_epoch > known.epoch:
            known = self.producers[header.producer_id] = Producer(header.producer_epoch)
        base_offset = self._store(header, bytes(batch.body))
        known.last_sequence = header.last_sequence
        known.batches.append((header.base_sequence, header.record_count, base_offset))
        return Appended(base_offset)

    def _store(self, header: BatchHeader, body: bytes) -> int:
        base_offset = self.end
        header = header._replace(base_offset=base_offset, partition_leader_epoch=self.leader_epoch)
        self.batches.append(Batch(header, body))
        self.end = header.next_offset
        return base_offset

    def skip(self, offsets: int) -> None:
        """Leave a hole at the end, as a transaction's marker or the cleaner does."""
        self.end += offsets

    def delete_before(self, offset: int) -> None:
        """Delete as retention does."""
        self.start = offset
        self.batches = [batch for batch in self.batches if batch.header.next_offset > offset]

    def truncate(self, offset: int) -> None:
        """Cut the log at a batch's first offset, as an unclean election does."""
        self.batches = [batch for batch in self.batches if batch.header.next_offset <= offset]
        self.end = offset
        for producer_id in list(self.producers):
            del self.producers[producer_id]
        for batch in self.batches:
            header = batch.header
            if header.producer_id >= 0:
                known = self.producers.setdefault(header.producer_id, Producer(header.producer_epoch))
                known.epoch, known.last_sequence = header.producer_epoch, header.last_sequence
                known.batches.append((header.base_sequence, header.record_count, header.base_offset))

    def read(self, offset: int, *, below: int, max_bytes: int) -> bytes:
        """Whole batches from that with `offset` on and below an offset; the first one whatever its size."""
        found: list[bytes] = []
        size = 0
        for batch in self.batches:
            if batch.header.next_offset <= offset or batch.header.base_offset >= below:
                continue
            size += HEADER_BYTES + len(batch.body)
            if found and size > max_bytes:
                break
            found.append(batch.whole)
        return b"".join(found)

    def values(self) -> list[bytes]:
        """Values of all records, in order."""
        return [_value(rest) for header, body in self.batches for rest in records_of(header, body).rests]

    def offsets(self) -> list[int]:
        """Offsets of all records, in order."""
        return [offset for header, body in self.batches for offset in records_of(header, body).offsets]


def _checksum(header: BatchHeader, body: bytes) -> int:
    return checksum(header.pack()[CHECKSUM_STARTS_AT:], body)


def _value(rest: bytes) -> bytes:
    """The value of a record without key and headers."""
    at, length, shift = len(varint(-1)), 0, 0
    while True:
        byte = rest[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            break
    length = (length >> 1) ^ -(length & 1)
    return rest[at : at + length]
