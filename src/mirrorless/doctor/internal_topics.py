"""Checks that the topics are there that a flow keeps its state in, or can be created, with as many replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError

from mirrorless.clusters.compaction import compacting, is_compacted
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.internal_topics import SEGMENT_BYTES
from mirrorless.doctor.findings import Finding, Status
from mirrorless.doctor.probes import NotSaid
from mirrorless.errors import ClusterError
from mirrorless.heartbeats import look
from mirrorless.rights import Function, On, Operation, Side, name_of, needed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs
    from mirrorless.doctor.probes import Probes
    from mirrorless.settings import Cluster, Flow

_FACTORS: Final = {
    On.PROGRESS: ("offset.storage.replication.factor", "offset_storage_replication_factor"),
    On.OFFSET_SYNCS: ("offset-syncs.topic.replication.factor", "offset_syncs_topic_replication_factor"),
    On.CHECKPOINTS: ("checkpoints.topic.replication.factor", "checkpoints_topic_replication_factor"),
    On.HEARTBEATS: ("heartbeats.topic.replication.factor", "heartbeats_topic_replication_factor"),
    On.DEAD_LETTERS: ("errors.deadletterqueue.topic.replication.factor", "dead_letter_replication_factor"),
    On.ACL_RECORD: ("offset.storage.replication.factor", "offset_storage_replication_factor"),
}
_REFUSED: Final = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_EXISTS: Final = KafkaError.TOPIC_ALREADY_EXISTS
_COMPACT: Final = "compact"
_READ_WHOLE: Final = (On.PROGRESS, On.OFFSET_SYNCS)
_LARGEST_SEGMENT_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class End:
    """One end of a flow as it was found: topics that can be seen, and how many brokers there are."""

    side: Side
    alias: str
    topics: frozenset[str]
    brokers: int


def internal_topics(
    flow: Flow, end: End, *, admin: Admin, probes: Probes, functions: Iterable[Function] | None = None
) -> list[Finding]:
    """Check each topic that the flow keeps on this end; nothing is created."""
    wanted = dict.fromkeys(
        row.on
        for row in needed(flow, functions)
        if row.side is end.side and row.on in _FACTORS and row.operation is not Operation.DESCRIBE
    )
    names = {on: str(name_of(flow, on)) for on in wanted}
    there = [name for name in names.values() if name in end.topics]
    configs, _ = topic_configs(admin, there)
    cluster = flow.source if end.side is Side.SOURCE else flow.target
    return [
        _there(end, on, name, configs.get(name), cluster)
        if name in end.topics
        else _creatable(flow, end, on, name, probes)
        for on, name in names.items()
    ]


def _there(end: End, on: On, name: str, configs: Configs | None, cluster: Cluster) -> Finding:
    if on is On.DEAD_LETTERS:
        return Finding(check=on.value, status=Status.OK, text=f"{name} is there", cluster=end.alias)
    if configs is None:
        text = f"{name} is there; whether its cleanup.policy is {_COMPACT} takes DESCRIBE_CONFIGS on it"
        return Finding(check=on.value, status=Status.NOT_CHECKED, text=text, cluster=end.alias)
    policy = configs["cleanup.policy"].value if "cleanup.policy" in configs else None
    if policy is not None and not is_compacted(policy):
        return Finding(
            check=on.value,
            status=Status.FAILED,
            text=f"{name} has cleanup.policy={policy}: what is kept there would be deleted with time",
            cluster=end.alias,
            fix=compacting(cluster, name),
        )
    segment = configs["segment.bytes"].value if "segment.bytes" in configs else None
    if on in _READ_WHOLE and segment is not None and int(segment) > _LARGEST_SEGMENT_BYTES:
        return Finding(
            check=on.value,
            status=Status.WARNING,
            text=f"{name} is compacted after {int(segment):,} bytes only, and whoever starts reads all of it",
            cluster=end.alias,
            fix=f"set segment.bytes={SEGMENT_BYTES} on {name}",
        )
    if on is On.HEARTBEATS and (foreign := _foreign(cluster, name)):
        return Finding(
            check=on.value,
            status=Status.FAILED,
            text=f"{name} is in use for something else: {foreign} are no heartbeats of MirrorMaker",
            cluster=end.alias,
            fix=f"delete {name} if it is not needed, or set emit.heartbeats.enabled=false",
        )
    return Finding(check=on.value, status=Status.OK, text=f"{name} is there", cluster=end.alias)


def _foreign(cluster: Cluster, topic: str) -> str:
    """Say how many of the last records are none; empty where all are, or READ is missing, which nothing else needs."""
    try:
        found = look(cluster, topic)
    except ClusterError:
        return ""
    return f"{found.foreign} of its last {found.records} records" if found.foreign else ""


def _creatable(flow: Flow, end: End, on: On, name: str, probes: Probes) -> Finding:
    key, factor = _factor(flow, on)
    if factor > end.brokers:
        text = f"{name} cannot be created: see replication factors"
        return Finding(check=on.value, status=Status.NOT_CHECKED, text=text, cluster=end.alias)
    config = {} if on is On.DEAD_LETTERS else {"cleanup.policy": _COMPACT}
    partitions = flow.offset_storage_partitions if on is On.PROGRESS else 1
    try:
        code, reason, _ = probes.creation(name, partitions=partitions, replication_factor=factor, config=config)
    except NotSaid as error:
        return Finding(check=on.value, status=Status.NOT_CHECKED, text=str(error), cluster=end.alias)
    if code in _REFUSED:
        text = f"{name} is not there, and CREATE on it is missing"
        return Finding(check=on.value, status=Status.NOT_CHECKED, text=text, cluster=end.alias)
    if code == _EXISTS:  # it cannot be seen, because a right is missing
        return Finding(check=on.value, status=Status.OK, text=f"{name} is there", cluster=end.alias)
    if code:
        fix = f"create {name} by hand, or change {key}"
        text = f"{name} cannot be created: {reason}"
        return Finding(check=on.value, status=Status.FAILED, text=text, cluster=end.alias, fix=fix)
    return Finding(check=on.value, status=Status.OK, text=f"{name} can be created", cluster=end.alias)


def replication_factors(flow: Flow, end: End, *, functions: Iterable[Function] | None = None) -> Finding:
    """Compare what new topics are to have in replicas with the brokers of this end; `-1` leaves it to them."""
    rows = [row for row in needed(flow, functions) if row.side is end.side and row.operation is Operation.CREATE]
    factors: dict[str, int] = {}
    for on in dict.fromkeys(row.on for row in rows):
        if on is On.REMOTE_TOPICS:
            factors["replication.factor"] = flow.replication_factor
        elif str(name_of(flow, on)) not in end.topics:
            factors |= [_factor(flow, on)]
    brokers = f"{end.brokers} broker{'' if end.brokers == 1 else 's'}"
    too_large = {key: factor for key, factor in factors.items() if factor > end.brokers}
    if too_large:
        told = ", ".join(f"{key}={factor}" for key, factor in too_large.items())
        return Finding(
            check="replication factors",
            status=Status.FAILED,
            text=f"{told}; {end.alias} has {brokers}",
            cluster=end.alias,
            fix=f"set {', '.join(too_large)} to {end.brokers}, or to -1 for what {end.alias} has by default",
        )
    told = ", ".join(f"{key}={factor}" for key, factor in factors.items()) or "no topic is to be created"
    return Finding(check="replication factors", status=Status.OK, text=f"{told}; {brokers}", cluster=end.alias)


def _factor(flow: Flow, on: On) -> tuple[str, int]:
    key, field = _FACTORS[on]
    return key, int(getattr(flow, field))
