"""How many batches of one partition may be in flight to the target at once. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BATCHES_IN_FLIGHT: Final = 5
"""Brokers recognise a resent batch among the last five of a producer (`ProducerStateEntry`)."""
PRODUCER_EXPIRY_MS: Final = 86_400_000
"""Kafka's default of `producer.id.expiration.ms`."""
_LATE_MS: Final = 600_000
"""By so much clocks may differ, and a batch may arrive later than its age was compared."""
_NOTHING_MS: Final = -(1 << 62)
_ROUND_TRIP_LIMITS_S: Final = 0.010
"""A batch that is sent alone and waits this long for its acknowledgement is better merged with the next ones."""


def remembered_ms(expiry_ms: int) -> int:
    """Return for how long after a record's timestamp a target certainly remembers our producer, by its expiry.

    It is half of that, since clocks differ. Where that is ten minutes or less, no record counts as remembered.
    """
    return expiry_ms // 2 if expiry_ms // 2 > _LATE_MS else _NOTHING_MS


@dataclass(slots=True)
class SendWindow:
    """Batches in flight: several while the target certainly remembers our producer, else one.

    Brokers forget a producer by the age of its records (`ProducerStateManager.isProducerExpired`). A broker that has
    forgotten it accepts any sequence: it would append a batch that follows a refused one, and the refused one would be
    missing. For `remembered_ms` after a record's timestamp the target certainly remembers. So several batches are in
    flight while the timestamps of all of them, and of the one acknowledged before them, are younger than that.

    `merges`: batches are sent one by one, and the round trip limits the throughput, so small ones should be merged.
    """

    remembered_ms: int = PRODUCER_EXPIRY_MS // 2
    in_flight: int = 0
    merges: bool = False
    _acked_timestamp_ms: int = -1
    _oldest_sent_ms: int = -1
    _sent_at: float = 0.0

    def restart(self) -> None:
        """Send one batch alone after a resume: only its acknowledgement shows what the leader remembers."""
        self._acked_timestamp_ms = -1

    def has_room(self, now_ms: int, most: int = BATCHES_IN_FLIGHT) -> bool:
        """Whether one more batch may be sent, where at most so many are in flight."""
        return not self.in_flight or (self.in_flight < most and self._is_remembered(now_ms))

    def sent(self, timestamp_ms: int, *, now: float) -> None:
        """Note a sent batch, by its latest record's timestamp (-1: none); `now` is `time.monotonic`."""
        if not self.in_flight:
            self._oldest_sent_ms = self._acked_timestamp_ms
            self._sent_at = now
        self._oldest_sent_ms = min(self._oldest_sent_ms, timestamp_ms)
        self.in_flight += 1

    def answered(self) -> None:
        """Note that a batch is not in flight any more, whatever the answer was."""
        self.in_flight -= 1

    def acknowledged(self, timestamp_ms: int, *, now_ms: int, now: float, more: bool) -> None:
        """Note that the target holds a batch; `more`: others are queued."""
        self._acked_timestamp_ms = timestamp_ms
        if self._is_remembered(now_ms):
            self.merges = False
        elif more:
            self.merges = now - self._sent_at >= _ROUND_TRIP_LIMITS_S

    def remembers(self, timestamp_ms: int, now_ms: int) -> bool:
        """Whether the target certainly remembers our producer by a record of this timestamp."""
        return timestamp_ms >= now_ms - self.remembered_ms

    def _is_remembered(self, now_ms: int) -> bool:
        return self.remembers(self._oldest_sent_ms, now_ms)
