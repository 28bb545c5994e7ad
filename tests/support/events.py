"""Events as Lambda hands them over, recorded shapes."""

from __future__ import annotations

import base64
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any


def schedule(at: datetime | None = None) -> dict[str, Any]:
    """A tick of an EventBridge schedule."""
    return {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "123456789012",
        "time": (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": "eu-west-1",
        "resources": ["arn:aws:events:eu-west-1:123456789012:rule/every-minute"],
        "detail": {},
    }


def job_state(job: str, run: str, state: str) -> dict[str, Any]:
    """EventBridge's event of a Glue job that changed its state."""
    return {
        "version": "0",
        "id": "abcdef00-1234-5678-9abc-def012345678",
        "detail-type": "Glue Job State Change",
        "source": "aws.glue",
        "account": "123456789012",
        "time": "2026-03-01T03:00:00Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": {
            "jobName": job,
            "severity": "INFO",
            "state": state,
            "jobRunId": run,
            "message": "Job run succeeded",
        },
    }


def msk(*records: dict[str, Any], source: str = "aws:kafka") -> dict[str, Any]:
    """An event of an MSK trigger."""
    by_partition: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        by_partition[f"{record['topic']}-{record['partition']}"].append(record)
    return {
        "eventSource": source,
        "eventSourceArn": "arn:aws:kafka:eu-west-1:123456789012:cluster/vpc/751d2973-a626-431c-9d4e-d7975eb44dd7-2",
        "bootstrapServers": "b-1.vpc.amazonaws.com:9098,b-2.vpc.amazonaws.com:9098",
        "records": dict(by_partition),
    }


def record(
    topic: str,
    *,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    partition: int = 0,
    timestamp_ms: int = 1545084650987,
    timestamp_type: str = "CREATE_TIME",
    headers: tuple[tuple[str, bytes], ...] = (),
) -> dict[str, Any]:
    """A record of such an event: no key where there is none, null for a tombstone, signed bytes in headers."""
    made: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": timestamp_ms,
        "timestampType": timestamp_type,
        "value": None if value is None else base64.b64encode(value).decode(),
        "headers": [{name: [byte - 256 if byte > 127 else byte for byte in content]} for name, content in headers],
    }
    if key is not None:
        made["key"] = base64.b64encode(key).decode()
    return made
