"""Makes the clients of confluent-kafka: nothing else does, so a simulation replaces them here.

Callers name this module (`clients.consumer`), and do not import the functions. `kafka_python.admin` makes the admin
client of kafka-python: functions that need none load faster without that library.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient


def admin(settings: dict[str, Any]) -> AdminClient:
    """Return confluent-kafka's admin client."""
    return AdminClient(settings)


def producer(settings: dict[str, Any]) -> Producer:
    """Return confluent-kafka's producer; raises `KafkaException` for settings that it refuses."""
    return Producer(settings)


def consumer(settings: dict[str, Any]) -> Consumer:
    """Return confluent-kafka's consumer."""
    return Consumer(settings)
