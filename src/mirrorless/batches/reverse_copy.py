"""Recognises batches that a copy in the opposite direction appended to the source: records of ours that came back.

A flow of another file may copy the target's topic back under the name that it has here. Its producer id is made of the
target's cluster id (`copy.producer_identity`), so every batch says whether it came that way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mirrorless.batches.header import BatchHeader

NO_PRODUCER: Final = -2
"""No batch has it: -1 is that of a batch without a producer."""


class OppositeCopy(NamedTuple):
    """The producer that copies the remote partition back, and the source's end when this copy began.

    Its batches from offset `since` on are a loop; older ones are a copy that was finished before, as by a migration.
    """

    producer_id: int = NO_PRODUCER
    since: int = 0

    def made(self, header: BatchHeader) -> bool:
        """Whether a batch is part of a loop."""
        return header.producer_id == self.producer_id and header.base_offset >= self.since


NO_OPPOSITE: Final = OppositeCopy()


class LoopedBatch(Exception):
    """A batch of the opposite copy begins at upstream `offset`; everything before it was taken."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        super().__init__(f"offset {offset}")
