"""The internal topics of offsets: their clusters, names and configs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic

from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.replication_factors import broker_count, factor_advice, factor_of, usable_factor
from mirrorless.clusters.topics import ABOUT_CONFIGS, create_topics, partition_counts
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster, Flow

GROUP_COMMITS_TOPIC: Final = "__consumer_offsets"
"""Kafka's own, in which a cluster's group coordinators keep committed offsets."""
SEGMENT_BYTES: Final = 10 << 20
COMPACTED: Final = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
"""Configs of a topic that is read completely: the cleaner skips the active segment, and of records that are written
every second Kafka's default of 1 GB is many millions."""
_BY_DEFAULT: Final = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A compacted topic of one partition on `cluster`; `replication_factor` -1 is the broker's default.

    `factor_key` is the setting of the replication factor, `factor_is_default` says that it is not set.
    """

    cluster: Cluster
    name: str
    replication_factor: int
    factor_key: str = "replication.factor"
    factor_is_default: bool = False


def internal_topic(flow: Flow, cluster: Cluster, name: str, *, factor_key: str) -> InternalTopic:
    """Return an internal topic of the flow, with the replication factor of `factor_key`."""
    factor, is_default = factor_of(flow, factor_key)
    return InternalTopic(
        cluster=cluster, name=name, replication_factor=factor, factor_key=factor_key, factor_is_default=is_default
    )


def offset_syncs_topic(flow: Flow) -> InternalTopic:
    """Return the offset syncs topic; its name has the alias of the cluster that does not hold it (KIP-716)."""
    on_target = flow.offset_syncs_topic_location == "target"
    here, other = (flow.target, flow.source) if on_target else (flow.source, flow.target)
    name = policy_for(flow).offset_syncs_topic(other.alias)
    return internal_topic(flow, here, name, factor_key="offset-syncs.topic.replication.factor")


def checkpoints_topic(flow: Flow) -> InternalTopic:
    """Return the checkpoints topic, on the target."""
    name = policy_for(flow).checkpoints_topic(flow.progress_alias)
    return internal_topic(flow, flow.target, name, factor_key="checkpoints.topic.replication.factor")


def heartbeats_topic(flow: Flow) -> InternalTopic:
    """Return the heartbeats topic, on the target."""
    name = policy_for(flow).heartbeats_topic()
    return internal_topic(flow, flow.target, name, factor_key="heartbeats.topic.replication.factor")


def replicated_heartbeats(flow: Flow) -> str:
    """Name, on the target, of the heartbeats topic that is replicated from the source: `<source>.heartbeats`."""
    policy = policy_for(flow)
    return policy.format_remote_topic(flow.source.alias, policy.heartbeats_topic())


def ensure(admin: Admin, topic: InternalTopic) -> str | None:
    """Create the topic if it is missing; `admin` is its cluster's. Returns in one line why it failed, else None.

    It is described first: a user that may write to it need not be allowed to create it. A cluster that refuses a
    segment size, such as MSK Serverless, gets the topic without it. Raises `ClusterError`.
    """
    metadata = admin.metadata()
    if topic.name in partition_counts(metadata):
        return None
    factor = usable_factor(topic.replication_factor, is_default=topic.factor_is_default, brokers=broker_count(metadata))
    refusal = None
    for config in (COMPACTED, _BY_DEFAULT):
        new = NewTopic(topic.name, num_partitions=1, replication_factor=factor, config=config)
        refusal = create_topics(admin, [new])[topic.name]
        if refusal is None or refusal.code not in ABOUT_CONFIGS:
            break
    if refusal is None:
        return None
    if refusal.code == KafkaError.INVALID_REPLICATION_FACTOR:
        return f"{refusal.text}; {factor_advice(topic.factor_key, admin.alias)}"
    return f"{refusal.text}{grant(refusal.code, 'CREATE on it')}"
