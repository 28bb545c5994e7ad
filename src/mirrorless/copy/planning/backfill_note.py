"""What a backfill of old records to a far target costs, and how to avoid it.

While a partition copies records that the target may already have forgotten the producer of, one batch of it is in
flight (`SendWindow`): so many batches a second as there are round trips.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.clusters.round_trips import FAR_S, shortest_round_trip_s
from mirrorless.clusters.topics import high_watermarks, log_starts
from mirrorless.copy.partition.send_window import PRODUCER_EXPIRY_MS
from mirrorless.copy.slot.producer_expiry import EXPIRY
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.source_notes import starts_at_latest
from mirrorless.protocol.requests import describe_broker, described_configs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Known
    from mirrorless.settings import Cluster, Flow

_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """The shortest round trip to a target, and how long its brokers remember a producer."""

    round_trip_s: float
    expiry_ms: int = PRODUCER_EXPIRY_MS

    @property
    def is_far(self) -> bool:
        """Whether one batch for each round trip is much less than a near target takes."""
        return self.round_trip_s >= FAR_S


def distance_of(cluster: Cluster, brokers: Iterable[int]) -> Distance:
    """Measure the distance of a target; raises `ClusterUnavailable`. Without a visible expiry it is Kafka's default."""
    try:
        client = admin_client(cluster)
        try:
            round_trip_s = shortest_round_trip_s(client.ask_any_broker)
            if round_trip_s < FAR_S:
                return Distance(round_trip_s=round_trip_s)
            answers = [client.ask_broker(node, describe_broker(node, [EXPIRY])) for node in list(brokers)[:1]]
        finally:
            client.close()
    except (kafka_errors.KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=cluster.alias) from error
    known = [int(value) for answer in answers for value in described_configs(answer).values()]
    return Distance(round_trip_s=round_trip_s, expiry_ms=min(known, default=PRODUCER_EXPIRY_MS))


def backfill_note(
    flow: Flow,
    distance: Distance,
    *,
    source: Admin,
    counts: Mapping[str, int],
    known: Mapping[TopicPartition, Known],
) -> str | None:
    """Return a line on old records that are to be copied to a far target; None if it is near, or there are none.

    `counts` are the partitions of the topics that the flow replicates. Raises `ClusterError`.
    """
    if not distance.is_far:
        return None
    places = [(topic, number) for topic, count in counts.items() for number in range(count)]
    left = _first_left(flow, source, places, known)
    young = _first_younger(source, left, int(time.time() * 1000) - distance.expiry_ms // 2)
    old = {place: young[place] - first for place, first in left.items() if young.get(place, first) > first}
    return None if not old else text_of(flow.target.alias, distance, records=sum(old.values()), partitions=len(old))


def text_of(alias: str, distance: Distance, *, records: int, partitions: int) -> str:
    """Return the line on so many offsets with old records."""
    remembered = distance.expiry_ms / 2 / _HOUR_MS
    return (
        f"{records:,} offsets of {partitions:,} partitions have records older than {remembered:g} h, half of {EXPIRY} "
        f"of {alias}: while these are copied, one batch of each partition is in flight, so that a round trip of "
        f"{distance.round_trip_s * 1000:.0f} ms allows {1 / distance.round_trip_s:.1f} batches/s for each partition; "
        f"run the engine beside {alias}, or raise {EXPIRY} of its brokers, for this backfill, to more than twice the "
        "age of the oldest record"
    )


def _first_left(
    flow: Flow, source: Admin, places: list[TopicPartition], known: Mapping[TopicPartition, Known]
) -> dict[TopicPartition, int]:
    """The next offset to copy of each partition, as far as it is known; without progress the start of its log."""
    progress = {place: one.progress.last_offset + 1 for place, one in known.items() if one.progress is not None}
    fresh = [place for place in places if place not in progress]
    if flow.start_timestamp_ms is not None or starts_at_latest(flow):
        fresh = []
    starts, _ = log_starts(source, fresh)
    return starts | {place: progress[place] for place in places if place in progress}


def _first_younger(source: Admin, left: Mapping[TopicPartition, int], since_ms: int) -> dict[TopicPartition, int]:
    """The first offset of each partition with a record of that time or later; its end if there is none."""
    wanted = {ConfluentTopicPartition(*place): OffsetSpec.for_timestamp(since_ms) for place in left}
    found: dict[TopicPartition, int] = {}
    for place, future in (source.client.list_offsets(wanted) if wanted else {}).items():
        try:
            found[place.topic, place.partition] = source.result(future).offset
        except ClusterError:
            continue  # without a leader at the moment
    ends, _ = high_watermarks(source, [place for place, offset in found.items() if offset < 0])
    return {place: ends.get(place, left[place]) if offset < 0 else offset for place, offset in found.items()}
