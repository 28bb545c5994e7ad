"""Checks that topics that must keep the last record of each key are compacted, and nothing else.

Connect refuses to start on a topic that is not (`TopicAdmin.verifyTopicCleanupPolicyOnlyCompact`): with any other
`cleanup.policy` retention deletes its records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError

from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.msk import is_serverless

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster

CLEANUP_POLICY: Final = "cleanup.policy"
COMPACT: Final = "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """`wrong` has the `cleanup.policy` of each topic that is not `compact`; the configs of `hidden` are not visible."""

    wrong: dict[str, str]
    hidden: tuple[str, ...] = ()


def policies(admin: Admin, topics: Iterable[str]) -> Policies:
    """Check existing topics; raises `ClusterUnavailable`."""
    wanted = list(topics)
    configs, refused = topic_configs(admin, wanted) if wanted else ({}, {})
    found = {topic: one[CLEANUP_POLICY].value for topic, one in configs.items() if CLEANUP_POLICY in one}
    return Policies(
        wrong={topic: policy for topic, policy in found.items() if policy is not None and not is_compacted(policy)},
        hidden=tuple(topic for topic, refusal in refused.items() if refusal.code != KafkaError.UNKNOWN_TOPIC_OR_PART),
    )


def is_compacted(policy: str) -> bool:
    """Whether a `cleanup.policy` is `compact` and nothing else."""
    return {one.strip() for one in policy.split(",")} == {COMPACT}


def compacting(cluster: Cluster, topic: str) -> str:
    """Return the command that sets a topic's `cleanup.policy` to `compact`; on MSK Serverless there is none."""
    if is_serverless(cluster):
        return (
            f"another topic: MSK Serverless sets {CLEANUP_POLICY} only at creation; delete {topic} if it is not needed"
        )
    return (
        f"kafka-configs.sh --bootstrap-server {cluster.bootstrap_servers} --alter --entity-type topics "
        f"--entity-name {topic} --add-config {CLEANUP_POLICY}={COMPACT}"
    )
