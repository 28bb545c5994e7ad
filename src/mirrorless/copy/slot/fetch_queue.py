"""Who of one source leader's partitions is asked for next.

A leader reads every partition that a fetch asks for, also those for whose records its answer has no room
(`ReplicaManager.readFromLog`). So where many are behind, no more are asked for than may fill an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.partition.state import PartitionCopy

_IN_STORE = 2
"""So many times those that filled the last answer are asked for: what they have varies."""
_ALL_EVERY_S = 0.5
"""So often everybody is asked for, that news of quiet ones do not wait for a turn of the whole line."""


class FetchQueue:
    """The copies of one leader, those first that waited longest; for one fetch at a time: `front`, and `answered`."""

    def __init__(self) -> None:
        self._copies: dict[PartitionCopy, None] = {}
        self._behind: list[PartitionCopy] = []
        self._most: int | None = None
        self._all_due = 0.0

    def __iter__(self) -> Iterator[PartitionCopy]:
        return iter(self._copies)

    def __len__(self) -> int:
        return len(self._copies)

    def join(self, copy: PartitionCopy) -> None:
        """Take one more, at the end; who stands here already stays where it is."""
        self._copies[copy] = None

    def leave(self, copy: PartitionCopy) -> None:
        """Ask for it no more."""
        self._copies.pop(copy, None)

    def clear(self) -> None:
        """Ask for nobody; what the last answer told is remembered."""
        self._copies.clear()

    def front(self, wanted: Sequence[PartitionCopy], *, now: float) -> Sequence[PartitionCopy]:
        """Return the first of `wanted`, which are in the line's order: as many that are behind as may fill an answer.

        Quiet ones between them come along. It is all where fewer are behind, where that would be more than half of
        them or mostly quiet ones, for which a session is cheaper, and every half second; `now` is of a clock, in s.
        """
        asked = wanted
        if self._most is not None and now < self._all_due:
            behind = 0
            for number, copy in enumerate(wanted[: min(len(wanted) // 2, _IN_STORE * self._most)], 1):
                behind += copy.is_behind
                if behind == self._most:
                    asked = wanted[:number]
                    break
        if wanted and len(asked) == len(wanted):
            self._all_due = now + _ALL_EVERY_S
        self._behind = [copy for copy in asked if copy.is_behind]
        return asked

    def answered(self, asked: Sequence[PartitionCopy], served: Container[Place], *, in_order: bool) -> None:
        """Have those who had their turn go to the end; `served` got records, in the order of `asked` or in a session's.

        Quiet ones had it. So had, in order, those that are behind and stand before the first that was served: nothing
        was in the answer yet. Who stands between others that were served may have had too large a batch for the room
        that was left; in front, it is served whatever its size.
        """
        numbers = [number for number, copy in enumerate(self._behind) if copy.place in served]
        if in_order:
            first, last = (numbers[0], numbers[-1] + 1) if numbers else (len(self._behind), len(self._behind))
        else:
            first, last = 0, len(numbers)
        self._most = _IN_STORE * last or None
        waiting = {copy for copy in self._behind[first:] if copy.place not in served}
        for copy in asked:
            if copy in self._copies and copy not in waiting:
                self._copies[copy] = self._copies.pop(copy)
