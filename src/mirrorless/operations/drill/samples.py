"""Chooses what is compared: positions of groups up to a limit, and windows of records of partitions. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition

WINDOW_RECORDS: Final = 50
WINDOWS: Final = 3
"""Windows of each sampled partition: the first and the last records, and random ones between."""
MOST_PARTITIONS: Final = 200

_Item = TypeVar("_Item")


def some(items: Sequence[_Item], *, most: int, chance: random.Random) -> list[_Item]:
    """Return all items, or a random choice of `most` in their order."""
    if len(items) <= most:
        return list(items)
    return [items[number] for number in sorted(chance.sample(range(len(items)), most))]


def window_starts(
    copied: Mapping[TopicPartition, tuple[int, int]], *, chance: random.Random
) -> dict[TopicPartition, tuple[int, ...]]:
    """Choose where windows begin on the source.

    `copied` has the first source offset of each partition that the source still has, and up to which offset all was
    copied. Partitions without copied offsets have no window.
    """
    chosen = some(
        sorted(place for place, (first, end) in copied.items() if first < end), most=MOST_PARTITIONS, chance=chance
    )
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for place in chosen:
        first, end = copied[place]
        last = max(first, end - WINDOW_RECORDS)
        between = [chance.randint(first, last) for _ in range(WINDOWS - 2)]
        found[place] = tuple(sorted({first, *between, last}))
    return found
