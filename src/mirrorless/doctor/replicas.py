"""Checks that topics have as many replicas as `min.insync.replicas` requires.

Old brokers (2.8) refuse every append to a topic with fewer replicas (NOT_ENOUGH_REPLICAS); later ones accept it, so
that the topic has less protection than its setting promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.doctor.findings import Finding, Status, some_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.metadata.expected_configs import TopicPair
    from mirrorless.settings import Flow

MIN_INSYNC: Final = "min.insync.replicas"


def too_few(name: str, *, replicas: int, needed: int) -> str:
    """Describe a topic that has, or would have, fewer replicas than the required in-sync replicas."""
    return f"{name} with replication factor {replicas} and {MIN_INSYNC}={needed}"


def enough_replicas(flow: Flow, pairs: Sequence[TopicPair], *, check: str) -> Finding:
    """Compare the replicas of each remote topic, as it is or would be created, with its `min.insync.replicas`."""
    alias = flow.target.alias
    small = [
        (one, replicas, needed)
        for one in pairs
        if (needed := one.limit(MIN_INSYNC)) is not None and (replicas := one.replicas or 0) and replicas < needed
    ]
    if not small:
        topics = f"{len(pairs)} topic{'' if len(pairs) == 1 else 's'}"
        text = f"{topics}: at least as many replicas as {MIN_INSYNC} requires"
        return Finding(check=check, status=Status.OK, text=text, cluster=alias)
    told = [too_few(one.remote, replicas=replicas, needed=needed) for one, replicas, needed in small]
    most = max(needed for _, _, needed in small)
    least = min(replicas for _, replicas, _ in small)
    raising: list[str] = []
    if any(not one.is_there for one, _, _ in small):
        raising.append(f"set replication.factor to {most} or more")
    if any(one.is_there for one, _, _ in small):
        raising.append("add replicas to the existing topics (kafka-reassign-partitions)")
    return Finding(
        check=check,
        status=Status.FAILED,
        text=f"old brokers (2.8) refuse every append to {some_of(told)}",
        cluster=alias,
        fix=f"{', and '.join(raising)}; or lower {MIN_INSYNC} of these topics, or of {alias}'s brokers, to {least}",
    )
