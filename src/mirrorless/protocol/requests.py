"""What is sent to brokers and what they answer, between kafka-python's protocol messages and plain tuples.

Requests that carry topic ids name the topics too: which of the two is sent depends on the version that
the broker supports (Fetch and Produce from version 13 on: ids, KIP-516).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from mirrorless.kafka_python.messages import DescribeConfigsRequest, DescribeProducersRequest, ListOffsetsRequest
from mirrorless.protocol.fast_codec import by_topic
from mirrorless.protocol.fetch import Fetch, Fetches
from mirrorless.protocol.produce import Acknowledged, Produce

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from mirrorless.batches.stamp import Stamped
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.protocol.fetch_session import Asked, Ids

OFFSET_OUT_OF_RANGE = 1
"""Error code of a fetch whose offset lies before or behind the log."""
_ANY_LEADER_EPOCH = _CONSUMER = -1
_BROKER = 4
"""Resource type of a broker's configs (`ConfigResource.Type`)."""
_CANNOT_BE_ASKED = frozenset({31, 35, 42})
"""CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, INVALID_REQUEST: some managed services list DescribeProducers
among their APIs, and answer with one of these for every partition."""
DEBUGGING = -2
"""Replica id of who may see what is not replicated (`ListOffsetsRequest.DEBUGGING_REPLICA_ID`)."""


class Fetched(NamedTuple):
    """One partition of a fetch response; `aborted` are pairs of producer id and first offset.

    `diverges_at` is the offset from which on the source's log is not the one that was read before, None if it is. An
    open transaction holds back what lies between the last stable offset and the high watermark. `replica` is the broker
    that the leader names to be read instead of itself, -1 if none (KIP-392): then the answer has no records, and does
    not show that there are none.
    """

    place: TopicPartition
    error_code: int
    last_stable_offset: int
    aborted: list[tuple[int, int]]
    records: bytes | memoryview
    diverges_at: int | None = None
    high_watermark: int = -1
    replica: int = -1


class AppendResult(NamedTuple):
    """One partition of a produce response; `refused_records` is how many records of the batch it names as invalid."""

    place: TopicPartition
    error_code: int
    error_message: str | None
    base_offset: int
    refused_records: int = 0


class ProducerState(NamedTuple):
    """What a leader remembers of a producer on one partition."""

    epoch: int
    last_sequence: int


class Offset(NamedTuple):
    """An offset of one place, or the error code in its stead."""

    offset: int
    error_code: int


def fetch(
    asked: Asked,
    *,
    isolation: int = 0,
    max_wait_ms: int = 0,
    max_bytes: int = 1,
    partition_max_bytes: int = 1,
    rack: str = "",
) -> Fetch:
    """A fetch of each place, offset and leader epoch of the record before it (-1: unknown), by a consumer in `rack`.

    Without limits of its own it asks for as little as a leader sends.
    """
    return Fetch(
        asked,
        isolation=isolation,
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        partition_max_bytes=partition_max_bytes,
        rack=rack,
    )


def fetched(response: Any, ids: Ids | None) -> list[Fetched]:  # noqa: ANN401 -- the library's messages are untyped
    """Partitions of a fetch response; `ids` are those of the request."""
    names = _names(ids)
    if isinstance(response, Fetches):
        return [
            Fetched((name, index), code, last_stable_offset, aborted, records, None, high_watermark, replica)
            for topic, parts in response.topics
            for name in [topic if isinstance(topic, str) else names.get(topic, "")]
            for index, code, last_stable_offset, records, high_watermark, aborted, replica in parts
        ]
    return [
        Fetched(
            (topic.topic or names.get(topic.topic_id, ""), part.partition_index),
            part.error_code,
            part.last_stable_offset,
            [(aborted.producer_id, aborted.first_offset) for aborted in part.aborted_transactions or ()],
            part.records or b"",
            _diverges_at(part),
            part.high_watermark,
            part.preferred_read_replica,
        )
        for topic in response.responses
        for part in topic.partitions
    ]


def _diverges_at(part: Any) -> int | None:  # noqa: ANN401
    diverging = getattr(part, "diverging_epoch", None)
    if diverging is None or diverging.end_offset < 0:
        return None
    return int(diverging.end_offset)


def produce(batches: Sequence[tuple[TopicPartition, Stamped]], ids: Ids | None, *, timeout_ms: int) -> Produce:
    """One batch for each place, to be acknowledged by all in-sync replicas."""
    by_topic: dict[str, list[tuple[int, Stamped]]] = defaultdict(list)
    for (topic, partition), batch in batches:
        by_topic[topic].append((partition, batch))
    return Produce(by_topic, ids, timeout_ms=timeout_ms)


def appended(response: Any, ids: Ids | None) -> list[AppendResult]:  # noqa: ANN401
    """Partitions of a produce response; `ids` are those of the request."""
    names = _names(ids)
    if isinstance(response, Acknowledged):
        return [
            AppendResult((name, partition), 0, None, base_offset)
            for topic, batches in response.topics
            for name in [topic if isinstance(topic, str) else names[topic]]
            for partition, base_offset in batches
        ]
    return [
        AppendResult(
            (topic.name or names[topic.topic_id], part.index),
            part.error_code,
            part.error_message,
            part.base_offset,
            len(part.record_errors or ()),
        )
        for topic in response.responses
        for part in topic.partition_responses
    ]


def describe_producers(places: Iterable[TopicPartition]) -> DescribeProducersRequest:
    """What is remembered of producers on these places (KIP-664)."""
    return DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic(places).items()
        ]
    )


def described_producers(
    response: Any,  # noqa: ANN401
    wanted: Mapping[TopicPartition, int],
) -> dict[TopicPartition, ProducerState | int | None]:
    """What is remembered of one producer id on each place, or the error code in its stead.

    A place of a broker that cannot be asked is missing, as one of which nothing is remembered.
    """
    found: dict[TopicPartition, ProducerState | int | None] = {}
    for topic in response.topics:
        for part in topic.partitions:
            place = (topic.name, part.partition_index)
            if part.error_code:
                if part.error_code not in _CANNOT_BE_ASKED:
                    found[place] = part.error_code
                continue
            for state in part.active_producers:
                if state.producer_id == wanted[place] and state.last_sequence >= 0:
                    found[place] = ProducerState(state.producer_epoch, state.last_sequence)
    return found


def describe_broker(node: int | None, names: Iterable[str]) -> DescribeConfigsRequest:
    """These configs of a broker, which only itself tells; of None, the cluster-wide ones."""
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=_BROKER, resource_name="" if node is None else str(node), configuration_keys=list(names)
            )
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def described_configs(response: Any) -> dict[str, str]:  # noqa: ANN401
    """Values by name, of a description that was not refused."""
    return {
        config.name: config.value
        for result in response.results
        if not result.error_code
        for config in result.configs or ()
        if config.value is not None
    }


def list_offsets(
    places: Iterable[TopicPartition], *, at: int, isolation: int, replica: int = _CONSUMER
) -> ListOffsetsRequest:
    """The offset of each place at a timestamp in ms, or at one of the special ones below 0."""
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                        partition_index=partition, current_leader_epoch=_ANY_LEADER_EPOCH, timestamp=at
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(places).items()
        ],
    )


def listed_offsets(response: Any) -> dict[TopicPartition, Offset]:  # noqa: ANN401
    """Offsets by place."""
    return {
        (topic.name, part.partition_index): Offset(part.offset, part.error_code)
        for topic in response.topics
        for part in topic.partitions
    }


def _names(ids: Ids | None) -> dict[UUID, str]:
    return {} if ids is None else {topic_id: topic for topic, topic_id in ids.items()}
