"""Signs of life: one record an interval into the target's `heartbeats` (reference, section 1.1).

They replicate onward as `<source>.heartbeats`, by which a client learns who is upstream and how many hops away.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from mirrorless.clusters.admin import QUIET, Admin
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.failures import grant
from mirrorless.clusters.internal_topics import ensure, heartbeats_topic, replicated_heartbeats
from mirrorless.clusters.reading import reader, waiting
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.formats import Heartbeat

if TYPE_CHECKING:
    from confluent_kafka import Message

    from mirrorless.settings import Flow

_TIMEOUT_S: Final = 10.0
_LAST_RECORDS: Final = 50


class Heartbeats:
    """Emits the heartbeats of one pair of clusters; the topic is created if it is missing.

    Raises `ClusterError` where it can be neither found nor created.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._topic = heartbeats_topic(flow)
        if (reason := ensure(Admin(flow.target), self._topic)) is not None:
            raise ClusterError(f"topic {self._topic.name} cannot be created: {reason}", cluster=flow.target.alias)
        self._error: str | None = None
        extra = {"acks": "all", "message.timeout.ms": int(_TIMEOUT_S * 1000), "logger": QUIET}
        self._producer = Producer(for_confluent(flow.target, role="producer", extra=extra))

    def beat(self, *, timestamp_ms: int) -> None:
        """Write one heartbeat and wait until it is acknowledged; raises `ClusterUnavailable`."""
        beat = Heartbeat(source=self._flow.source.alias, target=self._flow.target.alias, timestamp_ms=timestamp_ms)
        self._error = None
        self._producer.produce(
            self._topic.name,
            key=beat.key(),
            value=beat.value(),
            partition=0,
            timestamp=timestamp_ms,
            on_delivery=self._delivered,
        )
        left = self._producer.flush(_TIMEOUT_S + 1)
        if left or self._error is not None:
            reason = self._error or f"no acknowledgement in {_TIMEOUT_S:.0f} s"
            raise ClusterUnavailable(f"{self._topic.name}: {reason}", cluster=self._flow.target.alias)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self._error = None if error is None else f"{error.str()}{grant(error.code(), 'WRITE on it')}"


def last_heartbeat(flow: Flow) -> Heartbeat | None:
    """Read the newest heartbeat that came over from the source to the target; None where there is none yet.

    Only the last records of each partition are read. Raises `ClusterUnavailable`, also where a right is missing.
    """
    topic = replicated_heartbeats(flow)
    consumer = reader(flow.target)
    try:
        found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        if found.error is not None and found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise KafkaException(found.error)
        places = [TopicPartition(topic, partition) for partition in found.partitions]
        beats = [beat for place in places for beat in _last(consumer, place)]
    except KafkaException as error:
        reason = f"{error.args[0].str()}{grant(error.args[0].code(), 'READ on it')}"
        raise ClusterUnavailable(f"{topic}: {reason}", cluster=flow.target.alias) from error
    finally:
        consumer.close()
    return max(beats, key=lambda beat: beat.timestamp_ms, default=None)


def _last(consumer: Consumer, place: TopicPartition) -> list[Heartbeat]:
    low, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
    begin = max(low, high - _LAST_RECORDS)
    if begin >= high:
        return []
    consumer.assign([TopicPartition(place.topic, place.partition, begin)])
    beats: list[Heartbeat] = []
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
        for message in waiting(consumer, _LAST_RECORDS + 1, seconds=0.2):
            error = message.error()
            if error is None and isinstance(beat := Heartbeat.parse(message.key(), message.value()), Heartbeat):
                beats.append(beat)
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                return beats
            elif error is not None and error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise KafkaException(error)
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
