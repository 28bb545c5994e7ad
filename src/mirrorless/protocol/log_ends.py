"""Asks leaders where their own logs end: records that are not replicated yet are included."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.clusters.topics import high_watermarks, partition_counts, undescribed
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python.errors import IncompatibleBrokerVersion, KafkaError
from mirrorless.protocol.cluster_client import LATEST, READ_UNCOMMITTED
from mirrorless.protocol.requests import DEBUGGING, list_offsets, listed_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster


def log_ends(
    cluster: Cluster, metadata: ClusterMetadata, places: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the next offset in the log of each partition's leader, with one request for each broker.

    Partitions without a leader are omitted, and those of brokers that do not report it: others than Apache Kafka.
    Raises `ClusterUnavailable`.
    """
    led: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic, partition in places:
        if topic in metadata.topics and partition in metadata.topics[topic].partitions:
            led[metadata.topics[topic].partitions[partition].leader].append((topic, partition))
    found: dict[TopicPartition, int] = {}
    try:
        with closing(admin_client(cluster)) as client:
            for node, some in led.items():
                if node >= 0:
                    request = list_offsets(some, at=LATEST, isolation=READ_UNCOMMITTED, replica=DEBUGGING)
                    answer = listed_offsets(client.ask_broker(node, request))
                    found |= {place: one.offset for place, one in answer.items() if not one.error_code}
    except IncompatibleBrokerVersion:
        return {}
    except (KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=cluster.alias) from error
    return {place: end for place, end in found.items() if end >= 0}


def short_logs(
    cluster: Cluster, admin: Admin, expected: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    """Return the ends of logs that end before an expected offset, and why some ends are not known.

    A partition that does not exist ends at 0. Raises `ClusterUnavailable`.
    """
    if not expected:
        return {}, {}
    metadata = admin.metadata()
    counts, hidden = partition_counts(metadata), undescribed(metadata)
    missing = {place: hidden[place[0]] for place in expected if place[0] in hidden}
    there = {place for place in expected if place[1] < counts.get(place[0], 0)}
    ends, unanswered = high_watermarks(admin, there)
    ends |= dict.fromkeys(expected.keys() - there - missing.keys(), 0)
    short = {place: end for place, end in ends.items() if end < expected[place]}
    if there & short.keys():
        # The high watermark of a new leader may lag what was acknowledged.
        short |= log_ends(cluster, metadata, there & short.keys())
    return {place: end for place, end in short.items() if end < expected[place]}, missing | unanswered


def lacking(place: TopicPartition, remote: TopicPartition, *, end: int, expected: int) -> str:
    """Return the line on a remote partition that ends before what was copied to it."""
    (topic, partition), (remote_topic, number) = place, remote
    return (
        f"{remote_topic}-{number} ends at {end}, before offset {expected} up to which {topic}-{partition} was copied: "
        "the target lost records, or the topic was deleted and recreated; set mirrorless.on.gap=continue to copy them "
        "again"
    )
