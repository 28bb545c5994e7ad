"""Makes the clients of both libraries: nothing else does, so a simulation replaces them here.

Callers name this module (`clients.consumer`), and do not import the functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from mirrorless.kafka_python import admin as kafka_python_admin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.kafka_python.admin import AdminRequests


def admin(settings: dict[str, Any]) -> AdminClient:
    """Return confluent-kafka's admin client."""
    return AdminClient(settings)


def producer(settings: dict[str, Any]) -> Producer:
    """Return confluent-kafka's producer; raises `KafkaException` for settings that it refuses."""
    return Producer(settings)


def consumer(settings: dict[str, Any]) -> Consumer:
    """Return confluent-kafka's consumer."""
    return Consumer(settings)


def admin_requests(settings: Mapping[str, Any]) -> AdminRequests:
    """Connect kafka-python's admin client, which sends any request; raises kafka-python's errors."""
    return kafka_python_admin.connect(settings)
