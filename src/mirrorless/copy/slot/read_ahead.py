"""Reads of one partition ahead of its position, so that a long link always carries some of it. No I/O.

A consumer knows the next offset to ask for when the last answer is there, so one partition gets one answer in each
round trip. Offsets of a log are nearly evenly spread over its bytes, so the next reads can be guessed: each begins
where the one before it is expected to end. An answer begins with the whole batch that has its first offset, and ends
within a batch, which is dropped: so two batches less than its size are certain. Answers are taken in order. Where two
overlap, the common batches are dropped; where one ends early, the gap is read before the next is taken.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.batches.continuity import offset_spread

if TYPE_CHECKING:
    from mirrorless.batches.continuity import OffsetSpread
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.read_replicas import ServingBroker
    from mirrorless.protocol.requests import Fetched

_ANSWERS: Final = 8
"""The answer with the fewest offsets of so many counts: a gap costs a round trip, common batches some bandwidth."""
_GAP_SPARE_BYTES: Final = 16 << 10
_LEAST_SHARE: Final = 0.25
_FAILURES: Final = 3


@dataclass(slots=True, eq=False)
class RangeRead:
    """A read of `size_bytes` from the offset `start` on, whether it was `asked` for, and its answer."""

    start: int
    size_bytes: int
    asked: bool = True
    answer: Fetched | None = None


class ReadAhead:
    """The reads of one partition from `broker`, in order of their offsets.

    For each: `first_read` or `next_read`, then its `answer` is set, and `next_answer` returns it in its turn, after
    which `taken` has to follow. `is_stale` says that the copy has moved in between, so that this object is of no use.
    """

    def __init__(self, copy: PartitionCopy, broker: ServingBroker, seen: OffsetSpread) -> None:
        self.copy = copy
        self.broker = broker
        self._reads: deque[RangeRead] = deque()
        self._seen: deque[OffsetSpread] = deque([seen], maxlen=_ANSWERS)
        self._next_start = self._position = copy.fetch_from
        self._failures = 0

    @property
    def size_bytes(self) -> int:
        """Bytes that were asked for and not taken."""
        return sum(read.size_bytes for read in self._reads)

    @property
    def in_flight_bytes(self) -> int:
        """Bytes that were asked for and not answered."""
        return sum(read.size_bytes for read in self._reads if read.asked and read.answer is None)

    @property
    def is_stale(self) -> bool:
        """Whether the copy was resumed, or got records from elsewhere."""
        return self.copy.fetch_from != self._position

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to read: what may follow the last answer is a hole, or little."""
        return not self._reads and max(self._next_start, self.copy.fetch_from) >= self.copy.source_end

    @property
    def _offsets_per_byte(self) -> float:
        return min(one.offsets / one.size_bytes for one in self._seen)

    @property
    def _edges_bytes(self) -> int:
        """How much of an answer may not count: what is before its first offset, and the batch that it ends within."""
        return 2 * max(one.largest_bytes for one in self._seen)

    def first_read(self, size_bytes: int) -> RangeRead | None:
        """Return a read without which nothing more can be taken: one that failed, or a gap; None if there is none."""
        for read in self._reads:
            if not read.asked:
                read.asked = True
                return read
        position = self.copy.fetch_from
        if not self._reads or (gap := self._reads[0].start - position) <= 0:
            return None
        needed = int(gap / self._offsets_per_byte) + self._edges_bytes + _GAP_SPARE_BYTES
        read = RangeRead(position, min(size_bytes, needed))
        self._reads.appendleft(read)
        return read

    def next_read(self, size_bytes: int) -> RangeRead | None:
        """Return a read of what follows all others; None if nothing does."""
        start = max(self._next_start, self.copy.fetch_from)
        if start >= self.copy.source_end:
            return None
        read = RangeRead(start, size_bytes)
        certain = max(size_bytes * _LEAST_SHARE, size_bytes - self._edges_bytes)
        self._next_start = start + max(1, int(certain * self._offsets_per_byte))
        self._reads.append(read)
        return read

    def next_answer(self) -> RangeRead | None:
        """Return the next read if it was answered and begins at the copy's position, or before it."""
        if not self._reads or self._reads[0].answer is None or self._reads[0].start > self.copy.fetch_from:
            return None
        return self._reads.popleft()

    def failed(self, read: RangeRead) -> bool:
        """Note that a read has no answer; False if so many failed in a row that the first connection has to be used."""
        read.asked = False
        self._failures += 1
        return self._failures < _FAILURES

    def taken(self, read: RangeRead) -> None:
        """Note that the answer of a read was taken, which has moved the copy."""
        self._failures = 0
        self._position = self.copy.fetch_from
        if read.answer is not None and (seen := offset_spread(read.answer.records)) is not None:
            self._seen.append(seen)
