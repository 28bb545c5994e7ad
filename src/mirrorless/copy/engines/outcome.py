"""How a copy ends, whichever engine runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.copy.partition.lease_rows import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.lease_rows import Report

LANDING_S: Final = 2.5
"""How long a lease may take to end after a stop request."""
FRUITLESS_LEASES: Final = 3
"""A bounded copy gives up after so many consecutive leases that copied nothing."""
GAVE_UP: Final = (
    f"gave up before the end: {FRUITLESS_LEASES} consecutive leases copied nothing; earlier lines have the reason;"
    " another run resumes from here"
)
"""The error of a bounded copy that does not reach its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOutcome:
    """How a copy ended: `complete` says that a bounded copy reached its end, `stuck` that it gave up before."""

    complete: bool
    stuck: bool


class BoundedEnd:
    """`complete` says that the copy reached its end without errors, `stuck` that it gave up, `over` either or both."""

    def __init__(self) -> None:
        self.complete = self.stuck = self.over = False
        self._fruitless = 0
        self._reached: dict[TopicPartition, int] = {}

    def lease_ended(self, reports: Sequence[Report]) -> None:
        """Take the reports of a lease."""
        totals = summary(reports)
        # Of all reported partitions: those caught up are not in the next lease.
        before = sum(self._reached.values()) if self._reached else -1
        self._reached |= {(report.topic, report.partition): report.next_offset or 0 for report in reports}
        # Partitions that wait for another run wait while it runs, or until its mark expires.
        advanced = sum(self._reached.values()) > before or any(report.waits for report in reports)
        self._fruitless = 0 if advanced else self._fruitless + 1
        self.complete = totals.over and not totals.errors
        self.stuck = not totals.over and self._fruitless >= FRUITLESS_LEASES
        self.over = totals.over or self.stuck
