"""Notes on the target when source topics were first seen missing, so that no deletion follows at once.

`mm2-deletes.<source>.internal`, one partition with append times, used only with `mirrorless.sync.topic.deletes`. The
key is the topic; the value has the ids of the source topic and of its remote topic. A null value: it was seen again, or
its remote topic was deleted. Every sync run that finds a topic missing appends a record of its own, too: the delay has
passed if it did between the append times of the note and of the last such record. Both are times of one broker: if
the leader has changed between them, the delay begins again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.consumers import reader, waiting
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.replication_factors import broker_count, usable_factor
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.metadata.actions import CreateTopic
from mirrorless.metadata.recreated_topics import OwnCopy
from mirrorless.metadata.topic_creation import create

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Flow

DELAY_S: Final = 600
_SECONDS: Final = 30.0
_WAIT_S: Final = 0.2
_A_TIME: Final = 1_000
_LOOKED: Final = b"looked"
_PREFIX: Final = b"missing:"
_PASSING: Final = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


def notes_topic(flow: Flow) -> str:
    """Return the topic's name; as an internal topic of MirrorMaker it is never replicated."""
    return f"mm2-deletes.{flow.source.alias}.internal"


@dataclass(frozen=True, slots=True)
class AppendTime:
    """When a leader appended a record, in ms by its clock, and in which leader epoch; None if unknown."""

    ms: int | None
    leader_epoch: int | None

    def seconds_until(self, later: AppendTime | None) -> float | None:
        """Seconds between two records by the clock of one broker; None if there is no such clock."""
        if later is None or self.ms is None or later.ms is None:
            return None
        if self.leader_epoch is None or self.leader_epoch != later.leader_epoch:
            return None
        return (later.ms - self.ms) / 1000


@dataclass(frozen=True, slots=True)
class MissingTopics:
    """Missing topics, each with its copy and when it was noted, and when a sync run last found any missing."""

    noted: Mapping[str, tuple[OwnCopy, AppendTime]]
    looked: AppendTime | None = None

    def waited(self, topic: str, copy: OwnCopy) -> float | None:
        """For how many seconds the topic was seen missing; None if not noted, or if this is not known."""
        if topic not in self.noted or self.noted[topic][0] != copy:
            return None
        return self.noted[topic][1].seconds_until(self.looked)

    def has_no_times(self, topic: str) -> bool:
        """Whether records of the topic have no append times, so that no delay ever passes."""
        return self.noted[topic][1].ms is None


def parse(records: list[tuple[bytes | None, bytes | None, AppendTime]]) -> MissingTopics:
    """Process all records of the topic, in order; records of others are ignored."""
    noted: dict[str, tuple[OwnCopy, AppendTime]] = {}
    looked: AppendTime | None = None
    for key, value, at in records:
        if key == _LOOKED:
            looked = at
        elif key is not None and key.startswith(_PREFIX):
            topic = key.removeprefix(_PREFIX).decode(errors="replace")
            noted.pop(topic, None)
            copy = None if value is None else _parsed(value)
            if copy is not None:
                noted[topic] = copy, at
    return MissingTopics(noted, looked)


def _parsed(value: bytes) -> OwnCopy | None:
    try:
        said = json.loads(value)
        return OwnCopy(source_id=str(said["sourceId"]), remote_id=str(said["remoteId"]))
    except (ValueError, KeyError, TypeError):
        return None


def read(flow: Flow) -> MissingTopics:
    """Read the notes, none if there is no topic; raises `ClusterUnavailable`."""
    topic, alias = notes_topic(flow), flow.target.alias
    consumer = reader(flow.target, isolation_level="read_uncommitted")
    records: list[tuple[bytes | None, bytes | None, AppendTime]] = []
    try:
        about = consumer.list_topics(topic, timeout=_SECONDS).topics[topic].error
        if about is not None and about.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return MissingTopics({})
        if about is not None:
            raise KafkaException(about)
        consumer.assign([ConfluentTopicPartition(topic, 0, OFFSET_BEGINNING)])
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            for message in waiting(consumer, _A_TIME, seconds=_WAIT_S):
                error = message.error()
                if error is None:
                    records.append((message.key(), message.value(), _appended(message)))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return parse(records)
                elif error.code() not in _PASSING:
                    raise KafkaException(error)
    except KafkaException as error:
        reason = error.args[0]
        text = f"{topic}: {reason.str()}{grant(reason.code(), 'READ on it')}"
        raise ClusterUnavailable(text, cluster=alias) from error
    finally:
        consumer.close()
    raise ClusterUnavailable(f"{topic} could not be read to its end in {_SECONDS:.0f} s", cluster=alias)


def _appended(message: Message) -> AppendTime:
    kind, ms = message.timestamp()
    epoch = message.leader_epoch()
    known = epoch is not None and epoch >= 0
    return AppendTime(ms if kind == TIMESTAMP_LOG_APPEND_TIME else None, epoch if known else None)


def note(flow: Flow, target: Admin, missing: Mapping[str, OwnCopy]) -> None:
    """Note that these topics are missing, and that a sync run found topics missing; raises `ClusterError`."""
    _create(flow, target)
    records: dict[bytes, bytes | None] = {
        _PREFIX + topic.encode(): json.dumps({"sourceId": copy.source_id, "remoteId": copy.remote_id}).encode()
        for topic, copy in missing.items()
    }
    _write(flow, records | {_LOOKED: b"{}"})


def forget(flow: Flow, topics: list[str]) -> None:
    """Delete the notes on these topics; raises `ClusterError`."""
    _write(flow, {_PREFIX + topic.encode(): None for topic in topics})


def _write(flow: Flow, records: Mapping[bytes, bytes | None]) -> None:
    producer = TopicProducer(flow.target, creator="the next sync of metadata")
    for key, value in records.items():
        producer.send(notes_topic(flow), key=key, value=value, partition=0)
    producer.confirm(notes_topic(flow), _SECONDS, refused=ClusterError)


def _create(flow: Flow, target: Admin) -> None:
    topic = notes_topic(flow)
    if topic in target.metadata().topics:
        return
    action = CreateTopic(
        topic=topic,
        partitions=1,
        replication_factor=flow.offset_storage_replication_factor,
        reason="notes which source topics are missing (mirrorless.sync.topic.deletes)",
        config={"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"},
        factor_key="offset.storage.replication.factor",
        factor_is_default=flow.is_default("offset_storage_replication_factor"),
    )
    error, _ = create(target, [_within(target, action)])[topic]
    if error is not None and topic not in target.metadata().topics:
        raise ClusterError(f"{topic}: {error}", cluster=flow.target.alias)


def _within(target: Admin, action: CreateTopic) -> CreateTopic:
    factor = usable_factor(
        action.replication_factor, is_default=action.factor_is_default, brokers=broker_count(target.metadata())
    )
    return replace(action, replication_factor=factor)
