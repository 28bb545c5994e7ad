"""How fast a slot may fetch (`mirrorless.max.bytes.per.second`): a token bucket that may be overdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_BURST_S = 0.5
_LEAST_BYTES = 64 << 10
_LEAST_PAUSE_S = 0.001
_EXEMPT_EVERY_S = 0.5


class RateLimit:
    """A slot's share of its flow's bytes per second; None is no limit. Times are monotonic seconds.

    A fetch may take more than there is, since brokers return whole batches. Then nothing is fetched until the bucket is
    above zero again, so that the mean is kept. Topics that are `exempt` do not wait for that, but count.
    """

    def __init__(
        self, bytes_per_second: float | None, *, now: float, exempt: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._rate = bytes_per_second
        self._exempt = exempt
        self._exempt_due = 0.0
        self._there = 0.0
        self._since = now

    def pause_s(self, now: float) -> float:
        """Return how long to wait before the next fetch; less than a millisecond is not worth it."""
        if self._rate is None:
            return 0.0
        self._there = min(self._there + (now - self._since) * self._rate, self._rate * _BURST_S)
        self._since = now
        pause_s = -self._there / self._rate
        return pause_s if pause_s > _LEAST_PAUSE_S else 0.0

    def exempt_now(self, topics: set[str], *, now: float) -> set[str]:
        """Return the topics that may be fetched during a pause, some of them twice a second."""
        found = {topic for topic in topics if self._exempt(topic)} if now >= self._exempt_due else set()
        if found:
            self._exempt_due = now + _EXEMPT_EVERY_S
        return found

    def most_bytes(self, otherwise: int) -> int:
        """Return how much one fetch may ask for; `otherwise` is the most without a limit."""
        return otherwise if self._rate is None else min(otherwise, max(_LEAST_BYTES, int(self._rate * _BURST_S)))

    def spend(self, size_bytes: int) -> None:
        """Note what was fetched."""
        if self._rate is not None:
            self._there -= size_bytes
