"""Checks whether both addresses lead to different clusters, before anything is written.

Two clusters that report the same id are one cluster, or one of them was formatted with a copied id. Brokers and topics
show it: a broker that both ends have at the same address, or a topic with the same id (KIP-516), proves that it is one
cluster. Without proof, the operator has to confirm that the clusters differ, by a name for one of them
(`<alias>.mirrorless.cluster.id`). Everything that is derived from a cluster's id, such as producer ids, is then derived
from the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.topics import partition_counts, topic_ids
from mirrorless.errors import CopiedClusterIdError, SameClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster, Flow

_ASKED: Final = 50
"""Number of common topics that are compared; in one cluster each of them would have one id."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Cluster ids of a flow's two ends, from which other ids are derived."""

    source_id: str
    target_id: str


class Likeness(Enum):
    """What two ends that report the same id have in common."""

    SAME = "one cluster"
    ALIKE = "perhaps one cluster"
    DIFFERENT = "different brokers and topics"


@dataclass(frozen=True, slots=True)
class ShownCluster:
    """The visible data of a cluster: brokers as `(id, host:port)`, topics with their partition counts.

    `topic_ids` has the ids of topics that both ends have, if the brokers support ids.
    """

    brokers: frozenset[tuple[int, str]]
    topics: Mapping[str, int]
    topic_ids: Mapping[str, str]


def id_of(cluster: Cluster, reported: object) -> str:
    """The id that others are derived from: the operator's name for the cluster, or the reported id."""
    return cluster.cluster_id or str(reported)


def ends_of(
    flow: Flow, *, source: Admin, target: Admin, at_source: ClusterMetadata, at_target: ClusterMetadata
) -> Ends:
    """The ids of both ends; raises `SameClusterError` if nothing may be written between them.

    That is if they are one cluster, or if they report the same id and the operator has not confirmed that they differ.
    Requests are sent only if the ids are the same; raises `ClusterError` if they are not answered.
    """
    ends = Ends(id_of(flow.source, at_source.cluster_id), id_of(flow.target, at_target.cluster_id))
    if at_source.cluster_id == at_target.cluster_id:
        common = sorted(partition_counts(at_source).keys() & partition_counts(at_target).keys())[:_ASKED]
        alike = compare(_shown(source, at_source, common), _shown(target, at_target, common))
        if alike is Likeness.SAME or (alike is Likeness.ALIKE and ends.source_id == ends.target_id):
            raise SameClusterError(flow=flow.name, cluster_id=str(at_source.cluster_id))
    if ends.source_id == ends.target_id:
        raise CopiedClusterIdError(
            flow=flow.name,
            cluster_id=ends.source_id,
            aliases=(flow.source.alias, flow.target.alias),
            brokers=(_one_broker(at_source), _one_broker(at_target)),
        )
    return ends


def compare(source: ShownCluster, target: ShownCluster) -> Likeness:
    """Compare two ends that report the same id."""
    if source.brokers & target.brokers:
        return Likeness.SAME
    with_ids = [topic for topic in source.topic_ids if topic in target.topic_ids]
    if any(source.topic_ids[topic] == target.topic_ids[topic] for topic in with_ids):
        return Likeness.SAME
    if with_ids or not source.topics or dict(source.topics) != dict(target.topics):
        return Likeness.DIFFERENT
    # Brokers before 2.8 have no topic ids: the same topics, and brokers of the same ids at other addresses.
    same_ids = {node for node, _ in source.brokers} == {node for node, _ in target.brokers}
    return Likeness.ALIKE if same_ids else Likeness.DIFFERENT


def _shown(admin: Admin, metadata: ClusterMetadata, common: list[str]) -> ShownCluster:
    return ShownCluster(
        frozenset((one.id, f"{one.host}:{one.port}") for one in metadata.brokers.values()),
        partition_counts(metadata),
        topic_ids(admin, common)[0],
    )


def _one_broker(metadata: ClusterMetadata) -> str:
    return next((f"{one.host}:{one.port}" for _, one in sorted(metadata.brokers.items())), "no broker")
