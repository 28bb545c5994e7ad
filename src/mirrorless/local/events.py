"""Builds events in AWS's formats: EventBridge's schedules and job state changes, Lambda's Kafka records."""

from __future__ import annotations

import base64
import time
import uuid
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

_REGION: Final = "local"
_ACCOUNT: Final = "000000000000"


def schedule_event(function: str, *, at: float) -> dict[str, Any]:
    """Return the scheduled event that was due at `at`, in epoch seconds."""
    return _eventbridge(
        "aws.events",
        "Scheduled Event",
        at=at,
        resources=[f"arn:aws:events:{_REGION}:{_ACCOUNT}:rule/{function}"],
        detail={},
    )


def job_state_event(job: str, run: str, state: str, *, message: str) -> dict[str, Any]:
    """Return the event of a Glue job's run that changed its state."""
    severity = "INFO" if state in ("SUCCEEDED", "STOPPED") else "ERROR"
    detail = {"jobName": job, "severity": severity, "state": state, "jobRunId": run, "message": message}
    return _eventbridge("aws.glue", "Glue Job State Change", at=time.time(), resources=[], detail=detail)


def kafka_event(bootstrap_servers: Iterable[str], messages: Iterable[Message]) -> dict[str, Any]:
    """Return the event of a trigger on a cluster outside of MSK; the order of each partition is kept."""
    by_partition: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for message in messages:
        by_partition[f"{message.topic()}-{message.partition()}"].append(_record(message))
    return {
        "eventSource": "SelfManagedKafka",
        "bootstrapServers": ",".join(bootstrap_servers),
        "records": dict(by_partition),
    }


def _eventbridge(source: str, kind: str, *, at: float, resources: list[str], detail: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": kind,
        "source": source,
        "account": _ACCOUNT,
        "time": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": _REGION,
        "resources": resources,
        "detail": detail,
    }


def _record(message: Message) -> dict[str, Any]:
    kind, timestamp_ms = message.timestamp()
    key, value = message.key(), message.value()
    headers: Any = message.headers() or ()  # a list of pairs, though its type allows a dictionary
    made: dict[str, Any] = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp_ms,
        "timestampType": "LOG_APPEND_TIME" if kind == TIMESTAMP_LOG_APPEND_TIME else "CREATE_TIME",
        "value": None if value is None else base64.b64encode(value).decode(),
        "headers": [{name: _signed(content)} for name, content in headers],
    }
    if key is not None:
        made["key"] = base64.b64encode(key).decode()
    return made


def _signed(content: bytes | str | None) -> list[int] | None:
    """Convert to Java's signed bytes."""
    if content is None:
        return None
    raw = content.encode() if isinstance(content, str) else content
    return [byte - 256 if byte > 127 else byte for byte in raw]
