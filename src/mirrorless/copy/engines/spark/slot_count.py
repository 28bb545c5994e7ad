"""How many slots the next lease of an unbounded copy gets, from what the last one copied and left behind."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from mirrorless.copy.partition.lease_rows import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.copy.partition.lease_rows import Report

SLOT_BYTES_PER_S: Final = 20_000_000
"""What one slot surely copies: a twentieth of what was measured of one core, and the figure of docs/cost.md."""
BEHIND_S: Final = 30
"""A flow is behind if it has more left than arrives in so many seconds."""


class SlotCount:
    """The slots of successive leases, between one and the executors' cores.

    The first lease has as many slots as cores, and so has every lease after one that left the flow behind. Others have
    as many as the rate of the last lease needs, and at least half as many as before. With one slot the copy continues
    between two leases; several pause.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._slots: int | None = None

    def after(self, reports: Sequence[Report], *, cores: int) -> int:
        """Return the number of slots for the next lease; `reports` is empty if the last one was not planned."""
        now = self._clock()
        seconds, self._since = max(now - self._since, 1.0), now
        before = self._slots or cores
        wanted = before
        if reports:
            # What is halted, or left to another run, does not come faster with more slots.
            copied = summary([one for one in reports if one.state != "halted" and not one.waits])
            behind = copied.lag_records > BEHIND_S * copied.records / seconds
            needed = math.ceil(copied.copied_bytes / seconds / SLOT_BYTES_PER_S)
            wanted = cores if behind else max(needed, before // 2, 1)
        self._slots = min(wanted, cores)
        return self._slots
