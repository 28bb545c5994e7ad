"""Error codes of brokers, as kafka-python's exceptions and in words."""

from __future__ import annotations

from mirrorless.clusters.connection_errors import grant
from mirrorless.kafka_python import errors as kafka_errors

RETRIABLE = (kafka_errors.RetriableError, kafka_errors.InvalidMetadataError, kafka_errors.BrokerNotAvailableError)
"""What a broker says, or its silence, that passes by itself."""


def error_for(code: int) -> type[kafka_errors.KafkaError]:
    """kafka-python's class for a broker's error code."""
    found: type[kafka_errors.KafkaError] = kafka_errors.for_code(code)
    return found


def refusal(code: int, *, right: str, topic: str) -> kafka_errors.KafkaError:
    """kafka-python's error for a broker's code; its text says which right to grant, if one is missing."""
    advice = grant(code, f"{right} on topic {topic}").removeprefix("; ")
    return error_for(code)(*([advice] if advice else []))


def error_name(code: int) -> str:
    """An error code as operators know it, such as `OUT_OF_ORDER_SEQUENCE_NUMBER (45)`."""
    message = getattr(error_for(code), "message", None) or error_for(code).__name__
    return f"{message} ({code})"
