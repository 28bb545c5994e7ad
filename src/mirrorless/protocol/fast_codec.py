"""What raw Produce and Fetch messages have in common: topics."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from uuid import UUID

from mirrorless.kafka_python.raw_messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.raw_messages import Frame

_ID_BYTES = 16


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
