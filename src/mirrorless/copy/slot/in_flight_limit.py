"""How many produce requests one connection may have in flight. No I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from mirrorless.clusters.round_trips import FAR_S
from mirrorless.copy.partition.send_window import BATCHES_IN_FLIGHT

MOST_REQUESTS: Final = 128
_QUEUED_S: Final = 0.02
_LEAST: Final = 2
"""One that the broker works at, and one that is on its way."""


@dataclass(slots=True)
class InFlightLimit:
    """Five requests, and more over a long link: as many as are on their way during a round trip.

    `shortest_s` is the shortest answer, about a round trip. While answers take little longer, the link and the broker
    have room for one more. When they take several times as long, requests only wait in one of the two, and what comes
    later waits with them; then there are fewer. The Vegas algorithm of TCP does the same.
    """

    requests: int = BATCHES_IN_FLIGHT
    shortest_s: float = math.inf

    def answered(self, took_s: float, *, limited: bool) -> None:
        """Note an answer after so many seconds; `limited` says that more would have been sent."""
        self.shortest_s = min(self.shortest_s, took_s)
        if self.shortest_s < FAR_S:
            self.requests = BATCHES_IN_FLIGHT
        elif took_s <= 1.5 * self.shortest_s + _QUEUED_S:
            if limited:
                self.requests = min(MOST_REQUESTS, self.requests + 1)
        elif took_s > 3 * self.shortest_s + 2 * _QUEUED_S:
            self.requests = max(_LEAST, self.requests - 1)
