"""Derives a lag in seconds from offsets: how long the oldest record that is not copied has been there. No I/O."""

from __future__ import annotations

from typing import Final

_MOST_MARKS: Final = 16
_SOON_S: Final = 5.0
"""A lag that is copied within so many seconds at the present rate is that of a copy that keeps up."""


def catch_up_s(lag_records: int | None, *, lag_per_s: float | None, copied_per_s: float) -> float | None:
    """Return in how many seconds the lag would be 0; None if that is unknown, or if the lag does not shrink."""
    if not lag_records:
        return None if lag_records is None else 0.0
    if lag_records <= _SOON_S * copied_per_s:
        return lag_records / copied_per_s
    return None if lag_per_s is None or lag_per_s >= 0 else lag_records / -lag_per_s


class LagTime:
    """The times at which the source's end of one partition was seen; between two of them records arrived evenly.

    Times are monotonic seconds. At most 16 marks are kept; of more, every second one is dropped.
    """

    __slots__ = ("_marks", "_reached")

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []
        self._reached: tuple[float, int] | None = None  # the newest time whose end was copied, None before the first

    def see(self, now_s: float, *, end: int, next_offset: int) -> tuple[float, bool]:
        """Return the lag in seconds, and whether it is only a minimum; `next_offset` is the next one to copy."""
        if next_offset >= end:
            self._reached = now_s, end
            self._marks.clear()
            return 0.0, False
        marks = self._marks
        if not marks or marks[-1][1] < end:
            marks.append((now_s, end))
            if len(marks) > _MOST_MARKS:
                del marks[1:-1:2]
        passed = 0
        while marks[passed][1] <= next_offset:
            passed += 1
        if passed:
            self._reached = marks[passed - 1]
            del marks[:passed]
        seen_s, seen_end = marks[0]
        if self._reached is None:
            return now_s - seen_s, True
        reached_s, reached_end = self._reached
        share = max(0, next_offset - reached_end) / max(1, seen_end - reached_end)
        return max(0.0, now_s - reached_s - min(1.0, share) * (seen_s - reached_s)), False
