"""What the last metadata response of a cluster says: its brokers, its topics, and who leads their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.kafka_python.structs import TopicPartition as KafkaTopicPartition

if TYPE_CHECKING:
    from uuid import UUID

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.connection_manager import ConnectionManager
    from mirrorless.protocol.fetch_session import Ids


class KnownMetadata:
    """Answers without a request; the base of `ClusterClient`, which has the connections."""

    _manager: ConnectionManager
    _named: str | None

    @property
    def cluster_id(self) -> str:
        """The id that everything is derived from: the operator's name for the cluster, or what it reports."""
        return self._named or self.reported_id

    @property
    def reported_id(self) -> str:
        """The cluster's own id, known after `connect`."""
        return str(self._manager.cluster.cluster_id)

    def brokers(self) -> list[int]:
        """Ids of the brokers that are known."""
        return sorted(one.node_id for one in self._manager.cluster.brokers() if isinstance(one.node_id, int))

    def leader(self, place: TopicPartition) -> int | None:
        """Broker id of the partition's leader, None while there is none or it is not known."""
        node: int | None = self._manager.cluster.leader_for_partition(KafkaTopicPartition(*place))
        return None if node is None or node < 0 else node

    def replicas(self, place: TopicPartition) -> tuple[int, int] | None:
        """How many replicas of a partition are in sync, and how many there are; None where that is not known."""
        return self._manager.replicas(*place)

    def has_replica(self, place: TopicPartition, node: int) -> bool:
        """Whether a broker is known, and has a replica of the partition that is not offline."""
        return self._manager.has_replica(*place, node)

    @property
    def metadata_max_age_s(self) -> float:
        """After how long metadata are read again (`metadata.max.age.ms`)."""
        return float(self._manager.config["metadata_max_age_ms"]) / 1000

    def partition_count(self, topic: str) -> int:
        """Number of partitions of a topic given to `connect`, 0 if it is unknown."""
        return len(self._manager.cluster.partitions_for_topic(topic) or ())

    def refresh_leaders(self) -> None:
        """Ask for metadata again, soon."""
        self._manager.cluster.request_update()

    def topic_id(self, topic: str) -> UUID | None:
        """A topic's own id (KIP-516), None where brokers have none or the topic is not known."""
        found: UUID | None = self._manager.cluster.topic_id(topic)
        return found if found is not None and found.int else None

    def _ids(self, topics: set[str]) -> Ids | None:
        """Ids of all these topics, None if one of them is not known; a request names all by id or none."""
        found = {topic: known for topic in topics if (known := self.topic_id(topic)) is not None}
        return found if len(found) == len(topics) else None
