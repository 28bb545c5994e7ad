"""Assigns partitions to slots by how much there is to copy. No I/O."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_Item = TypeVar("_Item")


def deal(items: Iterable[_Item], *, slots: int, weight: Callable[[_Item], int]) -> list[list[_Item]]:
    """Assign `items` to at most `slots` slots: the heaviest first, each to the slot with the smallest sum.

    Among slots of the same sum the one with fewer items gets the next, so that idle partitions are spread too. Slots
    without items are omitted.
    """
    piles: list[list[_Item]] = [[] for _ in range(slots)]
    heap = [(0, 0, number) for number in range(slots)]
    for item in sorted(items, key=weight, reverse=True):
        total, count, number = heapq.heappop(heap)
        piles[number].append(item)
        heapq.heappush(heap, (total + weight(item), count + 1, number))
    return [pile for pile in piles if pile]
