"""What one partition's copy did in a lease, for its report."""

from __future__ import annotations

from dataclasses import dataclass, field

_MOST_MS = (1 << 53) - 1


@dataclass(slots=True)
class Spread:
    """Last, least, greatest and average of values in ms; all None while there is none.

    A clock that is ahead makes a negative value, which is 0. A time that is no time, as a producer may write and a
    damaged batch may have, makes one that reports could not carry.
    """

    last: int | None = None
    least: int | None = None
    greatest: int | None = None
    total: int = 0
    count: int = 0

    def note(self, value_ms: int) -> None:
        """Take one value."""
        if not 0 <= value_ms <= _MOST_MS:
            value_ms = 0 if value_ms < 0 else _MOST_MS
        self.last = value_ms
        if self.least is None or value_ms < self.least:
            self.least = value_ms
        if self.greatest is None or value_ms > self.greatest:
            self.greatest = value_ms
        self.total += value_ms
        self.count += 1

    @property
    def average(self) -> int | None:
        """The average, rounded."""
        return round(self.total / self.count) if self.count else None


@dataclass(slots=True)
class PartitionStats:
    """Begins at nothing with every lease; each field is that of `Report` by the same name."""

    records: int = 0
    copied_bytes: int = 0
    first_offset: int | None = None
    latency: Spread = field(default_factory=Spread)
    age: Spread = field(default_factory=Spread)
    began_ms: int | None = None
    ended_ms: int | None = None
    left_out: int = 0
    gaps: int = 0
    foreign: int = 0
    fetch_throttle_ms: int = 0
    produce_throttle_ms: int = 0
    events: list[str] = field(default_factory=list)

    def came(self, *, age_ms: int, now_ms: int) -> None:
        """Count a batch that was fetched, its newest record so old."""
        if self.began_ms is None:
            self.began_ms = now_ms
        self.age.note(age_ms)

    def arrived(self, base_offset: int, records: int, size_bytes: int, *, latency_ms: int, now_ms: int) -> None:
        """Count a batch that the target acknowledged."""
        if self.began_ms is None:
            self.began_ms = now_ms  # it came in the lease before
        self.records += records
        self.copied_bytes += size_bytes
        if self.first_offset is None:
            self.first_offset = base_offset
        self.latency.note(latency_ms)
        self.ended_ms = now_ms
