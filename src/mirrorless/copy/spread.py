"""Last, least, greatest and average of what was measured in a lease."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Spread:
    """Of values in ms; all None while there is none. A clock that is ahead makes a negative value, which is 0."""

    last: int | None = None
    least: int | None = None
    greatest: int | None = None
    total: int = 0
    count: int = 0

    def note(self, value_ms: int) -> None:
        """Take one value."""
        value_ms = max(0, value_ms)
        self.last = value_ms
        self.least = value_ms if self.least is None else min(self.least, value_ms)
        self.greatest = value_ms if self.greatest is None else max(self.greatest, value_ms)
        self.total += value_ms
        self.count += 1

    @property
    def average(self) -> int | None:
        """The average, rounded."""
        return round(self.total / self.count) if self.count else None
