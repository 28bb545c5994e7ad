"""Who of one source leader's partitions is asked for next.

A leader reads every partition that a fetch asks for, also those for whose records its answer has no room
(`ReplicaManager.readFromLog`). Where many are behind, that is most of its work, so no more are asked for than may fill
an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.partition import PartitionCopy

_IN_STORE = 2
"""So many times those that filled the last answer are asked for: what they have varies."""


class Line:
    """The copies of one leader, those first that waited longest; for one fetch at a time: `front`, and `answered`."""

    def __init__(self) -> None:
        self._copies: dict[PartitionCopy, None] = {}
        self._behind: list[PartitionCopy] = []
        self._most: int | None = None

    def __iter__(self) -> Iterator[PartitionCopy]:
        return iter(self._copies)

    def join(self, copy: PartitionCopy) -> None:
        """Take one more, at the end; who stands here already stays where it is."""
        self._copies[copy] = None

    def leave(self, copy: PartitionCopy) -> None:
        """Ask for it no more."""
        self._copies.pop(copy, None)

    def front(self, wanted: Sequence[PartitionCopy]) -> Sequence[PartitionCopy]:
        """Return the first of `wanted`, which are in the line's order: as many that are behind as may fill an answer.

        Those between them that are not behind come along, so that all have a turn. It is all of them if fewer are
        behind, and where that would be more than half: who asks for some only does without a session.
        """
        asked, behind = wanted, 0
        if self._most is not None:
            for number, copy in enumerate(wanted[: len(wanted) // 2], 1):
                behind += copy.is_behind
                if behind == self._most:
                    asked = wanted[:number]
                    break
        self._behind = [copy for copy in asked if copy.is_behind]
        return asked

    def answered(self, asked: Sequence[PartitionCopy], served: Container[Place], *, in_order: bool) -> None:
        """Have those who had their turn go to the end; `served` got records, in the order of `asked` or in a session's.

        In order, that is everybody up to the last of those behind that was served, all if no one behind is left.
        """
        if in_order:
            reached = [number for number, copy in enumerate(self._behind, 1) if copy.place in served]
            last = reached[-1] if reached else len(self._behind)
            turn = asked if last == len(self._behind) else asked[: asked.index(self._behind[last - 1]) + 1]
        else:
            turn = [copy for copy in asked if copy.place in served]
            last = len(turn)
        self._most = _IN_STORE * last or None
        for copy in turn:
            if copy in self._copies:
                self._copies[copy] = self._copies.pop(copy)
