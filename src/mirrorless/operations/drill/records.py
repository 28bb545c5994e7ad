"""Reads a few committed records at many positions of a cluster, as fingerprints, with one plain consumer."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.consumers import reader, waiting
from mirrorless.clusters.topics import high_watermarks, log_starts
from mirrorless.operations.drill.positions import LogSlice
from mirrorless.verify.fingerprints import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from confluent_kafka import Consumer, Message

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster
    from mirrorless.verify.alignment import Print

_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.5
_AT_ONCE: Final = 1_000
_PARTITIONS_AT_ONCE: Final = 200
_FETCH_BYTES: Final = 64 << 10
_BUFFER_KB: Final = 8_192
_BUFFER_RECORDS: Final = 100
_WAIT_MS: Final = 20
_BACKOFF_MS: Final = 10
"""By the library's default, a partition whose queue is full waits a second, even for its next position."""


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A number of records of a partition, from an offset on."""

    place: TopicPartition
    first: int
    records: int


@dataclass(slots=True)
class _Reading:
    records: list[Print]
    trouble: str | None = None
    over: bool = False


def read_slices(cluster: Cluster, admin: Admin, wanted: Iterable[Wanted]) -> dict[Wanted, LogSlice]:
    """Read slices; a first offset before the log's beginning is raised to it.

    Why a partition could not be read is in its slices. Raises `ClusterError` if the cluster does not answer.
    """
    wanted = sorted(set(wanted))
    places = {one.place for one in wanted}
    starts, no_start = log_starts(admin, places)
    ends, no_end = high_watermarks(admin, places)
    missing = no_start | no_end
    found = {
        one: LogSlice(start=0, end=0, trouble=missing.get(one.place, "its offsets are unknown"))
        for one in wanted
        if one.place not in starts or one.place not in ends
    }
    left: dict[TopicPartition, list[Wanted]] = defaultdict(list)
    for one in wanted:
        if one in found:
            continue
        if one.first >= ends[one.place]:
            found[one] = LogSlice(start=starts[one.place], end=ends[one.place])
        else:
            left[one.place].append(one)
    if not left:
        return found
    consumer = reader(
        cluster,
        isolation_level="read_committed",
        client_rack="",  # an end is the leader's: a follower's may lag (KIP-392)
        auto_offset_reset="error",
        fetch_message_max_bytes=_FETCH_BYTES,
        queued_max_messages_kbytes=_BUFFER_KB,
        queued_min_messages=_BUFFER_RECORDS,
        fetch_queue_backoff_ms=_BACKOFF_MS,
        fetch_wait_max_ms=_WAIT_MS,  # the records exist
    )
    try:
        while left:
            # The consumer has one position for each partition.
            batch = [left[place].pop(0) for place in list(left)[:_PARTITIONS_AT_ONCE]]
            left = defaultdict(list, {place: some for place, some in left.items() if some})
            for one, reading in _read(consumer, batch, starts).items():
                start, end = starts[one.place], ends[one.place]
                found[one] = LogSlice(start=start, end=end, records=reading.records, trouble=reading.trouble)
    finally:
        consumer.close()
    return found


def _read(consumer: Consumer, batch: Sequence[Wanted], starts: dict[TopicPartition, int]) -> dict[Wanted, _Reading]:
    by_place = {one.place: one for one in batch}
    readings = {one: _Reading([]) for one in batch}
    consumer.assign(
        [ConfluentTopicPartition(*one.place, max(one.first, starts[one.place])) for one in batch if one.records]
    )
    left = {one for one in batch if one.records}
    until = time.monotonic() + _TIMEOUT_S
    while left and time.monotonic() < until:
        for message in waiting(consumer, _AT_ONCE, seconds=_POLL_S):
            topic, partition = message.topic(), message.partition()
            one = by_place.get((topic, partition)) if topic is not None and partition is not None else None
            if one is None or one not in left:
                continue
            _take(readings[one], message, one.records)
            if readings[one].over:
                left.discard(one)
                until = time.monotonic() + _TIMEOUT_S
    consumer.unassign()
    for one in left:
        readings[one].trouble = f"no answer for {_TIMEOUT_S:.0f} s"
    return readings


def _take(reading: _Reading, message: Message, records: int) -> None:
    error = message.error()
    if error is None:
        reading.records.append(fingerprint(message))
        reading.over = len(reading.records) >= records
    elif error.code() == KafkaError._PARTITION_EOF:
        reading.over = True
    elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # nothing is committed here
        reading.trouble, reading.over = f"{error.str()}{grant(error.code(), 'READ on the topic')}", True
