"""Limits the logging of records that do not belong in a topic: one line per topic with a count, at intervals."""

from __future__ import annotations

import time
from typing import Final

AGAIN_S: Final = 600.0


class ForeignRecords:
    """Counts them by topic for the lifetime of the process; a topic is logged at once, then every ten minutes."""

    def __init__(self) -> None:
        self._unlogged: dict[str, int] = {}
        self._not_before: dict[str, float] = {}

    def due(self, topic: str, count: int) -> int:
        """Add `count` records of a topic; return how many to log now, with those not logged before, or 0."""
        count += self._unlogged.pop(topic, 0)
        now = time.monotonic()
        if now < self._not_before.get(topic, now):
            self._unlogged[topic] = count
            return 0
        self._not_before[topic] = now + AGAIN_S
        return count
