"""kafka-python's admin client for one cluster, for what confluent-kafka's cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.kafka_python import admin as kafka_python_admin

if TYPE_CHECKING:
    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.settings import Cluster


def admin_client(cluster: Cluster) -> AdminRequests:
    """Connect to a cluster, with its settings for an admin client; raises kafka-python's errors."""
    return kafka_python_admin.connect(for_kafka_python(cluster, role="admin"))


def kafka_version(cluster: Cluster, node: int) -> str:
    """Return Kafka's release of one broker, by the requests that it supports: the newest that this library knows.

    Raises kafka-python's errors.
    """
    client = admin_client(cluster)
    try:
        found = client.get_broker_version_data(node)
    finally:
        client.close()
    return ".".join(map(str, found.broker_version))
