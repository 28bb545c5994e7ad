"""Deals a flow's partitions to the functions that copy it, by the bytes that each has to copy soon. No I/O."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition

QUARTER: Final = 0.25
"""Nothing is moved as long as the largest share exceeds the mean by no more."""
LEFT: Final = 0.1
"""What may be left of the difference when partitions are moved: otherwise the next deal would follow soon."""


def sums(weights: Mapping[TopicPartition, float], shares: Mapping[TopicPartition, int], of: int) -> list[float]:
    """Add up the weights of each share."""
    found = [0.0] * of
    for place, weight in weights.items():
        if place in shares:
            found[shares[place]] += weight
    return found


def differ(shares: Sequence[float]) -> bool:
    """Whether the largest of some shares exceeds the mean by more than a quarter."""
    return max(shares) > (1 + QUARTER) * sum(shares) / len(shares)


def excess(shares: Sequence[float]) -> float:
    """Return by how much shares exceed the mean, in all."""
    mean = sum(shares) / len(shares)
    return sum(max(0.0, one - mean) for one in shares)


def deal(
    weights: Mapping[TopicPartition, float], before: Mapping[TopicPartition, int], of: int
) -> dict[TopicPartition, int]:
    """Return the share of each partition that has a weight; `before` is where it is now, without those that are new.

    A partition stays where it is as long as shares differ by no more than a quarter. Otherwise as few as possible are
    moved, one by one from the largest share to the smallest. A share that has little but one large partition is left as
    it is. New partitions go to the smallest share, the heaviest first.
    """
    shares = {place: before[place] for place in weights if place in before}
    total = sums(weights, shares, of)
    counts = [0] * of
    for share in shares.values():
        counts[share] += 1
    for place in sorted(weights.keys() - shares.keys(), key=lambda place: (-weights[place], place)):
        smallest = min(range(of), key=lambda one: (total[one], counts[one]))
        shares[place] = smallest
        total[smallest] += weights[place]
        counts[smallest] += 1
    _level(weights, shares, total)
    return shares


def _level(weights: Mapping[TopicPartition, float], shares: dict[TopicPartition, int], total: list[float]) -> None:
    """Move partitions until no share exceeds the mean by much, but for those that cannot be smaller."""
    piles: list[list[tuple[float, TopicPartition]]] = [[] for _ in total]
    for place, share in shares.items():
        if weights[place]:
            piles[share].append((weights[place], place))
    for pile in piles:
        pile.sort()
    left, most = set(range(len(total))), QUARTER
    while len(left) > 1:
        heavy, light = max(left, key=total.__getitem__), min(left, key=total.__getitem__)
        mean, gap, pile = sum(total[one] for one in left) / len(left), total[heavy] - total[light], piles[heavy]
        if total[heavy] <= (1 + most) * mean:
            return
        found = _nearest(pile, gap / 2)
        if pile[found][0] >= gap or total[heavy] - pile[-1][0] <= LEFT * mean:
            left.discard(heavy)
            continue
        weight, place = pile.pop(found)
        insort(piles[light], (weight, place))
        shares[place] = light
        total[heavy] -= weight
        total[light] += weight
        most = LEFT


def _nearest(pile: Sequence[tuple[float, TopicPartition]], wanted: float) -> int:
    """Return the index of the partition whose weight is nearest; a share above the mean has one."""
    above = bisect_left(pile, wanted, key=lambda one: one[0])
    return min((one for one in (above - 1, above) if 0 <= one < len(pile)), key=lambda one: abs(pile[one][0] - wanted))
