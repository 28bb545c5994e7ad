"""Measures how far behind a run is and how fast it copies, from the reports of its leases. No I/O."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

from mirrorless.progress.run_marks import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mirrorless.copy.partition.lease_rows import Report

_WINDOW_S: Final = 30.0
_SHORTEST_S: Final = 5.0
"""A copy that has just begun is slower than it will be."""
_SAMPLE_RECORDS: Final = 1_000
"""From so many records on, their size is taken as that of the others."""
_RECORD_BYTES: Final = 1_000.0
"""Taken for the size of a record until then."""


class WorkMeter:
    """Adds up what the leases of one run copied; `work` is the latest measurement.

    The rate is over the last thirty seconds, or over the last lease if that is longer; 0 for the first seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._history: deque[tuple[float, int]] = deque([(clock(), 0)])
        self._bytes = self._records = 0
        self._of_lease = 0, 0
        self.work: Work | None = None

    def observed(self, reports: Iterable[Report]) -> None:
        """Take the reports of the running lease."""
        now = self._clock()
        # What is halted, or left to another run, is not for this engine to catch up with.
        reports = [one for one in reports if one.state != "halted" and not one.waits]
        self._of_lease = sum(one.records for one in reports), sum(one.copied_bytes for one in reports)
        records, copied = self._records + self._of_lease[0], self._bytes + self._of_lease[1]
        self._history.append((now, copied))
        while len(self._history) > 2 and now - self._history[1][0] >= _WINDOW_S:
            self._history.popleft()
        since, before = self._history[0]
        size = copied / records if records >= _SAMPLE_RECORDS else _RECORD_BYTES
        lag = sum(one.lag_records for one in reports)
        self.work = Work(
            lag_records=lag,
            lag_bytes=round(lag * size),
            bytes_per_s=max(0, copied - before) / (now - since) if now - since >= _SHORTEST_S else 0.0,
        )

    def lease_ended(self, reports: Iterable[Report]) -> None:
        """Take the reports of a lease at its end."""
        self.observed(reports)
        self._records += self._of_lease[0]
        self._bytes += self._of_lease[1]
        self._of_lease = 0, 0
