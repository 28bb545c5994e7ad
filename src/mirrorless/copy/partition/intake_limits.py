"""How the batches of one partition have to be treated when they are fetched, as earlier failures showed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class IntakeLimits:
    """`max_batch_bytes`: larger batches are split, None is no limit. `verifies`: checksums are compared.

    `damaged_at` is the source offset of a batch that arrived damaged once.
    """

    max_batch_bytes: int | None = None
    verifies: bool = False
    damaged_at: int | None = None

    def limit(self, max_batch_bytes: int) -> None:
        """Split batches larger than this."""
        self.max_batch_bytes = max_batch_bytes

    def unlimit(self) -> None:
        """Split batches no more."""
        self.max_batch_bytes = None

    def verify(self) -> None:
        """Compare the checksums of what is fetched from here on."""
        self.verifies = True

    def note_damaged(self, offset: int) -> bool:
        """Note a batch that arrived damaged, and return whether the same one had before."""
        again = self.damaged_at == offset
        self.damaged_at = offset
        return again
