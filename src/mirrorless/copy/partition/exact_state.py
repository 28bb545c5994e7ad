"""What a partition's copy with identical offsets knows besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.progress.records import Claim


@dataclass(slots=True, eq=False)
class ExactState:
    """State that copies with identical offsets have and others do not.

    `source_id` is the source's cluster id, `claim` the last claim that is known of. `hole_in_flight`: markers were sent
    and not answered, so no batch may follow. `most_markers` is the largest hole that markers may take.
    """

    source_id: str
    claim: Claim | None = None
    most_markers: int = 1_000_000
    hole_in_flight: bool = False

    def learn(self, claim: Claim | None) -> None:
        """Note the last claim; a progress topic without one was deleted, and the next claim follows the known one."""
        if claim is not None:
            self.claim = claim

    def begin_hole(self) -> None:
        """Note that markers are sent."""
        self.hole_in_flight = True

    def end_hole(self) -> None:
        """Note that markers were answered, or failed."""
        self.hole_in_flight = False


def is_at_hole(copy: PartitionCopy) -> bool:
    """Whether a hole is next to be taken by markers, or is being taken."""
    if copy.exact is None:
        return False
    return copy.exact.hole_in_flight or (bool(copy.queue) and not copy.queue[0].record_count)
