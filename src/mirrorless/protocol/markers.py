"""Requests that move a partition's log end without a record that consumers see, and that delete what is before it.

`WriteTxnMarkers` is the request that a transaction coordinator sends to partition leaders: each marker is one control
record. It needs `RIGHT`. A leader appends the markers of a request one by one, so some
of them may be refused; the answer has one error code for all, so the log end has to be read after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirrorless.kafka_python.messages import DeleteRecordsRequest, WriteTxnMarkersRequest
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.fast_codec import by_topic
from mirrorless.protocol.requests import describe_producers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.protocol.cluster_client import ClusterClient

MARKERS_AT_ONCE = 1_000
"""More in one request would keep the leader from other requests of the connection for longer than some tens of ms."""
RESERVED_OFFSETS = 200
"""What is reserved for late markers where a turn begins: 16 KB of each replica, some 10 ms of the leader."""
RIGHT = "ALTER on the cluster (before Kafka 3.8: CLUSTER_ACTION)"
"""KIP-1037."""
_LEGACY_MARKERS = 1
"""From version 2 on a marker may name a newer transaction version, which has other rules for epochs (KIP-1228)."""
_COORDINATOR_EPOCH = 0
_DELETE_TIMEOUT_MS = 30_000
_CLUSTER_AUTHORIZATION_FAILED = 31


async def write_markers(
    client: ClusterClient, node: int, place: TopicPartition, *, producer: int, epoch: int, count: int
) -> int:
    """Append `count` markers (aborts, of no transaction) to one partition; returns the error code of the answer.

    The leader refuses an epoch lower than the producer's last one there (47), and accepts the same one again: a request
    without an answer must not be sent again before the log end was read.
    """
    topic, partition = place
    one = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer,
        producer_epoch=epoch,
        transaction_result=False,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])
        ],
        coordinator_epoch=_COORDINATOR_EPOCH,
    )
    response = await client.ask(WriteTxnMarkersRequest(markers=[one] * count, max_version=_LEGACY_MARKERS), node)
    codes = [part.error_code for marker in response.markers for name in marker.topics for part in name.partitions]
    return next((int(code) for code in codes if code), 0 if codes else _CLUSTER_AUTHORIZATION_FAILED)


async def delete_records(
    client: ClusterClient, node: int, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Have a leader delete what each partition has before an offset, on all replicas; returns error codes."""
    request: Any = DeleteRecordsRequest(
        topics=[
            DeleteRecordsRequest.DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition(
                        partition_index=partition, offset=before[topic, partition]
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(before).items()
        ],
        timeout_ms=_DELETE_TIMEOUT_MS,
    )
    response = await client.ask(request, node, timeout_ms=2 * _DELETE_TIMEOUT_MS)
    return {
        (topic.name, part.partition_index): int(part.error_code)
        for topic in response.topics
        for part in topic.partitions
    }


async def last_sequences(
    client: ClusterClient, node: int, places: Iterable[TopicPartition]
) -> dict[tuple[TopicPartition, int], int]:
    """Return the last sequence of every producer that a leader remembers on these places."""
    response = await client.ask(describe_producers(places), node)
    found: dict[tuple[TopicPartition, int], int] = {}
    for topic in response.topics:
        for part in topic.partitions:
            if part.error_code:
                raise error_for(part.error_code)
            for state in part.active_producers:
                found[(topic.name, part.partition_index), state.producer_id] = state.last_sequence
    return found
