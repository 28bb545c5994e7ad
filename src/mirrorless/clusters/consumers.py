"""Common code of topic readers: a consumer without a group, and how to wait for its messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters import clients
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from confluent_kafka import Consumer, Message

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster

_SPAN_S: Final = 30.0
_WAIT_S: Final = 0.2
_A_TIME: Final = 10_000
_FETCHED_BYTES: Final = 65_536
_BUFFER_KB: Final = 4_096
_PASSING: Final = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


def reader(cluster: Cluster, **own: Any) -> Consumer:  # noqa: ANN401 -- librdkafka's values
    """Return a consumer to `assign`, which reports the end of each partition; `own` has settings with `_` for `.`.

    The library requires a group, and looks up its coordinator: a user without rights on it gets
    GROUP_AUTHORIZATION_FAILED among the messages, which has no effect here.
    """
    settings = {
        "logger": LIBRDKAFKA,
        "group.id": "mirrorless",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        **{key.replace("_", "."): value for key, value in own.items()},
    }
    return clients.consumer(for_confluent(cluster, role="consumer", extra=settings))


def waiting(consumer: Consumer, most: int, *, seconds: float) -> list[Message]:
    """Take up to `most` available messages and partition ends; if there are none, wait for the first one so long.

    The library's own call with a timeout waits all of it, unless as many arrive as were requested.
    """
    return consumer.consume(most, timeout=0) or consumer.consume(1, timeout=seconds)


def records_in(
    cluster: Cluster,
    spans: Mapping[TopicPartition, tuple[int, int]],
    *,
    aborted: bool = True,
    seconds: float = _SPAN_S,
) -> dict[TopicPartition, int]:
    """Count the records of each partition between two offsets; markers are no records, `aborted` ones only if wanted.

    Without them no span may reach beyond the last stable offset. Partitions without a record are omitted. Raises
    `ClusterUnavailable` if they cannot be read in so many seconds.
    """
    found: dict[TopicPartition, int] = {}
    left = dict(spans)
    consumer = reader(cluster, isolation_level="read_uncommitted" if aborted else "read_committed")
    try:
        for topic in {topic for topic, _ in spans}:
            consumer.list_topics(topic, timeout=seconds)
        consumer.assign([ConfluentTopicPartition(*place, begin) for place, (begin, _) in spans.items()])
        until = time.monotonic() + seconds
        while left:
            for message in waiting(consumer, _A_TIME, seconds=_WAIT_S):
                place = (message.topic() or "", message.partition() or 0)
                offset, error = message.offset() or 0, message.error()
                if place not in spans or (error is not None and error.code() in _PASSING):
                    continue
                end = spans[place][1]
                if error is None and offset < end:
                    found[place] = found.get(place, 0) + 1
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if offset + (error is None) >= end:
                    left.pop(place, None)
            if left and time.monotonic() > until:
                topic, partition = next(iter(left))
                reason = f"{topic}-{partition} could not be read to offset {left[topic, partition][1]}"
                raise ClusterUnavailable(reason, cluster=cluster.alias)
    except KafkaException as error:
        raise ClusterUnavailable(error.args[0].str(), cluster=cluster.alias) from error
    finally:
        consumer.close()
    return found


def first_records(
    cluster: Cluster, places: Collection[TopicPartition], *, most: int, seconds: float
) -> tuple[dict[TopicPartition, list[tuple[bytes | None, bytes | None]]], set[TopicPartition]]:
    """Read up to `most` records of each partition from its beginning, as keys and values, with one connection a broker.

    Returns those of partitions that were read as far or to their end, and the partitions that may not be read; those
    that were not answered in so many seconds are in neither. Raises `ClusterUnavailable`.
    """
    found: dict[TopicPartition, list[tuple[bytes | None, bytes | None]]] = {place: [] for place in places}
    left = set(places)
    refused: set[TopicPartition] = set()
    consumer = reader(
        cluster,
        isolation_level="read_committed",
        fetch_message_max_bytes=_FETCHED_BYTES,
        queued_max_messages_kbytes=_BUFFER_KB,
    )
    try:
        consumer.list_topics(timeout=seconds)
        consumer.assign([ConfluentTopicPartition(*place, OFFSET_BEGINNING) for place in places])
        until = time.monotonic() + seconds
        while left and time.monotonic() < until:
            over = set()
            for message in waiting(consumer, _A_TIME, seconds=_WAIT_S):
                place, error = (message.topic() or "", message.partition() or 0), message.error()
                if error is None and place in left:
                    found[place].append((message.key(), message.value()))
                    if len(found[place]) < most:
                        continue
                elif error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    refused |= {one for one in left if one[0] == place[0]}
                elif error is None or error.code() != KafkaError._PARTITION_EOF:
                    continue
                over |= ({place} | refused) & left
            if over:
                consumer.pause([ConfluentTopicPartition(*place) for place in over])
                left -= over
    except KafkaException as error:
        raise ClusterUnavailable(error.args[0].str(), cluster=cluster.alias) from error
    finally:
        consumer.close()
    return {place: records for place, records in found.items() if place not in left | refused}, refused
