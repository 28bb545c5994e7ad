"""Describes, creates and grows topics of a cluster, and reads their offsets, in batches as Kafka allows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic, OffsetSpec

from mirrorless.clusters.admin import METADATA_TIMEOUT_S, Refusal
from mirrorless.errors import ClusterError, ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition


_ATTEMPTS = 5
_PAUSE_S = 0.5
_ANSWER_S = 3.0
"""How long the first attempt waits; the second one twice as long, and so on, since a large cluster may need it."""
_EXISTS = KafkaError.TOPIC_ALREADY_EXISTS
_NO_ID = "A="
"""The characters of the base64 of a zero id."""
_INVALID_PARTITIONS = KafkaError.INVALID_PARTITIONS
ABOUT_CONFIGS = (KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_REQUEST)
"""Errors of a cluster for configs that it refuses, alone or among others."""
_WORD = 1 << 64
_UNSEEN = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,  # invalid topic name
)


@dataclass(frozen=True, slots=True)
class Described:
    """A topic: its id, which distinguishes topics of the same name (KIP-516), and its partitions.

    Brokers before 2.8 return the same id for all topics.
    """

    topic_id: str
    partitions: tuple[int, ...]


def partition_counts(metadata: ClusterMetadata) -> dict[str, int]:
    """Partitions of every topic that can be described."""
    return {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}


def replica_counts(metadata: ClusterMetadata) -> dict[str, int]:
    """Every visible topic, with the smallest number of replicas of a partition; 0 if unknown."""
    return {
        name: min((len(one.replicas) for one in topic.partitions.values()), default=0)
        for name, topic in metadata.topics.items()
    }


def undescribed(metadata: ClusterMetadata) -> dict[str, str]:
    """Topics that cannot be described, each with the reason."""
    return {name: str(topic.error) for name, topic in metadata.topics.items() if topic.error is not None}


def describe(admin: Admin, topic: str) -> Described | Refusal:
    """Describe one topic, without requesting all of them; a refusal if it does not exist or is not visible.

    Raises `ClusterUnavailable`.
    """
    future = admin.client.describe_topics(TopicCollection([topic]), request_timeout=METADATA_TIMEOUT_S)[topic]
    try:
        found = future.result(timeout=METADATA_TIMEOUT_S + 1)
    except TimeoutError as error:
        raise admin.timed_out(METADATA_TIMEOUT_S) from error
    except KafkaException as error:
        reason = error.args[0]
        if reason.code() in _UNSEEN:
            return Refusal(reason.code(), KafkaError(reason.code()).str())
        if reason.code() < 0:
            raise admin.failure(error) from error
        # librdkafka never marks a broker's error about one topic, such as a missing leader, as retriable.
        raise ClusterUnavailable(f"{topic}: {reason.str()}", cluster=admin.alias) from error
    return Described(str(found.topic_id), tuple(sorted(one.id for one in found.partitions)))


def topic_ids(
    admin: Admin, topics: Iterable[str], *, timeout_s: float = METADATA_TIMEOUT_S
) -> tuple[dict[str, str], dict[str, str]]:
    """Ids of topics (KIP-516), in one request, and why some could not be read.

    Topics that do not exist, or may not be described, are in neither; nor are topics of brokers before 2.8, which have
    no ids. Raises `ClusterUnavailable`.
    """
    wanted = sorted(set(topics))
    if not wanted:
        return {}, {}
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    answers = admin.client.describe_topics(TopicCollection(wanted), request_timeout=timeout_s)
    for topic, future in answers.items():
        try:
            number = future.result(timeout=timeout_s + 1).topic_id
        except TimeoutError as error:
            raise admin.timed_out(timeout_s) from error
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() < 0:
                raise admin.failure(error) from error
            if reason.code() not in _UNSEEN:
                missing[topic] = reason.str()
            continue
        high, low = number.get_most_significant_bits(), number.get_least_significant_bits()
        if high or low:
            found[topic] = str(UUID(int=(high % _WORD) * _WORD + low % _WORD))
    return found, missing


def last_stable_offsets(
    admin: Admin, places: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    """The last stable offset of each place, which a committed read cannot pass; and why others are unknown.

    Requests are retried while leaders move, and for brokers that do not answer: the library keeps a request
    to a broker that has just died until its timeout, and does not look for the new leader meanwhile.
    """
    return _offsets(admin, places, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)


def high_watermarks(
    admin: Admin, places: Iterable[TopicPartition], *, attempts: int = _ATTEMPTS
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    """The offset after all replicated records, including those that open transactions hold back; else as above.

    With one of `attempts` it takes at most three seconds.
    """
    return _offsets(admin, places, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED, attempts=attempts)


def log_starts(
    admin: Admin, places: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    """The first offset that each place still has; else as above."""
    return _offsets(admin, places, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)


def held_back(admin: Admin, stable: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Number of offsets after these last stable offsets that open transactions hold back from committed reads.

    Records that were committed since are not included; partitions without an answer are omitted.
    """
    ends, _ = high_watermarks(admin, stable)
    behind = {place: end for place, end in ends.items() if end > stable[place]}
    now, _ = last_stable_offsets(admin, behind)
    return {place: behind[place] - offset for place, offset in now.items() if behind[place] > offset}


def _offsets(
    admin: Admin,
    places: Iterable[TopicPartition],
    spec: OffsetSpec,
    isolation: IsolationLevel,
    *,
    attempts: int = _ATTEMPTS,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    found: dict[TopicPartition, int] = {}
    missing: dict[TopicPartition, str] = {}
    left = list(places)
    for attempt in range(attempts):
        if not left:
            break
        if attempt:
            time.sleep(_PAUSE_S)
        answers = admin.client.list_offsets(
            {ConfluentTopicPartition(topic, partition): spec for topic, partition in left},
            isolation_level=isolation,
            request_timeout=_ANSWER_S * (attempt + 1),
        )
        left = []
        for place, future in answers.items():
            here = (place.topic, place.partition)
            try:
                found[here] = admin.result(future).offset
                missing.pop(here, None)
            except ClusterError as error:
                missing[here] = str(error)
                if error.retriable:
                    left.append(here)
    return found, missing


def create_topics(
    admin: Admin, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> dict[str, Refusal | None]:
    """Create topics in one request; returns for each None, or the error. An existing topic is no error."""
    wanted = list(topics)
    answers = admin.client.create_topics(wanted, validate_only=validate_only) if wanted else {}
    return {name: admin.refusal(future, fine=_EXISTS) for name, future in answers.items()}


def grow_topics(admin: Admin, counts: Mapping[str, int]) -> dict[str, Refusal | None]:
    """Add partitions in one request; returns for each None, or the error. A topic with as many is no error."""
    wanted = [NewPartitions(topic, count) for topic, count in counts.items()]
    answers = admin.client.create_partitions(wanted) if wanted else {}
    return {name: admin.refusal(future, fine=_INVALID_PARTITIONS) for name, future in answers.items()}
