"""What one partition's copy did since its last report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition

_MOST_MS = (1 << 53) - 1


@dataclass(slots=True)
class Spread:
    """Last, least, greatest and average of values in ms; all None while there is none.

    A negative value, as of clocks that differ, counts as 0. One too large for a report, as of a timestamp that a
    producer made up, counts as the largest that fits.
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
    """Counters of one partition since its last report; each field is that of `Report` by the same name."""

    records: int = 0
    copied_bytes: int = 0
    fetched_bytes: int = 0
    follower_bytes: int = 0
    first_offset: int | None = None
    latency: Spread = field(default_factory=Spread)
    age: Spread = field(default_factory=Spread)
    began_ms: int | None = None
    ended_ms: int | None = None
    left_out: int = 0
    gaps: int = 0
    foreign: int = 0
    skipped: int = 0
    fetch_throttle_ms: int = 0
    produce_throttle_ms: int = 0
    events: list[str] = field(default_factory=list)

    def came(self, *, age_ms: int, now_ms: int) -> None:
        """Count a fetched batch, whose newest record has this age."""
        if self.began_ms is None:
            self.began_ms = now_ms
        self.age.note(age_ms)

    def arrived(self, base_offset: int, records: int, size_bytes: int, *, latency_ms: int, now_ms: int) -> None:
        """Count a batch that the target acknowledged."""
        if self.began_ms is None:
            self.began_ms = now_ms  # it was fetched in the lease before
        self.records += records
        self.copied_bytes += size_bytes
        if self.first_offset is None:
            self.first_offset = base_offset
        self.latency.note(latency_ms)
        self.ended_ms = now_ms

    def fetched(self, size_bytes: int, *, follower: bool) -> None:
        """Count records that a broker sent, and whether it was a follower (KIP-392)."""
        self.fetched_bytes += size_bytes
        if follower:
            self.follower_bytes += size_bytes

    def throttled(self, *, fetch_ms: int = 0, produce_ms: int = 0) -> None:
        """Count the time that a leader whose quota is used up makes the copy wait (KIP-219)."""
        self.fetch_throttle_ms += fetch_ms
        self.produce_throttle_ms += produce_ms

    def note_event(self, text: str) -> None:
        """Keep a line for the report."""
        self.events.append(text)

    def passed_gap(self) -> None:
        """Count a gap that an epoch begins after."""
        self.gaps += 1

    def passed_left_out(self) -> None:
        """Count records that an epoch begins after, because they cannot be copied."""
        self.left_out += 1

    def passed_copies(self, records: int) -> None:
        """Count records of the source that a copy had appended there (`mirrorless.both.directions=skip`)."""
        self.skipped += records

    def note_foreign(self, remote: TopicPartition, offsets: int, *, before: int) -> None:
        """Count target offsets that this copy did not write: the target has no holes while no other writer is there."""
        if not self.foreign:
            topic, partition = remote
            self.events.append(
                f"{topic}-{partition}: another writer took {offsets} offsets before {before}; if that was another run "
                "of this flow, which copied records too old for the target to tell two runs apart, these records are "
                "there twice; otherwise consumers find records that the source does not have"
            )
        self.foreign += offsets
