"""Requests to a whole cluster that confluent-kafka's admin client lacks; what a cluster does not have is a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python.errors import (
    BrokerResponseError,
    ClusterAuthorizationFailedError,
    IncompatibleBrokerVersion,
    KafkaError,
    RetriableError,
    SecurityDisabledError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.settings import Cluster

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class NotThere:
    """What a cluster does not have, or does not show, and why; `lacks_right` if the user may not see it."""

    reason: str
    lacks_right: bool = False


def asked(cluster: Cluster, ask: Callable[[AdminRequests], _Answer], *, what: str, right: str) -> _Answer | NotThere:
    """Return what `ask` returns; `what` is read with `right` on the cluster.

    `ask` raises kafka-python's errors. Raises `ClusterUnavailable` if the cluster does not answer.
    """
    try:
        client = admin_client(cluster)
        try:
            return ask(client)
        finally:
            client.close()
    except ClusterAuthorizationFailedError:
        reason = f"no right to see {what} of cluster {cluster.alias}; grant {right} on the cluster"
        return NotThere(reason, lacks_right=True)
    except SecurityDisabledError:
        return NotThere(f"cluster {cluster.alias} has no authorizer")
    except IncompatibleBrokerVersion:
        return NotThere(f"the brokers of cluster {cluster.alias} do not report {what}")
    except (KafkaError, OSError) as error:
        text = str(error) or type(error).__name__
        if isinstance(error, BrokerResponseError) and not isinstance(error, RetriableError):
            return NotThere(f"cluster {cluster.alias}: {text}")
        raise ClusterUnavailable(text, cluster=cluster.alias) from error
