"""What a fetch may find of a partition besides its records, and what is to become of the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mirrorless.batches.header import FormatError
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.errors import Gap, PartitionError


class FetchEvents(Protocol):
    """Decides what becomes of a partition; `ErrorPolicy` does."""

    def position_changed(self, copy: PartitionCopy) -> None:
        """Handle that the copy's position or state changed."""

    def retry_later(self, copy: PartitionCopy, error: BaseException | str) -> None:
        """Resume the copy after a pause."""

    def leave_to_next_lease(self, copy: PartitionCopy, reason: str) -> None:
        """Do not resume the copy in this lease."""

    def halt(self, copy: PartitionCopy, error: PartitionError, *, finish_queue: bool = False) -> None:
        """Stop the copy; with `finish_queue`, what was fetched before is still appended."""

    def gap_found(self, copy: PartitionCopy, gap: Gap) -> None:
        """Handle that the source does not have the records that come next."""

    def batch_damaged(self, copy: PartitionCopy, error: FormatError) -> None:
        """Handle a batch that cannot be copied; what came before it is queued."""

    def hole_at_end(self, copy: PartitionCopy, stable: int) -> None:
        """The offsets up to the source's last stable offset `stable` have no record."""
