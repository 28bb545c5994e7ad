"""Reserves offsets at the end of logs, by markers, when flows with identical offsets take turns.

Applications move to a cluster whose partitions end where the old one's do. Producers that are late may still add
transaction markers to the old partition: they take the offsets that are reserved, which have no records on either side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.clusters.connection_errors import grant
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.producer_ids import reserving_id
from mirrorless.protocol import clients
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.leaders import TROUBLE, NotNow, by_leader
from mirrorless.protocol.markers import MARKERS_AT_ONCE, RIGHT, write_markers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.settings import Cluster

_TIMEOUT_MS: Final = 20_000
_AT_ONCE: Final = 20
"""Partitions of one leader, which handles the requests of a connection one after the other."""


def reserve(cluster: Cluster, up_to: Mapping[TopicPartition, int]) -> None:
    """Have each partition end at its offset or after it; may be repeated, a marker too many does no harm.

    Raises `ClusterError` where markers are refused, `ClusterUnavailable` where that may pass.
    """
    if not up_to:
        return
    net = clients.event_loop()
    client = clients.cluster_client(
        net,
        cluster=cluster.alias,
        cluster_id=cluster.cluster_id,
        config=for_kafka_python(cluster, role="producer"),
    )
    try:
        net.run(lambda: _reserve(client, up_to))
    except (kafka_errors.KafkaError, NotNow) as error:
        raise ClusterUnavailable(f"offsets cannot be reserved: {error}", cluster=cluster.alias) from error
    finally:
        client.close()
        net.close()


async def _reserve(client: ClusterClient, up_to: Mapping[TopicPartition, int]) -> None:
    await client.connect(timeout_ms=_TIMEOUT_MS, topics={topic for topic, _ in up_to})
    for node, places in by_leader(client, up_to).items():
        while missing := await _missing(client, node, places, up_to):
            some = list(missing)[:_AT_ONCE]
            asking = [
                write_markers(
                    client,
                    node,
                    place,
                    producer=reserving_id(client.cluster_id, *place),
                    epoch=0,
                    count=min(MARKERS_AT_ONCE, missing[place]),
                )
                for place in some
            ]
            for place, code in zip(some, await client.in_order(node, *asking), strict=True):
                _check(client, place, code)


async def _missing(
    client: ClusterClient, node: int, places: Iterable[TopicPartition], up_to: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return how many offsets logs lack, without those that lack none."""
    found: dict[TopicPartition, int] = {}
    for place, end in (await client.log_ends(node, places)).items():
        if end.error_code:
            raise error_for(end.error_code)
        if end.offset < up_to[place]:
            found[place] = up_to[place] - end.offset
    return found


def _check(client: ClusterClient, place: TopicPartition, code: int) -> None:
    if not code:
        return
    reason = f"offsets of {place[0]}-{place[1]} cannot be reserved: {error_name(code)}"
    if issubclass(error_for(code), TROUBLE):
        raise NotNow(reason)
    raise ClusterError(reason + grant(code, RIGHT), cluster=client.alias)
