"""Replication factors of new topics: a default is reduced if a cluster has fewer brokers, a setting is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.settings.model import FLOW_KEYS, WORKER_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.settings import Flow


def factor_of(flow: Flow, key: str) -> tuple[int, bool]:
    """Return the replication factor that a setting asks for, and whether it is only the setting's default."""
    field = WORKER_KEYS[key] if key in WORKER_KEYS else FLOW_KEYS[key]
    return int(getattr(flow, field)), flow.is_default(field)


def usable_factor(factor: int, *, is_default: bool, brokers: int) -> int:
    """Return the replication factor to create a topic with on a cluster of so many brokers; -1 leaves it to them."""
    return min(factor, brokers) if is_default else factor


def broker_count(metadata: ClusterMetadata) -> int:
    """Return how many brokers the cluster has: those that are up, and those that replicas are assigned to."""
    assigned = (partition.replicas for topic in metadata.topics.values() for partition in topic.partitions.values())
    return len(set(metadata.brokers).union(*assigned))


def factor_advice(key: str, alias: str) -> str:
    """Return what to change where a cluster refuses a replication factor."""
    return f"set {key} to at most the number of brokers of {alias}, or to -1"


def reduced_factors(alias: str, brokers: int, factors: Iterable[tuple[str, int]]) -> str:
    """Return the warning that default factors, by setting, are reduced to the number of brokers of a cluster."""
    told = ", ".join(f"{key}={factor}" for key, factor in factors)
    counted = f"{brokers} broker{'' if brokers == 1 else 's'}"
    return (
        f"{alias} has {counted}, fewer than the default replication factors ({told}): new topics get {brokers}; "
        "set the factors to confirm this"
    )
