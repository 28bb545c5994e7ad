"""Events that trigger a function, typed: a schedule, a Glue job's state change, or records of a Kafka topic.

Lambda's Kafka event has keys and values in base64; a key may be absent, a value null (a tombstone). The fields are
read directly: aws-lambda-powertools' `KafkaEventRecord` does not distinguish an empty key from none. Headers
are not read: no function needs them.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError

from mirrorless.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_KAFKA: Final = frozenset({"aws:kafka", "SelfManagedKafka"})
_GLUE: Final = "Glue Job State Change"
_SCHEDULER: Final = "aws.events"
COPY_SHARE: Final = "mirrorless.copy"
"""Source of the events by which one invocation of `copy` starts the others."""
LOG_APPEND_TIME: Final = "LOG_APPEND_TIME"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEvent:
    """A scheduled event, due at `at`; a manual invocation is one that is due now."""

    at: datetime
    by_hand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStateChange:
    """A run of a Glue job changed its state."""

    job: str
    run: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of a Kafka topic, without its headers. `timestamp_type` is CREATE_TIME or LOG_APPEND_TIME."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A record that cannot be processed, the reason, and the whole record as in the event."""

    reason: str
    raw: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecords:
    """Records of a Kafka trigger, in the order of each partition, and malformed ones."""

    records: tuple[Record, ...]
    refused: tuple[Refused, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyShareEvent:
    """An invocation of `copy` for the share `number` of `of`, started by that of share 0."""

    number: int
    of: int


Event = ScheduleEvent | JobStateChange | TopicRecords | CopyShareEvent


class _Raw(BaseModel):
    model_config = ConfigDict(extra="ignore")

    topic: str
    partition: StrictInt
    offset: StrictInt
    timestamp: StrictInt = -1
    timestamp_type: str = Field(default="CREATE_TIME", alias="timestampType")
    key: str | None = None
    value: str | None = None


def parse(event: Mapping[str, Any]) -> Event:
    """Read an event; an unknown one is treated as a scheduled one. Raises `ConfigurationError` for a wrong share."""
    if event.get("eventSource") in _KAFKA:
        return _records(event)
    detail = event.get("detail")
    if event.get("detail-type") == _GLUE and isinstance(detail, dict):
        return JobStateChange(
            job=str(detail.get("jobName", "")), run=str(detail.get("jobRunId", "")), state=str(detail.get("state", ""))
        )
    if event.get("source") == COPY_SHARE:
        return _share(event)
    return ScheduleEvent(at=_time(event.get("time")), by_hand=event.get("source") != _SCHEDULER)


def refusal(record: Record, reason: str) -> Refused:
    """A record that was read and cannot be processed; bytes become hexadecimal."""
    return Refused(
        reason=reason,
        raw={
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "key_hex": None if record.key is None else record.key.hex(),
            "value_hex": None if record.value is None else record.value.hex(),
        },
    )


def _share(event: Mapping[str, Any]) -> CopyShareEvent:
    number, of = event.get("number"), event.get("of")
    if not (isinstance(number, int) and isinstance(of, int) and 0 <= number < of):
        raise ConfigurationError(f"an event of {COPY_SHARE} has share number {number} of {of}")
    return CopyShareEvent(number=number, of=of)


def _time(text: object) -> datetime:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return datetime.now(UTC)


def _records(event: Mapping[str, Any]) -> TopicRecords:
    records: list[Record] = []
    refused: list[Refused] = []
    by_partition = event.get("records")
    for raws in by_partition.values() if isinstance(by_partition, dict) else ():
        for raw in raws:
            read = _record(raw)
            if isinstance(read, Record):
                records.append(read)
            else:
                refused.append(read)
    return TopicRecords(records=tuple(records), refused=tuple(refused))


def _record(raw: object) -> Record | Refused:
    try:
        fields = _Raw.model_validate(raw)
        return Record(
            topic=fields.topic,
            partition=fields.partition,
            offset=fields.offset,
            timestamp_ms=fields.timestamp,
            timestamp_type=fields.timestamp_type,
            key=_bytes(fields.key),
            value=_bytes(fields.value),
        )
    except ValidationError as error:
        wrong = error.errors(include_input=False)[0]
        where = ".".join(str(part) for part in wrong["loc"])
        return Refused(reason=f"the event's record is malformed: {where}: {wrong['msg']}", raw=raw)
    except (binascii.Error, ValueError) as error:
        return Refused(reason=f"the event's record is malformed: {error}", raw=raw)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
