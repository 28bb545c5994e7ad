"""Checks that the topics with a flow's state exist or can be created, with enough replicas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError

from mirrorless.clusters.compaction import compacting, is_compacted
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.internal_topics import SEGMENT_BYTES
from mirrorless.clusters.replication_factors import factor_of, reduced_factors, usable_factor
from mirrorless.clusters.side_by_side import each
from mirrorless.doctor.findings import Finding, Status
from mirrorless.doctor.probes import NotSaid
from mirrorless.doctor.replicas import MIN_INSYNC, too_few
from mirrorless.errors import ClusterError
from mirrorless.heartbeats import look
from mirrorless.rights import Function, On, Operation, Side, name_of, needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs
    from mirrorless.doctor.probes import Probes
    from mirrorless.settings import Cluster, Flow

_FACTORS: Final = {
    On.PROGRESS: "offset.storage.replication.factor",
    On.OFFSET_SYNCS: "offset-syncs.topic.replication.factor",
    On.CHECKPOINTS: "checkpoints.topic.replication.factor",
    On.HEARTBEATS: "heartbeats.topic.replication.factor",
    On.DEAD_LETTERS: "errors.deadletterqueue.topic.replication.factor",
    On.ACL_RECORD: "offset.storage.replication.factor",
    On.DELETE_NOTES: "offset.storage.replication.factor",
}
_REFUSED: Final = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_EXISTS: Final = KafkaError.TOPIC_ALREADY_EXISTS
_COMPACT: Final = "compact"
_READ_WHOLE: Final = (On.PROGRESS, On.OFFSET_SYNCS)
_LARGEST_SEGMENT_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class End:
    """One end of a flow: its visible topics, with their replicas, and the number of brokers."""

    side: Side
    alias: str
    replicas: Mapping[str, int]
    brokers: int

    @property
    def topics(self) -> frozenset[str]:
        """The visible topics."""
        return frozenset(self.replicas)


def internal_topics(
    flow: Flow, end: End, *, admin: Admin, probes: Probes, functions: Iterable[Function] | None = None
) -> list[Finding]:
    """Check each topic that stores the flow's state on this end; nothing is created."""
    wanted = dict.fromkeys(
        row.on
        for row in needed(flow, functions)
        if row.side is end.side and row.on in _FACTORS and row.operation is not Operation.DESCRIBE
    )
    names = {on: str(name_of(flow, on)) for on in wanted}
    there = [name for name in names.values() if name in end.topics]
    configs, _ = topic_configs(admin, there)
    cluster = flow.source if end.side is Side.SOURCE else flow.target
    return each(
        [
            partial(_there, end, on, name, configs.get(name), cluster)
            if name in end.replicas
            else partial(_creatable, flow, end, on, name, probes)
            for on, name in names.items()
        ]
    )


def _there(end: End, on: On, name: str, configs: Configs | None, cluster: Cluster) -> Finding:
    needed = configs[MIN_INSYNC].value if configs is not None and MIN_INSYNC in configs else None
    if needed is not None and 0 < end.replicas[name] < int(needed):
        fix = "add replicas (kafka-reassign-partitions)"
        return _too_few(end, on, name, replicas=end.replicas[name], needed=int(needed), fix=fix)
    if on is On.DEAD_LETTERS:
        return Finding(check=on.value, status=Status.OK, text=f"{name} exists", cluster=end.alias)
    if configs is None:
        text = f"{name} exists; DESCRIBE_CONFIGS is needed to check that its cleanup.policy is {_COMPACT}"
        return Finding(check=on.value, status=Status.NOT_CHECKED, text=text, cluster=end.alias)
    policy = configs["cleanup.policy"].value if "cleanup.policy" in configs else None
    if policy is not None and not is_compacted(policy):
        return Finding(
            check=on.value,
            status=Status.FAILED,
            text=f"{name} has cleanup.policy={policy}: retention would delete its records",
            cluster=end.alias,
            fix=compacting(cluster, name),
        )
    segment = configs["segment.bytes"].value if "segment.bytes" in configs else None
    if on in _READ_WHOLE and segment is not None and int(segment) > _LARGEST_SEGMENT_BYTES:
        return Finding(
            check=on.value,
            status=Status.WARNING,
            text=f"{name} is compacted only after {int(segment):,} bytes, and each start reads all of it",
            cluster=end.alias,
            fix=f"set segment.bytes={SEGMENT_BYTES} on {name}",
        )
    if on is On.HEARTBEATS and (foreign := _foreign(cluster, name)):
        return Finding(
            check=on.value,
            status=Status.FAILED,
            text=f"{name} is used for something else: {foreign} are not heartbeats",
            cluster=end.alias,
            fix=f"delete {name} if it is not needed, or set emit.heartbeats.enabled=false",
        )
    return Finding(check=on.value, status=Status.OK, text=f"{name} exists", cluster=end.alias)


def _foreign(cluster: Cluster, topic: str) -> str:
    """Return how many of the last records are not heartbeats; empty if none, or without READ, which is optional."""
    try:
        found = look(cluster, topic)
    except ClusterError:
        return ""
    return f"{found.foreign} of its last {found.records} records" if found.foreign else ""


def _creatable(flow: Flow, end: End, on: On, name: str, probes: Probes) -> Finding:
    key = _FACTORS[on]
    wanted, is_default = factor_of(flow, key)
    factor = usable_factor(wanted, is_default=is_default, brokers=end.brokers)
    if factor > end.brokers:
        text = f"{name} cannot be created: see replication factors"
        return Finding(check=on.value, status=Status.NOT_CHECKED, text=text, cluster=end.alias)
    config = {} if on is On.DEAD_LETTERS else {"cleanup.policy": _COMPACT}
    partitions = flow.offset_storage_partitions if on is On.PROGRESS else 1
    try:
        found = probes.creation(name, partitions=partitions, replication_factor=factor, config=config)
    except NotSaid as error:
        return Finding(check=on.value, status=Status.NOT_CHECKED, text=str(error), cluster=end.alias)
    code = found.error_code
    if code in _REFUSED:
        text = f"{name} does not exist, and CREATE on it is missing"
        return Finding(check=on.value, status=Status.NOT_CHECKED, text=text, cluster=end.alias)
    if code == _EXISTS:  # not visible, because a right is missing
        return Finding(check=on.value, status=Status.OK, text=f"{name} exists", cluster=end.alias)
    if code:
        fix = f"create {name} manually, or change {key}"
        text = f"{name} cannot be created: {found.reason}"
        return Finding(check=on.value, status=Status.FAILED, text=text, cluster=end.alias, fix=fix)
    needed = (found.configs or {}).get(MIN_INSYNC)
    replicas = found.replication_factor if factor == -1 else factor
    if needed is not None and replicas is not None and replicas < int(needed):
        fix = f"set {key} to {needed} or more"
        return _too_few(end, on, name, replicas=replicas, needed=int(needed), fix=fix)
    return Finding(check=on.value, status=Status.OK, text=f"{name} can be created", cluster=end.alias)


def _too_few(end: End, on: On, name: str, *, replicas: int, needed: int, fix: str) -> Finding:
    return Finding(
        check=on.value,
        status=Status.FAILED,
        text=f"old brokers (2.8) refuse every append to {too_few(name, replicas=replicas, needed=needed)}",
        cluster=end.alias,
        fix=f"{fix}; or lower {MIN_INSYNC} of {name}, or of {end.alias}'s brokers, to {replicas}",
    )


def replication_factors(flow: Flow, end: End, *, functions: Iterable[Function] | None = None) -> Finding:
    """Compare the replication factors of new topics with the brokers of this end; `-1` is the broker's default.

    A default above the number of brokers is reduced, as when topics are created.
    """
    rows = [row for row in needed(flow, functions) if row.side is end.side and row.operation is Operation.CREATE]
    keys: dict[str, None] = {}
    for on in dict.fromkeys(row.on for row in rows):
        if on is On.REMOTE_TOPICS:
            keys["replication.factor"] = None
        elif str(name_of(flow, on)) not in end.topics:
            keys[_FACTORS[on]] = None
    settings = {key: factor_of(flow, key) for key in keys}
    factors = {key: factor for key, (factor, _) in settings.items()}
    brokers = f"{end.brokers} broker{'' if end.brokers == 1 else 's'}"
    too_large = {
        key: factor
        for key, (factor, is_default) in settings.items()
        if usable_factor(factor, is_default=is_default, brokers=end.brokers) > end.brokers
    }
    if too_large:
        told = ", ".join(f"{key}={factor}" for key, factor in too_large.items())
        return Finding(
            check="replication factors",
            status=Status.FAILED,
            text=f"{told}; {end.alias} has {brokers}",
            cluster=end.alias,
            fix=f"set {', '.join(too_large)} to {end.brokers}, or to -1 for the default of {end.alias}",
        )
    if reduced := [(key, factor) for key, factor in factors.items() if factor > end.brokers]:
        return Finding(
            check="replication factors",
            status=Status.WARNING,
            text=reduced_factors(end.alias, end.brokers, reduced),
            cluster=end.alias,
        )
    told = ", ".join(f"{key}={factor}" for key, factor in factors.items()) or "no topic to create"
    return Finding(check="replication factors", status=Status.OK, text=f"{told}; {brokers}", cluster=end.alias)
