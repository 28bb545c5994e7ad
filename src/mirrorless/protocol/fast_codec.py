"""What raw Produce and Fetch messages have in common: lengths and topics."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.raw_messages import Frame

_ID_BYTES = 16
_LAST_SHIFT = 28


def count(frame: Frame, at: int) -> tuple[int, int]:
    """Read a compact length, -1 for what is null, and say where what it counts begins.

    Raises `ValueError` where it has more than five bytes: a long row of set bits would else be read for hours.
    """
    found = shift = 0
    while (byte := frame[at]) & 0x80:
        found |= (byte & 0x7F) << shift
        shift += 7
        if shift > _LAST_SHIFT:
            raise ValueError("a length of more than five bytes")
        at += 1
    return (found | byte << shift) - 1, at + 1


def topic_at(frame: Frame, at: int, *, by_id: bool) -> tuple[str | UUID, int]:
    """Read what an answer calls a topic, its id (KIP-516) or its name, and say where what follows begins."""
    if by_id:
        return UUID(bytes=bytes(frame[at : at + _ID_BYTES])), at + _ID_BYTES
    size, at = count(frame, at)
    return bytes(frame[at : at + size]).decode(), at + size


def by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partitions of each topic, both in order of their first place."""
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in places:
        grouped[topic].append(partition)
    return grouped
