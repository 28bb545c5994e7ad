"""How long the target's brokers remember a producer (`producer.id.expiration.ms`)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mirrorless.copy.partition.send_window import PRODUCER_EXPIRY_MS
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol.requests import describe_broker, described_configs

if TYPE_CHECKING:
    from mirrorless.protocol.cluster_client import ClusterClient

_NAME: Final = "producer.id.expiration.ms"
_ANSWER_MS: Final = 5_000


async def producer_expiry_ms(target: ClusterClient) -> int:
    """Return the shortest of the brokers' times in ms; Kafka's default where none can be read.

    Reading needs DESCRIBE_CONFIGS on the cluster. A broker that does not answer is left out.
    """
    found: list[int] = []
    for node in target.brokers():
        with suppress(kafka_errors.KafkaError, ValueError):
            response = await target.ask(describe_broker(node, [_NAME]), node, timeout_ms=_ANSWER_MS)
            found += [int(value) for value in described_configs(response).values()]
    return min(found, default=PRODUCER_EXPIRY_MS)
