"""Recognises topics in which a service keeps its own state, by the names that services give them by default.

Under a kept name the service of the target has such a topic too, and the source's records in it would be taken for its
own: connectors that start there, offsets, schemas, queries.
"""

from __future__ import annotations

import re
from typing import Final

_SERVICES: Final = {
    "Kafka Connect": re.compile(r"(.*[-_.])?connect[-_.](configs?|offsets?|status(es)?)"),
    "Schema Registry": re.compile(r"_schemas?|_schema_encoders"),
    "ksqlDB": re.compile(r"_confluent-ksql-.+_command_topic|.+ksql_processing_log"),
    "Confluent": re.compile(r"_confluent-(?!ksql-).+"),
}


def service_of(topic: str) -> str | None:
    """Return the service that keeps its state in a topic of this name, None if there is none."""
    return next((service for service, pattern in _SERVICES.items() if pattern.fullmatch(topic)), None)
