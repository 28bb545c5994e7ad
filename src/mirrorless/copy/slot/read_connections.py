"""How many connections to a leader of the source records are read over at once. No I/O.

A connection carries what one window of unacknowledged bytes lets through in a round trip, and brokers limit that window
to 100 KiB as they come (`socket.send.buffer.bytes`); and it carries one answer in a round trip. Both do not matter
where a round trip takes a millisecond. Whether they do shows at the target: it waits for records while the source has
more of them.
"""

from __future__ import annotations

from typing import Final

MOST_CONNECTIONS: Final = 32
_WAITED_S: Final = 0.02
_ANSWERS: Final = 2
"""One alone may be a pause of the target's broker."""
_SHARE: Final = 0.5
_SHORT_WAITS: Final = 4
"""Answers of several connections come one after the other, so the target waits often rather than long."""
_FIRST: Final = 4
_FIRST_NUMBER: Final = 3
_PAUSE_S: Final = 0.5
_DOUBLED: Final = 6


class ReadConnections:
    """Connections to one leader: one at first, twice as many each time that full answers find the target waiting.

    `most` bounds them. `idle` is the number of one that is not in use, from 3 on: the first one has the leader's
    session, and 2 is that of requests without a rack (`ServingBroker`). It is in use from `take` to `give_back`. Times
    are those of `time.monotonic`.
    """

    def __init__(self, most: int) -> None:
        self.count = 1
        self._most = min(most, MOST_CONNECTIONS)
        self._free: dict[int, float] = {}
        self._failures: dict[int, int] = {}
        self._hungry = 0
        self._short_waits = 0
        self._last = 0.0

    def answered(self, *, waited_s: float, now: float) -> None:
        """Note a full answer, before which the target had nothing to do for so long."""
        self._hungry = self._hungry + 1 if waited_s >= _WAITED_S else 0
        often = self.count > 1 and 0.0 < now - self._last <= waited_s / _SHARE
        self._short_waits = self._short_waits + 1 if often else 0
        self._last = now
        enough = self._hungry >= (_ANSWERS if self.count == 1 else 1) or self._short_waits >= _SHORT_WAITS
        if self.count < self._most and enough:
            self._short_waits = 0
            more = min(self._most, max(_FIRST, 2 * self.count))
            self._free |= dict.fromkeys(range(self.count + _FIRST_NUMBER - 1, more + _FIRST_NUMBER - 1), 0.0)
            self.count = more

    @property
    def has_idle(self) -> bool:
        """Whether an extra connection is not in use."""
        return bool(self._free)

    def idle(self, *, now: float) -> int | None:
        """Return the number of a connection that may be used, None if there is none."""
        return next((number for number, due in self._free.items() if due <= now), None)

    def take(self, number: int) -> None:
        """Note that a connection is in use."""
        del self._free[number]

    def give_back(self, number: int, *, now: float, failed: bool = False) -> None:
        """Take a connection back; one that failed is not used for a while, twice as long after each failure."""
        if failed:
            failures = self._failures[number] = self._failures.get(number, 0) + 1
            self._free[number] = now + _PAUSE_S * 2 ** min(failures - 1, _DOUBLED)
        else:
            self._failures.pop(number, None)
            self._free[number] = 0.0
