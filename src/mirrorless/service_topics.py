"""Recognises topics in which a service keeps its own state: by the names that services give them, and by their records.

Under a kept name the service of the target has such a topic too, and the source's records in it would be taken for its
own: connectors that start there, offsets, schemas, queries. Names are those of default settings. Records are recognised
by the keys and values that services write (Kafka 4.3's `KafkaConfigBackingStore`, `KafkaStatusBackingStore` and
`OffsetStorageWriter`, Schema Registry's `SchemaRegistryKeyType`, ksqlDB's `CommandId`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mirrorless.settings import Cluster

CONNECT: Final = "Kafka Connect"
_REGISTRY: Final = "Schema Registry"
_KSQL: Final = "ksqlDB"
_NAMES: Final = {
    CONNECT: re.compile(r"(.*[-_.])?connect[-_.](configs?|offsets?|status(es)?)"),
    _REGISTRY: re.compile(r"_schemas?|_schema_encoders"),
    _KSQL: re.compile(r"_confluent-ksql-.+_command_topic|.+ksql_processing_log"),
    "Confluent": re.compile(r"_confluent-(?!ksql-).+"),
}
_CONFIG_FIELDS: Final = {
    "connector-": {"properties"},
    "task-": {"properties"},
    "commit-": {"tasks"},
    "target-state-": {"state"},
    "tasks-fencing-": {"task-count"},
    "restart-connector-": {"include-tasks", "only-failed"},
    "logger-cluster-": {"level"},
    "session-key": {"key", "algorithm", "creation-timestamp"},
}
"""The first characters of the keys of Connect's config topic, and fields that the values have."""
_STATUS_FIELDS: Final = {
    "status-connector-": {"state", "worker_id", "generation"},
    "status-task-": {"state", "worker_id", "generation"},
    "status-topic-": {"topic"},
}
_REGISTRY_KEYS: Final = frozenset({"SCHEMA", "CONFIG", "MODE", "NOOP", "DELETE_SUBJECT", "CLEAR_SUBJECT", "CONTEXT"})
_COMMAND: Final = re.compile(r"(topic|stream|table|cluster|terminate|type)/.*/(create|drop|execute|terminate|alter)")


class StateRecord(NamedTuple):
    """Key and value of a record."""

    key: bytes | None
    value: bytes | None


def service_of(topic: str) -> str | None:
    """Return the service that keeps its state in a topic of this name, None if there is none."""
    return next((service for service, pattern in _NAMES.items() if pattern.fullmatch(topic)), None)


def service_of_records(records: Sequence[StateRecord]) -> str | None:
    """Return the service that wrote these records of one topic, None unless all of them are of one.

    A key alone is no proof, except where no application would choose it: at least one record needs a value too.
    """
    found = {_writer(one) for one in records}
    service = found.pop() if len(found) == 1 else None
    return service if service == _REGISTRY or any(one.value is not None for one in records) else None


def _writer(record: StateRecord) -> str | None:
    key, value = _text(record.key), _payload(record.value)
    if key is None or (record.value is not None and not isinstance(value, dict)):
        return _REGISTRY if key is not None and record.value == b"" and _is_registrys(key) else None
    fields = set(value) if isinstance(value, dict) else None
    for start, needed in (_CONFIG_FIELDS | _STATUS_FIELDS).items():
        if key.startswith(start) and (fields is None or needed <= fields):
            return CONNECT
    if _is_registrys(key):
        return _REGISTRY
    parsed = _payload(record.key)
    match parsed:
        case [str(), dict()]:  # the connector and its partition; the value is the offset
            return CONNECT
        case str() if _COMMAND.fullmatch(parsed) and fields is not None and "statement" in fields:
            return _KSQL
    return None


def _is_registrys(key: str) -> bool:
    parsed = _payload(key.encode())
    return isinstance(parsed, dict) and parsed.get("keytype") in _REGISTRY_KEYS and "magic" in parsed


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _payload(data: bytes | None) -> object:
    """Parse JSON, without the schema that earlier releases of Connect may add; None if it is none."""
    try:
        found = None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found["payload"] if isinstance(found, dict) and found.keys() == {"schema", "payload"} else found


@dataclass(slots=True)
class Examined:
    """What is known of a cluster's topics by their records.

    `services` has the topics of services. `ids` has the id of each topic that need not be read again, None if the
    brokers have no ids; `passed` are topics that no service would have, by their configs. `unread` may not be read.
    """

    services: Mapping[str, str]
    ids: Mapping[str, str | None]
    passed: Collection[str]
    unread: Collection[str]


_examined: Final[dict[str, Examined]] = {}
"""By the address of the cluster, for the life of the process: each topic is read once, and all flows agree."""


def examined_on(cluster: Cluster) -> Examined:
    """Return what this process knows of the records of a cluster's topics."""
    return _examined.get(cluster.bootstrap_servers) or Examined({}, {}, (), ())


def note_examined(cluster: Cluster, found: Examined) -> None:
    """Replace what is known of a cluster's topics."""
    _examined[cluster.bootstrap_servers] = found
