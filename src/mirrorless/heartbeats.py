"""Heartbeats: one record per interval in the target's `heartbeats` topic.

They are replicated as `<source>.heartbeats`, from which a client learns which clusters are upstream, and the hops.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters import outages
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.compaction import compacting, policies
from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.consumers import reader, waiting
from mirrorless.clusters.internal_topics import ensure, heartbeats_topic, replicated_heartbeats
from mirrorless.clusters.producer import TopicProducer
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.formats import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.formats import Malformed
    from mirrorless.settings import Cluster, Flow

_TIMEOUT_S: Final = 10.0
_AT_ONCE_S: Final = 1.0
"""How long a heartbeat may take until it is checked whether its topic exists."""
_LAST_RECORDS: Final = 50
_FEW_RECORDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The last `records` of a heartbeats topic: the newest heartbeat, and how many are `foreign`, not heartbeats.

    Tombstones do not count.
    """

    last: Heartbeat | None = None
    records: int = 0
    foreign: int = 0


class Heartbeats:
    """Emits heartbeats of pairs with one topic, of which `flow` is one; creates it if it is missing, also later.

    `refused` is a line that says why no heartbeat is written to an existing topic that has another use: then `beat`
    must not be called. Raises `ClusterError` if the topic can neither be found nor created.
    """

    def __init__(self, flow: Flow) -> None:
        outages.require(flow.target)
        self._flow = flow
        self._topic = heartbeats_topic(flow)
        self._admin = Admin(flow.target)
        self._create()
        self.refused = unfit(flow, self._admin)
        self._producer = TopicProducer(flow.target, creator="the next heartbeat", gives_up_after_s=_TIMEOUT_S)

    def beat(self, pairs: Iterable[Flow], *, timestamp_ms: int) -> None:
        """Write a heartbeat of each pair and wait until all are acknowledged; raises `ClusterError`."""
        for pair in pairs:
            beat = Heartbeat(source=pair.source.alias, target=pair.target.alias, timestamp_ms=timestamp_ms)
            self._producer.send(
                self._topic.name, key=beat.key(), value=beat.value(), partition=0, timestamp_ms=timestamp_ms
            )
        if self._producer.flush(_AT_ONCE_S):
            self._create()  # if the topic was deleted; the producer, which creates no topics, then finds it
        self._producer.confirm(self._topic.name, _TIMEOUT_S + 1)

    def _create(self) -> None:
        if (reason := ensure(self._admin, self._topic)) is not None:
            raise ClusterError(f"cannot create topic {self._topic.name}: {reason}", cluster=self._flow.target.alias)


def unfit(flow: Flow, admin: Admin) -> str | None:
    """Return a line that says why heartbeats should not be written to the target's topic; None if they may.

    What the user may not read is not checked. Raises `ClusterUnavailable`.
    """
    topic, cluster = heartbeats_topic(flow).name, flow.target
    if (policy := policies(admin, [topic]).wrong.get(topic)) is not None:
        return (
            f"{topic} on {cluster.alias} has cleanup.policy={policy}; no heartbeats are written to it: "
            f"fix it with {compacting(cluster, topic)}, or set emit.heartbeats.enabled=false"
        )
    try:
        found = look(cluster, topic)
    except ClusterUnavailable:
        return None  # writing needs no READ; an unavailable cluster is reported when writing
    if not found.foreign:
        return None
    return (
        f"{topic} on {cluster.alias} is used for something else: {found.foreign} of its last {found.records} "
        "records are not heartbeats; no heartbeats are written to it: delete the topic if it is not needed, or "
        "set emit.heartbeats.enabled=false"
    )


def last_heartbeat(flow: Flow) -> Heartbeat | None:
    """Read the newest heartbeat that was replicated from the source to the target; None if there is none yet.

    Only the last records of each partition are read. Raises `ClusterUnavailable`, also if a right is missing.
    """
    return last_records(flow).last


def last_records(flow: Flow) -> Look:
    """Read the last records that were replicated from the source's heartbeats topic; raises as `last_heartbeat`."""
    return look(flow.target, replicated_heartbeats(flow), count=_LAST_RECORDS)


def look(cluster: Cluster, topic: str, *, count: int = _FEW_RECORDS) -> Look:
    """Read the last `count` records of each partition of a heartbeats topic, of which there may be none.

    Raises `ClusterUnavailable`, also if a right is missing.
    """
    consumer = reader(cluster)
    try:
        found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        if found.error is not None and found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise KafkaException(found.error)
        places = [ConfluentTopicPartition(topic, partition) for partition in found.partitions]
        records = [record for place in places for record in _last(consumer, place, count)]
    except KafkaException as error:
        reason = f"{error.args[0].str()}{grant(error.args[0].code(), 'READ on it')}"
        raise ClusterUnavailable(f"{topic}: {reason}", cluster=cluster.alias) from error
    finally:
        consumer.close()
    beats = [record for record in records if isinstance(record, Heartbeat)]
    last = max(beats, key=lambda beat: beat.timestamp_ms, default=None)
    return Look(last=last, records=len(records), foreign=len(records) - len(beats))


def _last(consumer: Consumer, place: ConfluentTopicPartition, count: int) -> list[Heartbeat | Malformed]:
    low, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
    begin = max(low, high - count)
    if begin >= high:
        return []
    consumer.assign([ConfluentTopicPartition(place.topic, place.partition, begin)])
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
