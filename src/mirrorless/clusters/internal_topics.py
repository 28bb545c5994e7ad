"""The internal topics of offsets: where they are, what they are called, how they are made (reference, section 1.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka.admin import NewTopic

from mirrorless.clusters.failures import grant
from mirrorless.clusters.topics import ABOUT_CONFIGS, create_topics, partition_counts
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster, Flow

SEGMENT_BYTES: Final = 10 << 20
COMPACTED: Final = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
"""How a topic is made that is read whole: the cleaner leaves a segment alone that is still written to, and of records
that come every second Kafka's gigabyte is many millions."""
_BY_DEFAULT: Final = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A compacted topic of one partition on `cluster`; `replication_factor` -1 leaves it to the brokers."""

    cluster: Cluster
    name: str
    replication_factor: int


def offset_syncs_topic(flow: Flow) -> InternalTopic:
    """Return the topic of offset syncs; its name says which cluster it is not on (KIP-716)."""
    on_target = flow.offset_syncs_topic_location == "target"
    here, other = (flow.target, flow.source) if on_target else (flow.source, flow.target)
    return InternalTopic(
        cluster=here,
        name=policy_for(flow).offset_syncs_topic(other.alias),
        replication_factor=flow.offset_syncs_topic_replication_factor,
    )


def checkpoints_topic(flow: Flow) -> InternalTopic:
    """Return the topic of checkpoints, on the target."""
    return InternalTopic(
        cluster=flow.target,
        name=policy_for(flow).checkpoints_topic(flow.source.alias),
        replication_factor=flow.checkpoints_topic_replication_factor,
    )


def heartbeats_topic(flow: Flow) -> InternalTopic:
    """Return the topic of heartbeats, on the target."""
    return InternalTopic(
        cluster=flow.target,
        name=policy_for(flow).heartbeats_topic(),
        replication_factor=flow.heartbeats_topic_replication_factor,
    )


def replicated_heartbeats(flow: Flow) -> str:
    """Name, on the target, of the heartbeats that came over from the source: `<source>.heartbeats`."""
    policy = policy_for(flow)
    return policy.format_remote_topic(flow.source.alias, policy.heartbeats_topic())


def ensure(admin: Admin, topic: InternalTopic) -> str | None:
    """Create the topic if it is missing; `admin` is its cluster's. Says in one line why it could not be, else None.

    It is looked for first: who may write to it need not be allowed to create it. A cluster that takes no segment size,
    such as MSK Serverless, gets the topic without. Raises `ClusterError`.
    """
    if topic.name in partition_counts(admin.metadata()):
        return None
    refusal = None
    for config in (COMPACTED, _BY_DEFAULT):
        new = NewTopic(topic.name, num_partitions=1, replication_factor=topic.replication_factor, config=config)
        refusal = create_topics(admin, [new])[topic.name]
        if refusal is None or refusal.code not in ABOUT_CONFIGS:
            break
    return None if refusal is None else f"{refusal.text}{grant(refusal.code, 'CREATE on it')}"
