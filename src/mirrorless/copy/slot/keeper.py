"""Who is told what a fetch meets, and decides; `ErrorPolicy` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mirrorless.batches.header import FormatError
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.errors import Gap, PartitionError


class Keeper(Protocol):
    """Who decides what becomes of a partition."""

    def later(self, copy: PartitionCopy, error: BaseException | str) -> None:
        """Resume the copy again after a pause."""

    def wait(self, copy: PartitionCopy, reason: str) -> None:
        """Leave the copy alone until the next lease."""

    def halt(self, copy: PartitionCopy, error: PartitionError, *, finish_queue: bool = False) -> None:
        """Stop the copy; with `finish_queue`, what is queued still goes over."""

    def gap(self, copy: PartitionCopy, gap: Gap) -> None:
        """The source does not have the records that come next."""

    def damaged(self, copy: PartitionCopy, error: FormatError) -> None:
        """A batch came that cannot go over; what came before it did."""

    def moved(self, copy: PartitionCopy) -> None:
        """Note that the copy's position changed."""
