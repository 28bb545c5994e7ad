"""Topics in which a service keeps its state are recognised by the records that services write."""

from __future__ import annotations

import json

import pytest

from mirrorless.service_topics import StateRecord, service_of_records


def record(key: str | None, value: object = None) -> StateRecord:
    return StateRecord(None if key is None else key.encode(), None if value is None else json.dumps(value).encode())


SESSION = record("session-key", {"key": "a2V5", "algorithm": "HmacSHA256", "creation-timestamp": 1})
CONNECTOR = record("connector-orders-sink", {"properties": {"connector.class": "FileStreamSink"}})
SCHEMA_KEY = '{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}'


@pytest.mark.parametrize(
    ("service", "records"),
    [
        ("Kafka Connect", [SESSION]),
        (
            "Kafka Connect",
            [CONNECTOR, record("task-orders-sink-0", {"properties": {}}), record("commit-x", {"tasks": 1})],
        ),
        ("Kafka Connect", [record("target-state-x", {"state": "STARTED", "state.v2": "STARTED"})]),
        ("Kafka Connect", [record("tasks-fencing-x", {"task-count": 2}), record("task-gone-1")]),
        ("Kafka Connect", [record("logger-cluster-org.apache", {"level": "INFO"})]),
        ("Kafka Connect", [record("restart-connector-x", {"include-tasks": True, "only-failed": False})]),
        ("Kafka Connect", [record('["orders",{"file":"a.txt"}]', {"position": 7}), record('["gone",{"file":"b"}]')]),
        # internal.key.converter.schemas.enable=true of earlier releases
        (
            "Kafka Connect",
            [record('{"schema":null,"payload":["orders",{"t":1}]}', {"schema": {}, "payload": {"p": 1}})],
        ),
        (
            "Kafka Connect",
            [
                record("status-connector-x", {"state": "RUNNING", "trace": None, "worker_id": "h:1", "generation": 2}),
                record("status-task-x-0", {"state": "RUNNING", "trace": None, "worker_id": "h:1", "generation": 2}),
                record("status-topic-orders:connector-x", {"topic": {"name": "orders", "connector": "x"}}),
            ],
        ),
        ("Schema Registry", [record('{"keytype":"NOOP","magic":0}'), record(SCHEMA_KEY, {"subject": "orders-value"})]),
        ("Schema Registry", [StateRecord(b'{"keytype":"NOOP","magic":0}', b"")]),
        ("Schema Registry", [record('{"subject":null,"magic":0,"keytype":"CONFIG"}', {"compatibilityLevel": "FULL"})]),
        ("ksqlDB", [record('"stream/`ORDERS`/create"', {"statement": "CREATE STREAM ...", "plan": None})]),
        (
            "ksqlDB",
            [
                record('"table/A/B/create"', {"statement": "..."}),
                record('"terminate/CSAS_1/execute"', {"statement": ""}),
            ],
        ),
        (None, []),
        (None, [record("connector-orders-sink")]),  # a key alone may be an application's
        (None, [record("connector-7", {"name": "HDMI"})]),
        (None, [record("task-1", "text"), CONNECTOR]),
        (None, [CONNECTOR, record("order-1", {"properties": {}})]),
        (None, [record("status-task-1", {"state": "DONE"})]),
        (None, [record('["orders","7"]', {"a": 1})]),
        (None, [record('["orders",{"id":7}]')]),
        (None, [record('{"keytype":"OTHER","magic":0}', {})]),
        (None, [record('"stream/ORDERS/create"', {"sql": "..."})]),
        (None, [record(None, {"properties": {}})]),
        (None, [StateRecord(b"\xff\x00", b"\xff")]),
        (None, [CONNECTOR, record(SCHEMA_KEY, {})]),
    ],
)
def test_a_service_is_recognised_by_its_records(service: str | None, records: list[StateRecord]) -> None:
    assert service_of_records(records) == service
