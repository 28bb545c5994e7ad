"""The producers that a cluster's brokers remember on partitions (KIP-664), such as those with an open transaction."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python.errors import IncompatibleBrokerVersion, KafkaError
from mirrorless.protocol.requests import describe_producers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveProducer:
    """A producer on one partition; `last_ms` is the timestamp of its last record, in ms since 1970.

    `open_since` is the first offset of its open transaction, None if there is none.
    """

    place: TopicPartition
    id: int
    epoch: int
    last_ms: int
    open_since: int | None

    @property
    def text(self) -> str:
        """The producer in words."""
        transaction = "" if self.open_since is None else f", transaction open since offset {self.open_since}"
        return f"{self.place[0]}-{self.place[1]}: producer {self.id}, epoch {self.epoch}{transaction}"


def active_producers(
    cluster: Cluster, metadata: ClusterMetadata, places: Iterable[TopicPartition]
) -> list[ActiveProducer]:
    """Ask the leaders; brokers before 2.8 cannot be asked and have none. Raises `ClusterUnavailable`."""
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic, partition in places:
        if topic in metadata.topics and partition in metadata.topics[topic].partitions:
            by_leader[metadata.topics[topic].partitions[partition].leader].append((topic, partition))
    found: list[ActiveProducer] = []
    try:
        client = admin_client(cluster)
        try:
            for leader, some in by_leader.items():
                if leader >= 0:
                    answer = client.ask_broker(leader, describe_producers(some))
                    found += [
                        ActiveProducer(
                            place=(topic.name, part.partition_index),
                            id=one.producer_id,
                            epoch=one.producer_epoch,
                            last_ms=one.last_timestamp,
                            open_since=None if one.current_txn_start_offset < 0 else one.current_txn_start_offset,
                        )
                        for topic in answer.topics
                        for part in topic.partitions
                        for one in part.active_producers or ()
                    ]
        finally:
            client.close()
    except IncompatibleBrokerVersion:
        return []
    except (KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=cluster.alias) from error
    return found
