"""Which rights each function and job needs on source and target: the one table that `mirrorless doctor` goes by.

docs/rights.md shows it, and the tests grant exactly it. What each request is authorized by was read from Kafka's
`KafkaApis`, `ControllerApis` and `AclApis`; which right implies which from `AclEntry` (READ, WRITE, DELETE and ALTER
imply DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS). MSK's actions are from its developer guide, "Semantics of IAM
authorization policy actions and resources"; there nothing is implied, so each row names all that it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from mirrorless.clusters.internal_topics import (
    checkpoints_topic,
    heartbeats_topic,
    offset_syncs_topic,
    replicated_heartbeats,
)
from mirrorless.clusters.mirrormaker2 import group_of
from mirrorless.clusters.target_state import configs_topic
from mirrorless.metadata.acl_record import record_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mirrorless.settings import Flow


class Function(StrEnum):
    """What runs by itself, and may run as a user of its own."""

    TOPIC_DISCOVERY = "topic_discovery"
    CONFIG_SYNC = "config_sync"
    ACL_SYNC = "acl_sync"
    HEARTBEAT = "heartbeat"
    CHECKPOINT = "checkpoint"
    HEARTBEAT_MONITOR = "heartbeat_monitor"
    PARTITION_COPY = "partition_copy"
    VERIFY_COPY = "verify_copy"


class Side(StrEnum):
    """An end of a flow."""

    SOURCE = "source"
    TARGET = "target"


class Operation(StrEnum):
    """An operation of Kafka's ACLs."""

    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"


class On(StrEnum):
    """What a right is about, in the words of the table."""

    TOPICS = "replicated topics"
    REMOTE_TOPICS = "remote topics"
    PROGRESS = "progress topic"
    OFFSET_SYNCS = "offset syncs topic"
    CHECKPOINTS = "checkpoints topic"
    HEARTBEATS = "heartbeats topic"
    REMOTE_HEARTBEATS = "replicated heartbeats"
    DEAD_LETTERS = "dead letter topic"
    ACL_RECORD = "record of ACLs"
    TARGET_STATE = "target state"
    GROUPS = "consumer groups"
    MIRRORMAKER2 = "MirrorMaker 2's group"
    CLUSTER = "cluster"

    @property
    def kind(self) -> Literal["topic", "group", "cluster"]:
        """What kind of resource that is."""
        if self in (On.GROUPS, On.MIRRORMAKER2):
            return "group"
        return "cluster" if self is On.CLUSTER else "topic"


class When(StrEnum):
    """Settings without which a right is not needed."""

    SYNCS_ON_SOURCE = "unless offset-syncs.topic.location=target, or emit.offset-syncs.enabled=false"
    SYNCS_ON_TARGET = "with offset-syncs.topic.location=target"
    DEAD_LETTERS = "with errors.tolerance=all and errors.deadletterqueue.topic.name"
    PRUNE = "with mirrorless.acls.prune=true"
    GROUP_OFFSETS = "with sync.group.offsets.enabled=true"
    OLD_BROKERS = "brokers before 2.8"
    NO_GROUP_OFFSETS = "unless sync.group.offsets.enabled=true"
    CONFIGS = "unless sync.topic.configs.enabled=false"
    ACLS = "unless sync.topic.acls.enabled=false"
    RIVAL = "not required: without it one that runs is seen as late as it writes its progress"
    PAUSE = "not required: without it a pause is not seen"
    LATEST = "with auto.offset.reset=latest"
    EXPIRY = "not required: without it a day is assumed"
    BETTER = "not required: without it records are counted instead of bytes when partitions are dealt to slots"


@dataclass(frozen=True, slots=True)
class Row:
    """One right that one function needs; `why` says what for."""

    function: Function
    side: Side
    on: On
    operation: Operation
    why: str
    when: When | None = None

    @property
    def required(self) -> bool:
        """Whether something does not work without it, on brokers of today."""
        return self.when not in (When.OLD_BROKERS, When.RIVAL, When.PAUSE, When.EXPIRY, When.BETTER)

    @property
    def iam_actions(self) -> tuple[str, ...]:
        """The actions that stand for it on MSK with IAM, beside `CONNECT`, which everything needs."""
        return tuple(f"kafka-cluster:{action}" for action in _IAM[self.on.kind, self.operation])


CONNECT: Final = "kafka-cluster:Connect"
IMPLIED: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""What an authorizer of Kafka's takes for granted together with others."""
SWITCHES: Final[Mapping[Function, str]] = {
    Function.CONFIG_SYNC: "sync.topic.configs.enabled",
    Function.ACL_SYNC: "sync.topic.acls.enabled",
    Function.HEARTBEAT: "emit.heartbeats.enabled",
    Function.CHECKPOINT: "emit.checkpoints.enabled",
    Function.HEARTBEAT_MONITOR: "heartbeats.replication.enabled",
}
"""The settings with which a function, and its rights with it, can be done without."""
_IAM: Final = {
    ("topic", Operation.READ): ("DescribeTopic", "ReadData"),
    ("topic", Operation.WRITE): ("DescribeTopic", "WriteData"),
    ("topic", Operation.CREATE): ("CreateTopic",),
    ("topic", Operation.ALTER): ("DescribeTopic", "AlterTopic"),
    ("topic", Operation.DESCRIBE): ("DescribeTopic",),
    ("topic", Operation.DESCRIBE_CONFIGS): ("DescribeTopicDynamicConfiguration",),
    ("topic", Operation.ALTER_CONFIGS): ("DescribeTopicDynamicConfiguration", "AlterTopicDynamicConfiguration"),
    ("group", Operation.DESCRIBE): ("DescribeGroup",),
    ("group", Operation.READ): ("DescribeGroup", "AlterGroup"),
    ("cluster", Operation.DESCRIBE): ("DescribeCluster",),
    ("cluster", Operation.DESCRIBE_CONFIGS): ("DescribeClusterDynamicConfiguration",),
    ("cluster", Operation.ALTER): ("DescribeCluster", "AlterCluster"),
    ("cluster", Operation.IDEMPOTENT_WRITE): ("WriteDataIdempotently",),
}
_S, _T = Side.SOURCE, Side.TARGET
_DISCOVERY, _COPY, _CHECKPOINT = Function.TOPIC_DISCOVERY, Function.PARTITION_COPY, Function.CHECKPOINT
_CONFIGS, _ACLS, _VERIFY = Function.CONFIG_SYNC, Function.ACL_SYNC, Function.VERIFY_COPY
_SAME: Final = "know which topic was copied"

ROWS: Final = (
    Row(_DISCOVERY, _S, On.TOPICS, Operation.DESCRIBE, "find topics and partitions"),
    Row(_DISCOVERY, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "create remote topics with the same configs"),
    Row(_DISCOVERY, _S, On.OFFSET_SYNCS, Operation.DESCRIBE, "see whether it is there", When.SYNCS_ON_SOURCE),
    Row(_DISCOVERY, _S, On.OFFSET_SYNCS, Operation.CREATE, "create it if it is missing", When.SYNCS_ON_SOURCE),
    Row(_DISCOVERY, _T, On.REMOTE_TOPICS, Operation.DESCRIBE, "see what is missing"),
    Row(_DISCOVERY, _T, On.REMOTE_TOPICS, Operation.CREATE, "create them"),
    Row(_DISCOVERY, _T, On.REMOTE_TOPICS, Operation.ALTER, "add partitions"),
    Row(_DISCOVERY, _T, On.PROGRESS, Operation.DESCRIBE, "see whether it is there"),
    Row(_DISCOVERY, _T, On.PROGRESS, Operation.CREATE, "create it if it is missing"),
    Row(_DISCOVERY, _T, On.PROGRESS, Operation.READ, _SAME),
    Row(_DISCOVERY, _T, On.PROGRESS, Operation.WRITE, "note where partitions begin", When.LATEST),
    Row(_DISCOVERY, _T, On.OFFSET_SYNCS, Operation.DESCRIBE, "see whether it is there", When.SYNCS_ON_TARGET),
    Row(_DISCOVERY, _T, On.OFFSET_SYNCS, Operation.CREATE, "create it if it is missing", When.SYNCS_ON_TARGET),
    Row(_DISCOVERY, _T, On.DEAD_LETTERS, Operation.DESCRIBE, "see whether it is there", When.DEAD_LETTERS),
    Row(_DISCOVERY, _T, On.DEAD_LETTERS, Operation.CREATE, "create it if it is missing", When.DEAD_LETTERS),
    Row(_CONFIGS, _S, On.TOPICS, Operation.DESCRIBE, "find topics"),
    Row(_CONFIGS, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "read their configs"),
    Row(_CONFIGS, _T, On.REMOTE_TOPICS, Operation.DESCRIBE, "find remote topics"),
    Row(_CONFIGS, _T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "compare their configs"),
    Row(_CONFIGS, _T, On.REMOTE_TOPICS, Operation.ALTER_CONFIGS, "set and delete configs"),
    Row(_CONFIGS, _T, On.PROGRESS, Operation.READ, _SAME),
    Row(_ACLS, _S, On.TOPICS, Operation.DESCRIBE, "find topics"),
    Row(_ACLS, _S, On.CLUSTER, Operation.DESCRIBE, "read ACLs"),
    Row(_ACLS, _T, On.CLUSTER, Operation.DESCRIBE, "compare ACLs"),
    Row(_ACLS, _T, On.CLUSTER, Operation.ALTER, "add ACLs"),
    Row(_ACLS, _T, On.PROGRESS, Operation.READ, _SAME),
    Row(_ACLS, _T, On.ACL_RECORD, Operation.CREATE, "create it if it is missing", When.PRUNE),
    Row(_ACLS, _T, On.ACL_RECORD, Operation.READ, "know which ACLs the flow added", When.PRUNE),
    Row(_ACLS, _T, On.ACL_RECORD, Operation.WRITE, "note which ACLs the flow added", When.PRUNE),
    Row(Function.HEARTBEAT, _T, On.HEARTBEATS, Operation.CREATE, "create it if it is missing"),
    Row(Function.HEARTBEAT, _T, On.HEARTBEATS, Operation.WRITE, "send heartbeats"),
    Row(_CHECKPOINT, _S, On.GROUPS, Operation.DESCRIBE, "find groups, read their offsets"),
    Row(_CHECKPOINT, _S, On.TOPICS, Operation.READ, "read offsets, count records between two offset syncs"),
    Row(_CHECKPOINT, _S, On.OFFSET_SYNCS, Operation.READ, "translate offsets", When.SYNCS_ON_SOURCE),
    Row(_CHECKPOINT, _T, On.OFFSET_SYNCS, Operation.READ, "translate offsets", When.SYNCS_ON_TARGET),
    Row(_CHECKPOINT, _T, On.REMOTE_TOPICS, Operation.DESCRIBE, "know where they end"),
    Row(_CHECKPOINT, _T, On.PROGRESS, Operation.READ, "know how far the copy is"),
    Row(_CHECKPOINT, _T, On.CHECKPOINTS, Operation.CREATE, "create it if it is missing"),
    Row(_CHECKPOINT, _T, On.CHECKPOINTS, Operation.READ, "know what was written before"),
    Row(_CHECKPOINT, _T, On.CHECKPOINTS, Operation.WRITE, "write checkpoints"),
    Row(_CHECKPOINT, _T, On.GROUPS, Operation.DESCRIBE, "know who is active, and where", When.GROUP_OFFSETS),
    Row(_CHECKPOINT, _T, On.GROUPS, Operation.READ, "commit offsets", When.GROUP_OFFSETS),
    Row(_CHECKPOINT, _T, On.REMOTE_TOPICS, Operation.READ, "commit offsets", When.GROUP_OFFSETS),
    Row(Function.HEARTBEAT_MONITOR, _T, On.REMOTE_HEARTBEATS, Operation.READ, "measure how late heartbeats are"),
    Row(_COPY, _S, On.TOPICS, Operation.READ, "fetch batches"),
    Row(_COPY, _S, On.OFFSET_SYNCS, Operation.WRITE, "note which offset went where", When.SYNCS_ON_SOURCE),
    Row(_COPY, _S, On.CLUSTER, Operation.DESCRIBE, "know how large partitions are", When.BETTER),
    Row(_COPY, _T, On.REMOTE_TOPICS, Operation.READ, "ask where the copy is (DescribeProducers)"),
    Row(_COPY, _T, On.REMOTE_TOPICS, Operation.WRITE, "append batches"),
    Row(_COPY, _T, On.PROGRESS, Operation.READ, "go on where the copy is"),
    Row(_COPY, _T, On.PROGRESS, Operation.WRITE, "write progress"),
    Row(_COPY, _T, On.OFFSET_SYNCS, Operation.WRITE, "note which offset went where", When.SYNCS_ON_TARGET),
    Row(_COPY, _T, On.DEAD_LETTERS, Operation.WRITE, "say what was left out", When.DEAD_LETTERS),
    Row(_COPY, _T, On.TARGET_STATE, Operation.READ, "see whether the flow is paused", When.PAUSE),
    Row(_COPY, _T, On.MIRRORMAKER2, Operation.DESCRIBE, "see whether one runs before it is taken over", When.RIVAL),
    Row(_COPY, _T, On.CLUSTER, Operation.DESCRIBE_CONFIGS, "read producer.id.expiration.ms", When.EXPIRY),
    Row(_COPY, _T, On.CLUSTER, Operation.IDEMPOTENT_WRITE, "append batches", When.OLD_BROKERS),
    Row(_VERIFY, _S, On.TOPICS, Operation.READ, "compare records"),
    Row(_VERIFY, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "know which are compacted, compare configs"),
    Row(_VERIFY, _S, On.OFFSET_SYNCS, Operation.READ, "pair offsets", When.SYNCS_ON_SOURCE),
    Row(_VERIFY, _S, On.GROUPS, Operation.DESCRIBE, "find groups, read their offsets"),
    Row(_VERIFY, _S, On.CLUSTER, Operation.DESCRIBE, "compare ACLs", When.ACLS),
    Row(_VERIFY, _T, On.REMOTE_TOPICS, Operation.READ, "compare records"),
    Row(_VERIFY, _T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "compare configs", When.CONFIGS),
    Row(_VERIFY, _T, On.PROGRESS, Operation.READ, "know how far the copy is"),
    Row(_VERIFY, _T, On.OFFSET_SYNCS, Operation.READ, "pair offsets", When.SYNCS_ON_TARGET),
    Row(_VERIFY, _T, On.CHECKPOINTS, Operation.READ, "compare offsets of groups", When.NO_GROUP_OFFSETS),
    Row(_VERIFY, _T, On.GROUPS, Operation.DESCRIBE, "compare offsets of groups", When.GROUP_OFFSETS),
    Row(_VERIFY, _T, On.CLUSTER, Operation.DESCRIBE, "compare ACLs", When.ACLS),
    Row(_VERIFY, _T, On.ACL_RECORD, Operation.READ, "know which ACLs the flow added", When.PRUNE),
)


def functions_of(flow: Flow) -> frozenset[Function]:
    """Which functions the settings of a flow ask for; `verify_copy`, which nothing waits for, is not among them."""
    wanted = {
        Function.CONFIG_SYNC: flow.sync_topic_configs_enabled,
        Function.ACL_SYNC: flow.sync_topic_acls_enabled,
        Function.HEARTBEAT: flow.emit_heartbeats_enabled,
        Function.CHECKPOINT: flow.writes_checkpoints,
        Function.HEARTBEAT_MONITOR: flow.heartbeats_replication_enabled,
        Function.VERIFY_COPY: False,
    }
    return frozenset(function for function in Function if wanted.get(function, True))


def needed(flow: Flow, functions: Iterable[Function] | None = None) -> list[Row]:
    """Return the rows that a flow needs, for all of its functions or for some, in the order of the table."""
    chosen = functions_of(flow) if functions is None else frozenset(functions)
    return [row for row in ROWS if row.function in chosen and (row.when is None or _HOLDS[row.when](flow))]


def of_the_way_back(opposite: Flow) -> list[Row]:
    """Return what `checkpoint` needs besides, where the flow `opposite` is there too: rows of that one, on its sides.

    A group that failed over returns by what that flow's checkpoints are made of, and by which topics are compacted; and
    what these checkpoints say tells which groups have not failed over at all.
    """
    made_of = {On.TOPICS, On.REMOTE_TOPICS, On.OFFSET_SYNCS, On.PROGRESS}
    rows = [row for row in needed(opposite, [_CHECKPOINT]) if row.on in made_of and row.when is not When.GROUP_OFFSETS]
    rows.append(Row(_CHECKPOINT, _T, On.CHECKPOINTS, Operation.READ, "know who has not failed over"))
    return [*rows, Row(_CHECKPOINT, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "know which are compacted")]


def without_implied(rows: Iterable[Row]) -> list[Row]:
    """Leave out required rows whose right comes with that of another row, on the same resource."""
    kept = list(rows)
    there = {(row.side, row.on, row.operation) for row in kept if row.required}
    return [
        row for row in kept if not any((row.side, row.on, other) in there for other in IMPLIED.get(row.operation, ()))
    ]


def name_of(flow: Flow, on: On) -> str | None:
    """Return the name of the one topic or group that a right is about, None for what are many, and for the cluster."""
    match on:
        case On.PROGRESS:
            return flow.offset_storage_topic
        case On.OFFSET_SYNCS:
            return offset_syncs_topic(flow).name
        case On.CHECKPOINTS:
            return checkpoints_topic(flow).name
        case On.HEARTBEATS:
            return heartbeats_topic(flow).name
        case On.REMOTE_HEARTBEATS:
            return replicated_heartbeats(flow)
        case On.DEAD_LETTERS:
            return flow.dead_letter_topic or None
        case On.ACL_RECORD:
            return record_topic(flow)
        case On.TARGET_STATE:
            return configs_topic(flow).name
        case On.MIRRORMAKER2:
            return group_of(flow)
    return None


def _syncs_at(flow: Flow, location: str) -> bool:
    return flow.emit_offset_syncs_enabled and flow.offset_syncs_topic_location == location


_HOLDS: Final[Mapping[When, Callable[[Flow], bool]]] = {
    When.SYNCS_ON_SOURCE: lambda flow: _syncs_at(flow, "source"),
    When.SYNCS_ON_TARGET: lambda flow: _syncs_at(flow, "target"),
    When.DEAD_LETTERS: lambda flow: bool(flow.dead_letter_topic) and flow.errors_tolerance == "all",
    When.PRUNE: lambda flow: flow.acls_prune,
    When.GROUP_OFFSETS: lambda flow: flow.sync_group_offsets_enabled,
    When.NO_GROUP_OFFSETS: lambda flow: not flow.sync_group_offsets_enabled,
    When.CONFIGS: lambda flow: flow.sync_topic_configs_enabled,
    When.ACLS: lambda flow: flow.sync_topic_acls_enabled,
    When.OLD_BROKERS: lambda _: True,
    When.RIVAL: lambda _: True,
    When.PAUSE: lambda _: True,
    When.LATEST: lambda flow: flow.auto_offset_reset == "latest" and flow.start_timestamp_ms is None,
    When.EXPIRY: lambda _: True,
    When.BETTER: lambda _: True,
}
