"""Reads the progress topic of a flow: once from the beginning, then only what is new."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from mirrorless.clusters.failures import grant
from mirrorless.clusters.reading import reader
from mirrorless.clusters.topics import last_stable_offsets
from mirrorless.copy.progress import Known, Progress, parse
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topics import Place
    from mirrorless.settings import Flow

_TIMEOUT_S = 60.0


class ProgressTopic:
    """What the progress topic says of a flow's source partitions; `admin` is a client of the target."""

    def __init__(self, flow: Flow, admin: Admin) -> None:
        self._topic = flow.offset_storage_topic
        self._alias = flow.source.alias
        self._connector = flow.connector_name
        self._cluster = flow.target
        self._admin = admin
        self._consumer: Consumer | None = None
        self._read_to: dict[int, int] = {}
        self._known: dict[Place, Known] = {}

    def read(self) -> dict[Place, Known]:
        """Catch up with the topic's end and return what is known; raises `ClusterUnavailable`."""
        try:
            consumer = self._consumer or self._open()
            ends = self._ends()
            until = time.monotonic() + _TIMEOUT_S
            while any(self._read_to[partition] < end for partition, end in ends.items()):
                for message in consumer.consume(10_000, timeout=0.2):
                    self._take(
                        message.error(), message.partition() or 0, message.offset() or 0, message.key(), message.value()
                    )
                if time.monotonic() > until:
                    reason = f"{self._topic} could not be read to its end in {_TIMEOUT_S:.0f} s"
                    raise ClusterUnavailable(reason, cluster=self._cluster.alias)
        except KafkaException as error:
            self.close()
            reason = f"{error.args[0].str()}{grant(error.args[0].code(), 'READ on it')}"
            raise ClusterUnavailable(f"{self._topic}: {reason}", cluster=self._cluster.alias) from error
        return self._known

    def close(self) -> None:
        """Close the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _open(self) -> Consumer:
        consumer = reader(self._cluster)
        topics = consumer.list_topics(self._topic, timeout=_TIMEOUT_S).topics
        partitions = sorted(topics[self._topic].partitions)
        if not partitions:
            consumer.close()
            raise ClusterUnavailable(f"there is no topic {self._topic} yet", cluster=self._cluster.alias)
        self._read_to = dict.fromkeys(partitions, 0)
        consumer.assign([TopicPartition(self._topic, partition, OFFSET_BEGINNING) for partition in partitions])
        self._consumer = consumer
        return consumer

    def _ends(self) -> dict[int, int]:
        # Not by the consumer: its question would wait behind its own long-polling fetch, partition by partition.
        ends, missing = last_stable_offsets(self._admin, [(self._topic, partition) for partition in self._read_to])
        for (_, partition), reason in missing.items():
            raise ClusterUnavailable(f"{self._topic}-{partition}: {reason}", cluster=self._cluster.alias)
        return {partition: end for (_, partition), end in ends.items()}

    def _take(
        self, error: KafkaError | None, partition: int, offset: int, key: bytes | None, value: bytes | None
    ) -> None:
        if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return  # the library asks for a group that nothing is committed for
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._read_to[partition] = max(self._read_to[partition], offset)
            return
        self._read_to[partition] = offset + 1
        read = parse(key, value)
        if read is None or read[0].cluster != self._alias:
            return
        where, said = read
        if isinstance(said, Progress | None) and where.connector != self._connector:
            return
        self._known.setdefault((where.topic, where.partition), Known()).take(said)
