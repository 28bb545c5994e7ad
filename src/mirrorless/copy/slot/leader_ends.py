"""Asks leaders for the ends of partitions that are fetched from followers, whose own end may lag."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mirrorless.copy.partition.lifecycle import READABLE
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol import cluster_client

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.fetch_events import FetchEvents
    from mirrorless.protocol.cluster_client import ClusterClient


def led_by(source: ClusterClient, copies: Iterable[PartitionCopy]) -> dict[int, list[PartitionCopy]]:
    """Return the readable ones of the copies by the node that leads them on the source."""
    led: dict[int, list[PartitionCopy]] = defaultdict(list)
    for copy in copies:
        if copy.state in READABLE and (node := source.leader(copy.place)) is not None:
            led[node].append(copy)
    return led


async def learn_ends(
    source: ClusterClient, events: FetchEvents, node: int, copies: Sequence[PartitionCopy], *, bounded: bool
) -> None:
    """Note the last stable offset and the high watermark that the leader `node` has of each partition.

    A leader that does not answer is asked again the next time.
    """
    places = [copy.place for copy in copies]
    try:
        # In this order: records that are appended in between do not look like those of an open transaction.
        highs = await source.offsets(node, places, at=cluster_client.LATEST)
        stables = await source.offsets(node, places, at=cluster_client.LATEST, isolation=cluster_client.READ_COMMITTED)
    except kafka_errors.KafkaError:
        return
    for copy in copies:
        high, stable = highs.get(copy.place), stables.get(copy.place)
        if copy.state not in READABLE or high is None or stable is None or high.error_code or stable.error_code:
            continue
        before = copy.source_end
        copy.note_end(stable=stable.offset, high=max(high.offset, stable.offset), bounded=bounded)
        if copy.source_end != before:
            events.position_changed(copy)
