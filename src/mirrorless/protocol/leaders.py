"""Who leads a partition, and which troubles pass by themselves."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mirrorless.errors import MirrorlessError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol.broker_errors import RETRIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.protocol.cluster_client import ClusterClient


class NotNow(MirrorlessError):
    """A partition has no leader, or its leader has not caught up with itself; that passes."""

    retriable = True


TROUBLE = (*RETRIABLE, kafka_errors.UnknownBrokerIdError, kafka_errors.KafkaProtocolError, NotNow)
"""What passes by itself, or when the leaders are known again; also an answer that makes no sense, of whichever request.

That ends its connection, and so the requests of all partitions whose turn it was.
"""


def leader_of(wire: ClusterClient, place: TopicPartition) -> int:
    """Broker id of a partition's leader; raises `NotNow` if there is none."""
    node = wire.leader(place)
    if node is None:
        raise NotNow(f"{place[0]}-{place[1]} has no leader at the moment")
    return node


def by_leader(wire: ClusterClient, places: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Group partitions by the broker id of their leader; raises `NotNow` if one has none."""
    led: dict[int, list[TopicPartition]] = defaultdict(list)
    for place in places:
        led[leader_of(wire, place)].append(place)
    return led
