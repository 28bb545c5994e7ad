"""Asks one cluster whether it answers, how soon, and for its topics; all flows of the cluster share its client."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import GROUP_COMMITS_TOPIC
from mirrorless.clusters.kafka_admin_client import kafka_version
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python.errors import KafkaError
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import ClusterRow, ClusterState

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.settings import Cluster

_ANSWER_S: Final = 5.0
_SLOW_MS: Final = 1_000
_METADATA_EVERY_S: Final = 20.0
_PROBED: Final = GROUP_COMMITS_TOPIC
"""The topic of the request by which an answer is timed; it need not exist."""


class ClusterReader(RepeatingReader):
    """The state of `cluster`, and its `metadata`, None before its first answer."""

    def __init__(self, cluster: Cluster, *, every_s: float) -> None:
        super().__init__(f"web: cluster {cluster.alias}", every_s=every_s)
        self._cluster = cluster
        self._admin: Admin | None = None
        self._due_s = 0.0
        self._answer_ms: int | None = None
        self._kafka: str | None = None
        self.metadata: ClusterMetadata | None = None

    @property
    def admin(self) -> Admin:
        """The cluster's client; raises `ClusterUnavailable` while the cluster does not answer."""
        if self._admin is None or self.error is not None:
            raise ClusterUnavailable(self._reason(), cluster=self._cluster.alias)
        return self._admin

    def read(self) -> None:
        """Time one small request, and read the topics if they are due; raises `ClusterError`."""
        if self._admin is None:
            self._admin = Admin(self._cluster)
        began = time.monotonic()
        try:
            self._admin.client.list_topics(_PROBED, timeout=_ANSWER_S)
        except KafkaException as error:
            raise self._admin.failure(error) from error
        self._answer_ms = round((time.monotonic() - began) * 1000)
        if self.metadata is None or time.monotonic() >= self._due_s:
            self.metadata = self._admin.metadata(timeout_s=_ANSWER_S)
            self._due_s = time.monotonic() + _METADATA_EVERY_S
            if self._kafka is None:
                # Not known yet, or the broker was asked while it started; the page is useful without it.
                with suppress(KafkaError, OSError):
                    self._kafka = kafka_version(self._cluster, min(self.metadata.brokers))

    def row(self) -> ClusterRow:
        """Return the cluster as the page shows it."""
        state = ClusterState.AVAILABLE
        if self.error is not None:
            state = ClusterState.UNAVAILABLE
        elif self.read_ms is None:
            state = ClusterState.CONNECTING
        elif (self._answer_ms or 0) >= _SLOW_MS:
            state = ClusterState.SLOW
        return ClusterRow(
            alias=self._cluster.alias,
            bootstrap_servers=self._cluster.bootstrap_servers,
            state=state,
            brokers=None if self.metadata is None else len(self.metadata.brokers),
            kafka=self._kafka,
            answer_ms=self._answer_ms,
            answered_ms=self.read_ms,
            error=self.error,
        )

    def _reason(self) -> str:
        if self.error is None:
            return "not connected yet"
        return self.error.removeprefix(f"cluster {self._cluster.alias}: ")
