"""An administrative client for one cluster, whose failures are one line that names the cluster and the reason."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from mirrorless.clusters.client_settings import for_confluent
from mirrorless.errors import ClusterError, ClusterUnavailable

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.settings import Cluster

TIMEOUT_S = 30.0
METADATA_TIMEOUT_S = 15.0
_Answer = TypeVar("_Answer")
# librdkafka writes every failed connection attempt to stderr; the reason is told once, in the error's text.
QUIET = logging.getLogger("mirrorless.librdkafka")
"""For `logger` of every librdkafka client."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Admin:
    """A confluent-kafka AdminClient for `cluster`; `client` is for batched calls, whose futures go through `result`."""

    def __init__(self, cluster: Cluster) -> None:
        self.alias = cluster.alias
        self._servers = cluster.bootstrap_servers
        self._reason: str | None = None
        self.client = AdminClient(for_confluent(cluster, role="admin", extra={"error_cb": self._note, "logger": QUIET}))

    def metadata(self, *, timeout_s: float = METADATA_TIMEOUT_S) -> ClusterMetadata:
        """Brokers, topics and partitions of the whole cluster; raises `ClusterUnavailable`."""
        try:
            return self.client.list_topics(timeout=timeout_s)
        except KafkaException as error:
            raise self._failure(error) from error

    def result(self, future: Future[_Answer], *, timeout_s: float = TIMEOUT_S) -> _Answer:
        """Wait for one answer; raises `ClusterError` or `ClusterUnavailable`."""
        try:
            return future.result(timeout=timeout_s)
        except TimeoutError as error:
            raise ClusterUnavailable(
                f"no answer from {self._servers} in {timeout_s:.0f} s", cluster=self.alias
            ) from error
        except KafkaException as error:
            raise self._failure(error) from error

    def outcome(self, future: Future[Any], *, fine: int) -> str | None:
        """Wait for one of a batch of changes: None if it was made or failed with code `fine`, else why, in a line."""
        try:
            future.result(timeout=TIMEOUT_S)
        except TimeoutError:
            return f"no answer from {self._servers} in {TIMEOUT_S:.0f} s"
        except KafkaException as error:
            if error.args[0].code() != fine:
                return f"{error.args[0].str()} ({error.args[0].name()})"
        return None

    def _note(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._reason = error.str()

    def _failure(self, exception: KafkaException) -> ClusterError:
        self.client.poll(0)
        error = exception.args[0]
        if error.retriable() or error.code() < 0:
            reason = self._reason or error.str()
            return ClusterUnavailable(f"no answer from {self._servers}: {reason}", cluster=self.alias)
        return ClusterError(error.str(), cluster=self.alias)
