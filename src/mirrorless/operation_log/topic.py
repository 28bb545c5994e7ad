"""Reads and writes the operations topic of one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.internal_topics import InternalTopic, ensure, internal_topic
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.replay import Replay
from mirrorless.errors import ClusterError
from mirrorless.operation_log.records import Operations

if TYPE_CHECKING:
    from mirrorless.clusters.admin import Admin
    from mirrorless.operation_log.records import Entry
    from mirrorless.settings import Cluster, Flow

OPERATIONS_TOPIC: Final = "mm2-operations.internal"
"""On both clusters of a pair; MirrorMaker 2's policies count it as internal, so it is not replicated."""
_WRITE_S: Final = 15.0


def operations_topic(flow: Flow, cluster: Cluster) -> InternalTopic:
    """Return the operations topic of one of the flow's clusters."""
    return internal_topic(flow, cluster, OPERATIONS_TOPIC, factor_key="offset.storage.replication.factor")


class OperationTopic:
    """The operations topic of `cluster`, whose client is `admin`; kept open, it reads only what is new."""

    def __init__(self, flow: Flow, cluster: Cluster, admin: Admin) -> None:
        self._topic = operations_topic(flow, cluster)
        self.admin = admin
        self._replay = Replay(topic=self._topic.name, cluster=cluster, admin=admin)
        self._producer: TopicProducer | None = None
        self.operations = Operations()

    @property
    def alias(self) -> str:
        """The cluster's alias."""
        return self._topic.cluster.alias

    @property
    def refused(self) -> str | None:
        """Why the topic was not visible when it was last read; None if it exists, or does not."""
        return self._replay.refused

    def read(self) -> Operations:
        """Return the state as it is now; raises `ClusterUnavailable`."""
        for record in self._replay.read(self._forget):
            self.operations.take(record.key, record.value)
        return self.operations

    def create(self) -> None:
        """Create the topic if it is missing; raises `ClusterError`."""
        if (reason := ensure(self.admin, self._topic)) is not None:
            raise ClusterError(f"cannot create topic {self._topic.name}: {reason}", cluster=self.alias)

    def append(self, *entries: Entry) -> None:
        """Write records and wait for the acknowledgement of all in-sync replicas; raises `ClusterError`."""
        if self._producer is None:
            self._producer = TopicProducer(
                self._topic.cluster,
                creator="the next command",
                gives_up_after_s=_WRITE_S,
                # Records keep their order also when they are sent again.
                max_in_flight_requests_per_connection=1,
            )
        for entry in entries:
            self._producer.send(self._topic.name, key=entry.key, value=entry.value, partition=0)
        self._producer.confirm(self._topic.name, _WRITE_S + 1)

    def close(self) -> None:
        """Close the connection."""
        self._replay.close()

    def _forget(self) -> None:
        self.operations = Operations()
