"""The words of the table of rights: functions, sides, resources, operations, and when a right is needed.

Which right implies which is from Kafka's `AclEntry`: READ, WRITE, DELETE and ALTER imply DESCRIBE, ALTER_CONFIGS
implies DESCRIBE_CONFIGS. MSK's actions are from its developer guide, "Semantics of IAM authorization policy actions and
resources"; there nothing is implied, so each row names all required actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


class Function(StrEnum):
    """What runs separately, and may run as a separate user."""

    TOPIC_DISCOVERY = "topic_discovery"
    CONFIG_SYNC = "config_sync"
    ACL_SYNC = "acl_sync"
    HEARTBEAT = "heartbeat"
    CHECKPOINT = "checkpoint"
    HEARTBEAT_MONITOR = "heartbeat_monitor"
    JOB_SUPERVISOR = "job_supervisor"
    COPY = "copy"
    PARTITION_COPY = "partition_copy"
    VERIFY_COPY = "verify_copy"
    DRILL = "drill"


class Side(StrEnum):
    """An end of a flow."""

    SOURCE = "source"
    TARGET = "target"


class Operation(StrEnum):
    """An operation of Kafka's ACLs."""

    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"


class On(StrEnum):
    """The resource of a right, in the words of the table."""

    TOPICS = "replicated topics"
    REMOTE_TOPICS = "remote topics"
    PROGRESS = "progress topic"
    OFFSET_SYNCS = "offset syncs topic"
    CHECKPOINTS = "checkpoints topic"
    HEARTBEATS = "heartbeats topic"
    REMOTE_HEARTBEATS = "replicated heartbeats"
    DEAD_LETTERS = "dead letter topic"
    ACL_RECORD = "record of ACLs"
    DELETE_NOTES = "notes on deleted topics"
    TARGET_STATE = "target state"
    OPERATIONS = "operations topic"
    GROUPS = "consumer groups"
    GROUP_COMMITS = "commits of groups"
    START_GROUP = "start group"
    MIRRORMAKER2 = "MirrorMaker 2's group"
    CLUSTER = "cluster"

    @property
    def kind(self) -> Literal["topic", "group", "cluster"]:
        """The Kafka resource type."""
        if self in (On.GROUPS, On.START_GROUP, On.MIRRORMAKER2):
            return "group"
        return "cluster" if self is On.CLUSTER else "topic"


class When(StrEnum):
    """Settings or broker versions with which a right is needed."""

    SYNCS_ON_SOURCE = "unless offset-syncs.topic.location=target, or emit.offset-syncs.enabled=false"
    SYNCS_ON_TARGET = "with offset-syncs.topic.location=target"
    DEAD_LETTERS = "with errors.tolerance=all and errors.deadletterqueue.topic.name"
    PRUNE = "with mirrorless.acls.prune=true"
    DELETES = "with mirrorless.sync.topic.deletes=true"
    GROUP_OFFSETS = "with sync.group.offsets.enabled=true"
    OLD_BROKERS = "brokers before 2.8"
    NO_GROUP_OFFSETS = "unless sync.group.offsets.enabled=true"
    CONFIGS = "unless sync.topic.configs.enabled=false"
    AUTO = "with mirrorless.engine=auto"
    ACLS = "unless sync.topic.acls.enabled=false"
    RIVAL = "optional: without it, a running MirrorMaker 2 is detected only when it writes progress"
    PAUSE = "optional: without it, a pause is not detected"
    LATEST = "with auto.offset.reset=latest"
    START_GROUP = "with mirrorless.start.group"
    OPERATIONS = "after a first switchover"
    TURNS = "with mirrorless.both.directions=turns"
    SHARED = "with mirrorless.both.directions=skip"
    IDENTICAL = "with mirrorless.offsets=identical"
    EXPIRY = "optional: without it, one day is assumed"
    OLD_RECORDS = "optional: without it, a limit on the age of records is lifted by config_sync only"
    LEFT_OUT = "optional, with errors.tolerance=all: without it, no record is left out because of its size"
    RACK = "optional, with client.rack: without it, the topics' leaders are read"
    DOUBLE = "optional: without it, heartbeats are emitted twice while `copy` emits them"
    AT_ONCE = "optional, with sync.group.offsets.enabled=true: without it, groups are asked each second"
    COMPARED = "optional: without it, they are not compared"
    BETTER = "optional: without it, partitions are assigned to slots by records instead of bytes"


_OPTIONAL: Final = frozenset(
    {
        When.OLD_BROKERS,
        When.RIVAL,
        When.PAUSE,
        When.EXPIRY,
        When.OLD_RECORDS,
        When.LEFT_OUT,
        When.RACK,
        When.DOUBLE,
        When.AT_ONCE,
        When.BETTER,
        When.COMPARED,
    }
)


@dataclass(frozen=True, slots=True)
class Row:
    """One right that one function needs; `why` is its purpose.

    `part` is another function without which it is not needed: the one whose work this function does, or that does its.
    `kind` is one of `metadata.kinds`: needed if the flow syncs it.
    """

    function: Function
    side: Side
    on: On
    operation: Operation
    why: str
    when: When | None = None
    part: Function | None = None
    kind: str | None = None

    @property
    def required(self) -> bool:
        """Whether a function does not work without it, on current brokers."""
        return self.when not in _OPTIONAL

    @property
    def condition(self) -> str:
        """With which settings or brokers it is needed; empty if always."""
        parts = [] if self.when is None else [self.when.value]
        if self.kind is not None:
            parts.append(f"with {self.kind} in mirrorless.sync.kinds")
        if self.part is not None:
            parts.append(
                "unless mirrorless.engine=spark"
                if self.part is Function.COPY
                else f"unless {SWITCHES[self.part]}=false"
            )
        return "; ".join(parts)

    @property
    def iam_actions(self) -> tuple[str, ...]:
        """The corresponding actions on MSK with IAM, beside `CONNECT`, which everything needs."""
        return tuple(f"kafka-cluster:{action}" for action in _IAM[self.on.kind, self.operation])


CONNECT: Final = "kafka-cluster:Connect"
IMPLIED: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Operations that an authorizer of Kafka implies by another operation."""
SWITCHES: Final[Mapping[Function, str]] = {
    Function.CONFIG_SYNC: "sync.topic.configs.enabled",
    Function.ACL_SYNC: "sync.topic.acls.enabled",
    Function.HEARTBEAT: "emit.heartbeats.enabled",
    Function.CHECKPOINT: "emit.checkpoints.enabled",
    Function.HEARTBEAT_MONITOR: "heartbeats.replication.enabled",
}
"""The settings that disable a function, so that its rights are not needed."""
_IAM: Final = {
    ("topic", Operation.READ): ("DescribeTopic", "ReadData"),
    ("topic", Operation.WRITE): ("DescribeTopic", "WriteData"),
    ("topic", Operation.CREATE): ("CreateTopic",),
    ("topic", Operation.DELETE): ("DescribeTopic", "DeleteTopic"),
    ("topic", Operation.ALTER): ("DescribeTopic", "AlterTopic"),
    ("topic", Operation.DESCRIBE): ("DescribeTopic",),
    ("topic", Operation.DESCRIBE_CONFIGS): ("DescribeTopicDynamicConfiguration",),
    ("topic", Operation.ALTER_CONFIGS): ("DescribeTopicDynamicConfiguration", "AlterTopicDynamicConfiguration"),
    ("group", Operation.DESCRIBE): ("DescribeGroup",),
    ("group", Operation.READ): ("DescribeGroup", "AlterGroup"),
    ("cluster", Operation.DESCRIBE): ("DescribeCluster",),
    ("cluster", Operation.DESCRIBE_CONFIGS): ("DescribeClusterDynamicConfiguration",),
    ("cluster", Operation.ALTER_CONFIGS): (
        "DescribeClusterDynamicConfiguration",
        "AlterClusterDynamicConfiguration",
    ),
    ("cluster", Operation.ALTER): ("DescribeCluster", "AlterCluster"),
    ("cluster", Operation.IDEMPOTENT_WRITE): ("WriteDataIdempotently",),
}
