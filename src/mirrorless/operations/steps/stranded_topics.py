"""Copies stranded tails to topics of their own on the live cluster, and empties the old topics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, cast

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.clusters.consumers import reader, records_in, waiting
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.topic_deletion import delete_by_id, idle_seconds
from mirrorless.clusters.topics import high_watermarks, partition_counts, topic_ids
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.metadata.actions import CreateTopic
from mirrorless.metadata.fences import MAX_BYTES
from mirrorless.metadata.topic_creation import create
from mirrorless.modes import Modes
from mirrorless.operations.steps.context import StepFailed, places_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from confluent_kafka import Message

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.producer import Headers
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.operations.turns import Ends

_SUFFIX: Final = ".stranded"
_KEPT: Final = {"cleanup.policy": "delete", "retention.ms": "-1"}
_VISIBLE_S: Final = 60.0
_READ_S: Final = 60.0
_FLUSH_S: Final = 60.0
_AT_ONCE: Final = 1_000
_LARGEST: Final = 100 << 20
"""Largest record, bytes; the topic's own limit is that of the old one."""
_POLL_S: Final = 0.5
_IN_A_TRANSACTION: Final = 10_000


def stranded_topic(topic: str) -> str:
    """Return the name of the topic that has the tails of a topic's partitions, each in the partition of its number."""
    return topic + _SUFFIX


def ends_of_tails(context: OperationContext, counts: Mapping[str, int]) -> Ends:
    """Return the ends of stranded topics that exist already, from an earlier failover; 0 where there is none."""
    there = partition_counts(context.source.metadata())
    names = {stranded_topic(topic): count for topic, count in counts.items()}
    known, _ = high_watermarks(context.source, places_of({name: there[name] for name in names if name in there}))
    return {
        topic: [known.get((stranded_topic(topic), number), 0) for number in range(count)]
        for topic, count in counts.items()
    }


def copy_tails(context: OperationContext, partitions: Sequence[list[Any]], ends: Ends) -> None:
    """Append each tail to its stranded topic, after the end that it had; may be repeated.

    Every committed record of a stranded topic was written by this, so their number says how much was done. The
    transactional id is that of the operation: a process that owned it before, and was suspended, is fenced by the
    brokers (KIP-98), so nothing is appended twice.
    """
    if not partitions:
        return
    _create(context, ends)
    live = context.forward.source
    producer = TopicProducer(
        live,
        creator="the next call",
        transactional_id=f"mirrorless-stranded-{context.operation.id}",
        transaction_timeout_ms=int(_READ_S * 2 * 1000),
        message_timeout_ms=int(_FLUSH_S * 1000),
        message_max_bytes=_LARGEST,
    )
    producer.fence_others(_FLUSH_S)
    begins = {(stranded_topic(topic), number): ends[topic][number] for topic, number, *_ in partitions}
    spans = {place: (begins[place], end) for place, end in _ends(context, [*begins]).items() if end > begins[place]}
    done = records_in(live, spans, aborted=False) if spans else {}
    for topic, number, records, first, end, *_ in partitions:
        context.check()
        skipped = done.get((stranded_topic(topic), number), 0)
        _append(context, producer, (topic, number), (first, end), skipped=skipped, records=records)


def _ends(context: OperationContext, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The ends of stranded topics; brokers hear of new ones later than the controller."""
    until = time.monotonic() + _VISIBLE_S
    while True:
        ends, missing = high_watermarks(context.source, places)
        if not missing:
            return ends
        if not context.wait(until):
            (topic, number), reason = next(iter(missing.items()))
            raise StepFailed(f"the end of {topic}-{number} is not known: {reason}")


def _append(
    context: OperationContext,
    producer: TopicProducer,
    place: tuple[str, int],
    span: tuple[int, int],
    *,
    skipped: int,
    records: int,
) -> None:
    """Append the records of a span after the first `skipped` ones, as they are."""
    if skipped >= records:
        return
    old = context.forward.target
    consumer = reader(old, isolation_level="read_committed", client_rack="", auto_offset_reset="error")
    taken, over, until = 0, False, time.monotonic() + _READ_S
    producer.begin()
    try:
        consumer.assign([ConfluentTopicPartition(*place, span[0])])
        while taken < records and not over:
            for message in waiting(consumer, _AT_ONCE, seconds=_POLL_S):
                error = message.error()
                if error is not None and error.code() not in (
                    KafkaError._PARTITION_EOF,
                    KafkaError.GROUP_AUTHORIZATION_FAILED,
                ):
                    raise ClusterError(f"{place[0]}-{place[1]}: {error.str()}", cluster=old.alias)
                if error is not None or taken >= records or (message.offset() or 0) >= span[1]:
                    over = over or error is None or error.code() == KafkaError._PARTITION_EOF
                    continue
                taken, until = taken + 1, time.monotonic() + _READ_S
                if taken > skipped:
                    _send(producer, stranded_topic(place[0]), place[1], message)
                    if (taken - skipped) % _IN_A_TRANSACTION == 0:
                        producer.commit(stranded_topic(place[0]), _FLUSH_S)
                        producer.begin()
            if time.monotonic() > until:
                raise ClusterUnavailable(
                    f"{place[0]}-{place[1]} could not be read to offset {span[1]}", cluster=old.alias
                )
        producer.commit(stranded_topic(place[0]), _FLUSH_S)
    finally:
        consumer.close()
    if taken < records:
        raise StepFailed(
            f"{place[0]}-{place[1]} has {taken} of {records} records before offset {span[1]} now; try again"
        )


def _send(producer: TopicProducer, topic: str, partition: int, message: Message) -> None:
    refused = producer.send(
        topic,
        key=message.key(),
        value=message.value(),
        partition=partition,
        timestamp_ms=max(0, message.timestamp()[1]),
        headers=cast("Headers", message.headers() or ()),
        waits=True,
    )
    if refused is not None:
        raise ClusterError(f"{topic}: {refused}", cluster=producer.alias)
    producer.poll()


def _create(context: OperationContext, topics: Mapping[str, Sequence[int]]) -> None:
    limits, _ = topic_configs(context.target, topics)
    actions = []
    for topic, ends in topics.items():
        limit = limits.get(topic, {}).get(MAX_BYTES)
        own = {MAX_BYTES: limit.value} if limit is not None and limit.value else {}
        actions.append(
            CreateTopic(
                topic=stranded_topic(topic),
                partitions=len(ends),
                replication_factor=context.forward.replication_factor,
                config=_KEPT | own,
                reason=f"records of {context.forward.target.alias} that were never replicated",
            )
        )
    _made(context, context.source, actions)


def empty_topics(
    context: OperationContext, ids: Mapping[str, str], counts: Mapping[str, int], *, deletes: bool = True
) -> list[str]:
    """Delete topics of the old cluster that still have these ids, and create them with the live ones' configs.

    Returns those without their old records. May be repeated; unless it `deletes`, it only creates what is missing.
    Raises `StepFailed` without ids, which brokers before 2.8 do not have.
    """
    if not ids:
        return []
    if not deletes:
        _wait_for_suspect(context, ids)
    now, _ = topic_ids(context.target, ids)
    if unknown := [topic for topic, one in ids.items() if not one]:
        raise StepFailed("topics without an id cannot be emptied safely (brokers before 2.8)", unknown)
    old = [topic for topic, one in ids.items() if now.get(topic) == one] if deletes else []
    name_here = Modes(context.forward).name_here
    live_names = {topic: name_here(topic) or topic for topic in ids}
    live, _ = topic_configs(context.source, live_names.values())
    if old:
        delete_by_id(context.forward.target, {topic: ids[topic] for topic in old}, context.check)
    until = time.monotonic() + _VISIBLE_S
    while set(old) & partition_counts(context.target.metadata()).keys():
        if not context.wait(until):
            raise StepFailed(f"deleted topics are still visible on {context.forward.target.alias}", old)
    actions = [
        CreateTopic(
            topic=topic,
            partitions=counts[topic],
            replication_factor=context.forward.replication_factor,
            config={
                name: one.value
                for name, one in live.get(live_names[topic], {}).items()
                if one.origin == Origin.TOPIC and one.value is not None
            },
            reason=f"emptied, since {context.forward.source.alias} is live",
        )
        for topic in ids
        if topic in old or topic not in now
    ]
    context.check()
    _made(context, context.target, actions)
    return [topic for topic, one in ids.items() if deletes or now.get(topic) != one]


def _wait_for_suspect(context: OperationContext, ids: Mapping[str, str]) -> None:
    """Wait until a process that owned the operation before, and may be suspended, cannot delete topics any more.

    Its request would arrive over a connection that was open before this process took the operation over.
    """
    if not context.follows_suspect:
        return
    seconds = idle_seconds(context.target)
    until = time.monotonic() + seconds
    said = False
    while True:
        now, _ = topic_ids(context.target, ids)
        if all(now.get(topic) != one for topic, one in ids.items()):
            return
        if not said:
            context.say(
                f"waiting {seconds:.0f} s (connections.max.idle.ms) until the process that ran this before cannot "
                f"delete {min(ids)} any more; --take-over does not wait, if that process is known to be dead"
            )
            said = True
        if not context.wait(until):
            return


def _made(context: OperationContext, admin: Admin, actions: Sequence[CreateTopic]) -> None:
    """Create what is missing, and wait until it is visible."""
    there = partition_counts(admin.metadata())
    wanted = [one for one in actions if one.topic not in there]
    for topic, (error, note) in (create(admin, wanted) if wanted else {}).items():
        if error is not None:
            raise StepFailed(f"creating {topic} on {admin.alias} failed: {error}")
        if note is not None:
            context.warnings.append(f"{topic}: {note}")
    until = time.monotonic() + _VISIBLE_S
    while not _visible(admin, [one.topic for one in wanted]):
        if not context.wait(until):
            raise StepFailed(f"new topics are not visible on {admin.alias} after {_VISIBLE_S:.0f} s")


def _visible(admin: Admin, topics: Iterable[str]) -> bool:
    return set(topics) <= partition_counts(admin.metadata()).keys()
