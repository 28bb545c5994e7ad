"""Which partitions of a source leader the next fetch asks for.

A leader reads every partition that a fetch asks for, even if its response has no room for the records
(`ReplicaManager.readFromLog`). So where many partitions lag, no more are asked for than may fill a response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy

_SPARE = 2
"""So many times the partitions that filled the last response are asked for: how much each has varies."""
_ALL_EVERY_S = 0.5
"""So often all partitions are asked for, so that new records of quiet ones do not wait for their turn."""


class FetchQueue:
    """The copies of one leader, in the order of their last turn; for each fetch: `front`, then `answered`."""

    def __init__(self) -> None:
        self._copies: dict[PartitionCopy, None] = {}
        self._lagging: list[PartitionCopy] = []
        self._most: int | None = None
        self._all_due = 0.0

    def __iter__(self) -> Iterator[PartitionCopy]:
        return iter(self._copies)

    def __contains__(self, copy: object) -> bool:
        return copy in self._copies

    def __len__(self) -> int:
        return len(self._copies)

    def join(self, copy: PartitionCopy) -> None:
        """Add a copy at the end; one that is queued keeps its place."""
        self._copies[copy] = None

    def leave(self, copy: PartitionCopy) -> None:
        """Remove a copy."""
        self._copies.pop(copy, None)

    def clear(self) -> None:
        """Remove all copies; what the last response showed is kept."""
        self._copies.clear()

    def front(self, wanted: Sequence[PartitionCopy], *, now: float) -> Sequence[PartitionCopy]:
        """Return the first of `wanted`, which is in this queue's order: as many that lag as may fill a response.

        Quiet copies between them are included. All are returned every half second, where fewer lag, or where the result
        would be more than half of them or mostly quiet ones, for which a session is cheaper. `now` is a clock, in s.
        """
        asked = wanted
        if self._most is not None and now < self._all_due:
            lagging = 0
            for number, copy in enumerate(wanted[: min(len(wanted) // 2, _SPARE * self._most)], 1):
                lagging += copy.is_behind
                if lagging == self._most:
                    asked = wanted[:number]
                    break
        if wanted and len(asked) == len(wanted):
            self._all_due = now + _ALL_EVERY_S
        self._lagging = [copy for copy in asked if copy.is_behind]
        return asked

    def answered(self, asked: Sequence[PartitionCopy], served: Container[TopicPartition], *, in_order: bool) -> None:
        """Move the copies that had their turn to the end; `served` got records, in the order of `asked` or a session's.

        Quiet copies had their turn. In order, so had lagging ones before the first that was served: the response was
        still empty. A lagging one between others that were served may have had too large a batch for the room that was
        left; at the front it is served whatever the size.
        """
        numbers = [number for number, copy in enumerate(self._lagging) if copy.place in served]
        if in_order:
            first, last = (numbers[0], numbers[-1] + 1) if numbers else (len(self._lagging), len(self._lagging))
        else:
            first, last = 0, len(numbers)
        self._most = _SPARE * last or None
        waiting = {copy for copy in self._lagging[first:] if copy.place not in served}
        for copy in asked:
            if copy in self._copies and copy not in waiting:
                self._copies[copy] = self._copies.pop(copy)
