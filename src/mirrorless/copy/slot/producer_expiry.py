"""How long the target's brokers remember a producer (`producer.id.expiration.ms`)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mirrorless.copy.partition.send_window import PRODUCER_EXPIRY_MS
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol.requests import describe_broker, described_configs

if TYPE_CHECKING:
    from mirrorless.protocol.cluster_client import ClusterClient

EXPIRY: Final = "producer.id.expiration.ms"
_ANSWER_MS: Final = 5_000


async def producer_expiry_ms(target: ClusterClient) -> int:
    """Return the shortest of the brokers' times in ms; Kafka's default where none can be read.

    Reading needs DESCRIBE_CONFIGS on the cluster. A broker that does not answer is left out.
    """
    found = await target.side_by_side(*(_expiries_ms(target, node) for node in target.brokers()))
    return min((one for some in found for one in some), default=PRODUCER_EXPIRY_MS)


async def _expiries_ms(target: ClusterClient, node: int) -> list[int]:
    """What one broker answers, nothing if it does not."""
    with suppress(kafka_errors.KafkaError, ValueError):
        response = await target.ask(describe_broker(node, [EXPIRY]), node, timeout_ms=_ANSWER_MS)
        return [int(value) for value in described_configs(response).values()]
    return []
