"""Signs of life: one record an interval into the target's `heartbeats` (reference, section 1.1).

They replicate onward as `<source>.heartbeats`, by which a client learns who is upstream and how many hops away.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.compaction import compacting, policies
from mirrorless.clusters.connection_errors import grant, unwritten
from mirrorless.clusters.consumers import reader, waiting
from mirrorless.clusters.internal_topics import ensure, heartbeats_topic, replicated_heartbeats
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.formats import Heartbeat

if TYPE_CHECKING:
    from confluent_kafka import Message

    from mirrorless.formats import Malformed
    from mirrorless.settings import Cluster, Flow

_TIMEOUT_S: Final = 10.0
_AT_ONCE_S: Final = 1.0
"""How long a heartbeat may take until it is asked whether its topic is there."""
_LAST_RECORDS: Final = 50
_FEW_RECORDS: Final = 10
_CREATOR: Final = "the next heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The last `records` of a heartbeats topic: the newest heartbeat, and how many are `foreign`, no heartbeats.

    Tombstones do not count.
    """

    last: Heartbeat | None = None
    records: int = 0
    foreign: int = 0


class Heartbeats:
    """Emits the heartbeats of one pair of clusters; the topic is created if it is missing, also later.

    `refused` is one line on why nothing is written into a topic that is there, and not one for heartbeats: then `beat`
    must not be called. Raises `ClusterError` where the topic can be neither found nor created.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._topic = heartbeats_topic(flow)
        self._admin = Admin(flow.target)
        self._create()
        self.refused = unfit(flow, self._admin)
        self._error: str | None = None
        extra = {"acks": "all", "message.timeout.ms": int(_TIMEOUT_S * 1000), "logger": LIBRDKAFKA}
        self._producer = Producer(for_confluent(flow.target, role="producer", extra=extra))

    def beat(self, *, timestamp_ms: int) -> None:
        """Write one heartbeat and wait until it is acknowledged; raises `ClusterError`."""
        beat = Heartbeat(source=self._flow.source.alias, target=self._flow.target.alias, timestamp_ms=timestamp_ms)
        self._error = None
        try:
            self._producer.produce(
                self._topic.name,
                key=beat.key(),
                value=beat.value(),
                partition=0,
                timestamp=timestamp_ms,
                on_delivery=self._delivered,
            )
        except KafkaException as error:
            self._error = unwritten(error.args[0], creator=_CREATOR)
        left = self._producer.flush(_AT_ONCE_S)
        if left:
            self._create()  # it may have been deleted; the producer, which creates no topics, then finds the new one
            left = self._producer.flush(_TIMEOUT_S + 1)
        if left or self._error is not None:
            reason = self._error or f"no acknowledgement in {_TIMEOUT_S:.0f} s"
            raise ClusterUnavailable(f"{self._topic.name}: {reason}", cluster=self._flow.target.alias)

    def _create(self) -> None:
        if (reason := ensure(self._admin, self._topic)) is not None:
            raise ClusterError(f"topic {self._topic.name} cannot be created: {reason}", cluster=self._flow.target.alias)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self._error = None if error is None else unwritten(error, creator=_CREATOR)


def unfit(flow: Flow, admin: Admin) -> str | None:
    """Return one line on why no heartbeats should be written into the target's topic as it is; None if they may.

    What may not be read is not looked at. Raises `ClusterUnavailable`.
    """
    topic, cluster = heartbeats_topic(flow).name, flow.target
    if (policy := policies(admin, [topic]).wrong.get(topic)) is not None:
        return (
            f"{topic} on {cluster.alias} has cleanup.policy={policy}; no heartbeats are written into it: "
            f"fix it with {compacting(cluster, topic)}, or set emit.heartbeats.enabled=false"
        )
    try:
        found = look(cluster, topic)
    except ClusterUnavailable:
        return None  # READ on it is not needed to write heartbeats; a cluster that is away shows when they are written
    if not found.foreign:
        return None
    return (
        f"{topic} on {cluster.alias} is in use for something else: {found.foreign} of its last {found.records} records "
        "are no heartbeats of MirrorMaker; no heartbeats are written into it: delete the topic if it is not needed, or "
        "set emit.heartbeats.enabled=false"
    )


def last_heartbeat(flow: Flow) -> Heartbeat | None:
    """Read the newest heartbeat that came over from the source to the target; None where there is none yet.

    Only the last records of each partition are read. Raises `ClusterUnavailable`, also where a right is missing.
    """
    return last_records(flow).last


def last_records(flow: Flow) -> Look:
    """Look at the last records that came over from the source's heartbeats topic; raises as `last_heartbeat`."""
    return look(flow.target, replicated_heartbeats(flow), count=_LAST_RECORDS)


def look(cluster: Cluster, topic: str, *, count: int = _FEW_RECORDS) -> Look:
    """Read the last `count` records of each partition of a heartbeats topic, of which there may be none.

    Raises `ClusterUnavailable`, also where a right is missing.
    """
    consumer = reader(cluster)
    try:
        found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        if found.error is not None and found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise KafkaException(found.error)
        places = [TopicPartition(topic, partition) for partition in found.partitions]
        records = [record for place in places for record in _last(consumer, place, count)]
    except KafkaException as error:
        reason = f"{error.args[0].str()}{grant(error.args[0].code(), 'READ on it')}"
        raise ClusterUnavailable(f"{topic}: {reason}", cluster=cluster.alias) from error
    finally:
        consumer.close()
    beats = [record for record in records if isinstance(record, Heartbeat)]
    last = max(beats, key=lambda beat: beat.timestamp_ms, default=None)
    return Look(last=last, records=len(records), foreign=len(records) - len(beats))


def _last(consumer: Consumer, place: TopicPartition, count: int) -> list[Heartbeat | Malformed]:
    low, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
    begin = max(low, high - count)
    if begin >= high:
        return []
    consumer.assign([TopicPartition(place.topic, place.partition, begin)])
    found: list[Heartbeat | Malformed] = []
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
        for message in waiting(consumer, count + 1, seconds=0.2):
            error = message.error()
            if error is None and message.value() is not None:
                found.append(Heartbeat.parse(message.key(), message.value()))
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                return found
            elif error is not None and error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise KafkaException(error)
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
