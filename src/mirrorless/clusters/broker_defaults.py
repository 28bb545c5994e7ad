"""Reads the configs of brokers that topics without a value of their own take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError
from confluent_kafka.admin import ConfigResource, ResourceType

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from mirrorless.clusters.admin import Admin

_RETENTION_MS: Final = "log.retention.ms"
_LONGER_UNITS: Final = {"log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
NAMES: Final = (
    "auto.create.topics.enable",
    "compression.type",
    "log.cleanup.policy",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "message.max.bytes",
    "min.insync.replicas",
    "num.partitions",
    "unclean.leader.election.enable",
)
"""What matters for topics and their writers, beside the retention."""


def broker_defaults(admin: Admin) -> dict[str, str] | NotThere:
    """Return the configs of one broker, the retention in ms whatever its unit; raises `ClusterUnavailable`."""
    resource = ConfigResource(ResourceType.BROKER, str(min(admin.metadata().brokers)))
    future = admin.client.describe_configs([resource])[resource]
    refusal = admin.refusal(future)
    if refusal is not None:
        if refusal.code < 0:
            raise ClusterUnavailable(refusal.text, cluster=admin.alias)
        lacks_right = refusal.code == KafkaError.CLUSTER_AUTHORIZATION_FAILED
        right = "; grant DESCRIBE_CONFIGS on the cluster" if lacks_right else ""
        return NotThere(f"cluster {admin.alias}: {refusal.text}{right}", lacks_right=lacks_right)
    found = {name: entry.value for name, entry in admin.result(future).items() if entry.value is not None}
    wanted = {name: found[name] for name in NAMES if name in found}
    if (kept := retention(found)) is not None:
        wanted[_RETENTION_MS] = kept
    return wanted


def retention(found: dict[str, str]) -> str | None:
    """Return the retention in ms: the smallest unit that is set counts (`KafkaConfig.logRetentionTimeMillis`)."""
    if _RETENTION_MS in found:
        return found[_RETENTION_MS]
    return next((str(int(found[name]) * factor) for name, factor in _LONGER_UNITS.items() if name in found), None)
