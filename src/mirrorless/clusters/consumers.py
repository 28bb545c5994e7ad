"""Common code of topic readers: a consumer without a group, and how to wait for its messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters import clients
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Consumer, Message

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster

_SPAN_S: Final = 30.0
_WAIT_S: Final = 0.2
_A_TIME: Final = 10_000
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
