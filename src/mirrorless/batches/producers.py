"""Recognises batches that a copy appended, by the producer id in their headers.

The producer id of a copy is derived from its source's cluster id (`progress.producer_ids`), so every batch shows
which flow copied it; log compaction keeps the id. A flow of another file may copy the target's topic back under the
same name: `OppositeCopy`. With `mirrorless.both.directions=skip` only a cluster's own records are copied:
`ProducerFilter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mirrorless.batches.header import BatchHeader

NO_PRODUCER: Final = -2
"""An id of no batch: -1 is that of a batch without a producer."""


class OppositeCopy(NamedTuple):
    """The producer that copies the remote partition back; its batches from offset `since` on are not copied."""

    producer_id: int = NO_PRODUCER
    since: int = 0

    def made(self, header: BatchHeader) -> bool:
        """Whether a batch is part of a loop."""
        return header.producer_id == self.producer_id and header.base_offset >= self.since


NO_OPPOSITE: Final = OppositeCopy()


class ProducerFilter(NamedTuple):
    """Selects batches by producer: those of `ids` if they are `wanted`, else all others."""

    ids: frozenset[int] = frozenset()
    wanted: bool = False

    def selects(self, header: BatchHeader) -> bool:
        """Whether the batch's producer is selected."""
        return (header.producer_id in self.ids) is self.wanted


EVERY_PRODUCER: Final = ProducerFilter()


class LoopedBatch(Exception):
    """A batch of the opposite copy begins at upstream `offset`; everything before it was taken."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        super().__init__(f"offset {offset}")
