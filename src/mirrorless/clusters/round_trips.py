"""How far away a cluster is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.kafka_python.messages import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable

FAR_S: Final = 0.020
"""From this round trip on a broker is far away; a busy machine may take some ms for a request to itself."""
_ASKED: Final = 4


def shortest_round_trip_s(ask: Callable[[Any], object], *, clock: Callable[[], float] = time.monotonic) -> float:
    """Return the shortest time of a few requests without work for the broker, in seconds; raises what `ask` raises."""
    took = []
    for _ in range(_ASKED):
        before = clock()
        ask(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        took.append(clock() - before)
    return min(took)
