"""The table: which right each function and job needs on source and target, and which rows a flow needs.

How each request is authorized was read from Kafka's `KafkaApis`, `ControllerApis` and `AclApis`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.client_settings import client_rack
from mirrorless.clusters.internal_topics import (
    GROUP_COMMITS_TOPIC,
    checkpoints_topic,
    heartbeats_topic,
    offset_syncs_topic,
    replicated_heartbeats,
)
from mirrorless.clusters.mirrormaker2 import group_of
from mirrorless.clusters.target_state import configs_topic
from mirrorless.metadata.acl_record import record_topic
from mirrorless.metadata.kinds import KINDS
from mirrorless.metadata.missing_topics import notes_topic
from mirrorless.operation_log.topic import OPERATIONS_TOPIC
from mirrorless.rights.model import IMPLIED, Function, On, Operation, Row, Side, When

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mirrorless.settings import Flow

_S, _T = Side.SOURCE, Side.TARGET
_DISCOVERY, _COPY, _CHECKPOINT = Function.TOPIC_DISCOVERY, Function.PARTITION_COPY, Function.CHECKPOINT
_CONFIGS, _ACLS, _VERIFY = Function.CONFIG_SYNC, Function.ACL_SYNC, Function.VERIFY_COPY
_HEARTBEAT, _SUPERVISOR, _DRILL = Function.HEARTBEAT, Function.JOB_SUPERVISOR, Function.DRILL
_MONITOR = Function.HEARTBEAT_MONITOR
_SAME: Final = "detect recreated topics"
_FENCES: Final = "leave out the fence of a switchover"
_TURN: Final = "check whether the flow waits for its turn"

_ALONE: Final = (
    Row(_DISCOVERY, _S, On.TOPICS, Operation.DESCRIBE, "find topics and partitions"),
    Row(_DISCOVERY, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "create remote topics with the same configs"),
    Row(_DISCOVERY, _S, On.OFFSET_SYNCS, Operation.DESCRIBE, "check whether it exists", When.SYNCS_ON_SOURCE),
    Row(_DISCOVERY, _S, On.OFFSET_SYNCS, Operation.CREATE, "create it if missing", When.SYNCS_ON_SOURCE),
    Row(_DISCOVERY, _T, On.REMOTE_TOPICS, Operation.DESCRIBE, "find missing topics"),
    Row(_DISCOVERY, _T, On.REMOTE_TOPICS, Operation.CREATE, "create them"),
    Row(_DISCOVERY, _T, On.REMOTE_TOPICS, Operation.ALTER, "add partitions"),
    Row(_DISCOVERY, _T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "create them for old records", When.OLD_RECORDS),
    Row(_DISCOVERY, _T, On.PROGRESS, Operation.DESCRIBE, "check whether it exists"),
    Row(_DISCOVERY, _T, On.PROGRESS, Operation.CREATE, "create it if missing"),
    Row(_DISCOVERY, _T, On.PROGRESS, Operation.READ, _SAME),
    Row(_DISCOVERY, _T, On.OPERATIONS, Operation.READ, _FENCES, When.OPERATIONS),
    Row(_DISCOVERY, _T, On.TARGET_STATE, Operation.READ, _TURN, When.TURNS),
    Row(_DISCOVERY, _T, On.PROGRESS, Operation.WRITE, "record where partitions begin", When.LATEST),
    Row(_DISCOVERY, _S, On.START_GROUP, Operation.DESCRIBE, "read where partitions begin", When.START_GROUP),
    Row(_DISCOVERY, _T, On.OFFSET_SYNCS, Operation.DESCRIBE, "check whether it exists", When.SYNCS_ON_TARGET),
    Row(_DISCOVERY, _T, On.OFFSET_SYNCS, Operation.CREATE, "create it if missing", When.SYNCS_ON_TARGET),
    Row(_DISCOVERY, _T, On.DEAD_LETTERS, Operation.DESCRIBE, "check whether it exists", When.DEAD_LETTERS),
    Row(_DISCOVERY, _T, On.DEAD_LETTERS, Operation.CREATE, "create it if missing", When.DEAD_LETTERS),
    Row(_CONFIGS, _S, On.TOPICS, Operation.DESCRIBE, "find topics"),
    Row(_CONFIGS, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "read their configs"),
    Row(_CONFIGS, _T, On.REMOTE_TOPICS, Operation.DESCRIBE, "find remote topics"),
    Row(_CONFIGS, _T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "compare their configs"),
    Row(_CONFIGS, _T, On.REMOTE_TOPICS, Operation.ALTER_CONFIGS, "set and delete configs"),
    Row(_CONFIGS, _T, On.PROGRESS, Operation.READ, _SAME),
    Row(_CONFIGS, _T, On.OPERATIONS, Operation.READ, _FENCES, When.OPERATIONS),
    Row(_CONFIGS, _T, On.TARGET_STATE, Operation.READ, _TURN, When.TURNS),
    Row(_ACLS, _S, On.TOPICS, Operation.DESCRIBE, "find topics"),
    Row(_ACLS, _S, On.CLUSTER, Operation.DESCRIBE, "read ACLs", When.ACLS),
    Row(_ACLS, _T, On.CLUSTER, Operation.DESCRIBE, "compare ACLs", When.ACLS),
    Row(_ACLS, _T, On.CLUSTER, Operation.ALTER, "add ACLs", When.ACLS),
    Row(_ACLS, _T, On.PROGRESS, Operation.READ, _SAME),
    Row(_ACLS, _T, On.OPERATIONS, Operation.READ, _FENCES, When.OPERATIONS),
    Row(_ACLS, _T, On.TARGET_STATE, Operation.READ, _TURN, When.TURNS),
    Row(_ACLS, _T, On.ACL_RECORD, Operation.CREATE, "create it if missing", When.PRUNE),
    Row(_ACLS, _T, On.ACL_RECORD, Operation.READ, "read which ACLs the flow added", When.PRUNE),
    Row(_ACLS, _T, On.ACL_RECORD, Operation.WRITE, "record which ACLs the flow added", When.PRUNE),
    Row(_ACLS, _T, On.REMOTE_TOPICS, Operation.READ, "find records of others before deleting", When.DELETES),
    Row(_ACLS, _T, On.REMOTE_TOPICS, Operation.DELETE, "delete them with their source topics", When.DELETES),
    Row(_ACLS, _T, On.TARGET_STATE, Operation.READ, "check whether the flow is paused", When.DELETES),
    Row(_ACLS, _T, On.DELETE_NOTES, Operation.CREATE, "create it if missing", When.DELETES),
    Row(_ACLS, _T, On.DELETE_NOTES, Operation.READ, "read since when topics are missing", When.DELETES),
    Row(_ACLS, _T, On.DELETE_NOTES, Operation.WRITE, "note that topics are missing", When.DELETES),
    Row(_HEARTBEAT, _T, On.HEARTBEATS, Operation.CREATE, "create it if missing"),
    Row(_HEARTBEAT, _T, On.HEARTBEATS, Operation.WRITE, "emit heartbeats"),
    Row(_HEARTBEAT, _T, On.PROGRESS, Operation.READ, "check whether `copy` emits them", When.DOUBLE, Function.COPY),
    Row(_CHECKPOINT, _S, On.GROUPS, Operation.DESCRIBE, "find groups, read their offsets"),
    Row(_CHECKPOINT, _S, On.TOPICS, Operation.READ, "read offsets, count records between two offset syncs"),
    Row(_CHECKPOINT, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics", When.SHARED),
    Row(_CHECKPOINT, _S, On.OFFSET_SYNCS, Operation.READ, "translate offsets", When.SYNCS_ON_SOURCE),
    Row(_CHECKPOINT, _T, On.OFFSET_SYNCS, Operation.READ, "translate offsets", When.SYNCS_ON_TARGET),
    Row(_CHECKPOINT, _T, On.REMOTE_TOPICS, Operation.DESCRIBE, "read their end offsets"),
    Row(_CHECKPOINT, _T, On.REMOTE_TOPICS, Operation.READ, "count records of each origin", When.SHARED),
    Row(_CHECKPOINT, _T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics", When.SHARED),
    Row(_CHECKPOINT, _T, On.PROGRESS, Operation.READ, "read how far the copy is"),
    Row(_CHECKPOINT, _T, On.TARGET_STATE, Operation.READ, _TURN, When.TURNS),
    Row(_CHECKPOINT, _T, On.CHECKPOINTS, Operation.CREATE, "create it if missing"),
    Row(_CHECKPOINT, _T, On.CHECKPOINTS, Operation.READ, "read earlier checkpoints"),
    Row(_CHECKPOINT, _T, On.CHECKPOINTS, Operation.WRITE, "write checkpoints"),
    Row(_CHECKPOINT, _T, On.GROUPS, Operation.DESCRIBE, "find active groups, read offsets", When.GROUP_OFFSETS),
    Row(_CHECKPOINT, _T, On.GROUPS, Operation.READ, "commit offsets", When.GROUP_OFFSETS),
    Row(_CHECKPOINT, _T, On.REMOTE_TOPICS, Operation.READ, "commit offsets", When.GROUP_OFFSETS),
    Row(_MONITOR, _T, On.REMOTE_HEARTBEATS, Operation.READ, "measure heartbeat latency"),
    Row(_SUPERVISOR, _T, On.TARGET_STATE, Operation.READ, "check whether the flow is paused", When.PAUSE),
    Row(_SUPERVISOR, _T, On.PROGRESS, Operation.READ, "find which engine copies, and how far it lags", When.AUTO),
    Row(_SUPERVISOR, _T, On.PROGRESS, Operation.WRITE, "record which engine is to copy", When.AUTO),
    Row(_COPY, _S, On.TOPICS, Operation.READ, "fetch batches"),
    Row(_COPY, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics", When.RACK),
    Row(_COPY, _S, On.OFFSET_SYNCS, Operation.WRITE, "write offset syncs", When.SYNCS_ON_SOURCE),
    Row(_COPY, _S, On.CLUSTER, Operation.DESCRIBE, "read partition sizes", When.BETTER),
    Row(_COPY, _S, On.START_GROUP, Operation.DESCRIBE, "read where the copy begins", When.START_GROUP),
    Row(_COPY, _T, On.REMOTE_TOPICS, Operation.READ, "find the last copied offset (DescribeProducers)"),
    Row(_COPY, _T, On.REMOTE_TOPICS, Operation.WRITE, "append batches"),
    Row(_COPY, _T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "tell a limit from a fence", When.LEFT_OUT),
    Row(_COPY, _T, On.PROGRESS, Operation.READ, "resume the copy"),
    Row(_COPY, _T, On.PROGRESS, Operation.WRITE, "write progress"),
    Row(_COPY, _T, On.OFFSET_SYNCS, Operation.WRITE, "write offset syncs", When.SYNCS_ON_TARGET),
    Row(_COPY, _T, On.DEAD_LETTERS, Operation.WRITE, "report skipped records", When.DEAD_LETTERS),
    Row(_COPY, _T, On.TARGET_STATE, Operation.READ, "check whether the flow is paused", When.PAUSE),
    Row(_COPY, _T, On.MIRRORMAKER2, Operation.DESCRIBE, "check that MirrorMaker 2 has stopped", When.RIVAL),
    Row(_COPY, _T, On.CLUSTER, Operation.DESCRIBE_CONFIGS, "read producer.id.expiration.ms", When.EXPIRY),
    Row(
        _COPY,
        _T,
        On.CLUSTER,
        Operation.ALTER,
        "take offsets without a record (before Kafka 3.8: CLUSTER_ACTION)",
        When.IDENTICAL,
    ),
    Row(_COPY, _T, On.REMOTE_TOPICS, Operation.DELETE, "begin where the source does (DeleteRecords)", When.IDENTICAL),
    Row(_COPY, _T, On.CLUSTER, Operation.IDEMPOTENT_WRITE, "append batches", When.OLD_BROKERS),
    Row(_VERIFY, _S, On.TOPICS, Operation.READ, "compare records"),
    Row(_VERIFY, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics, compare configs"),
    Row(_VERIFY, _S, On.OFFSET_SYNCS, Operation.READ, "pair offsets", When.SYNCS_ON_SOURCE),
    Row(_VERIFY, _S, On.GROUPS, Operation.DESCRIBE, "find groups, read their offsets"),
    Row(_VERIFY, _S, On.CLUSTER, Operation.DESCRIBE, "compare ACLs", When.ACLS),
    Row(_VERIFY, _T, On.REMOTE_TOPICS, Operation.READ, "compare records"),
    Row(_VERIFY, _T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "compare configs", When.CONFIGS),
    Row(_VERIFY, _T, On.PROGRESS, Operation.READ, "read how far the copy is"),
    Row(_VERIFY, _T, On.OFFSET_SYNCS, Operation.READ, "pair offsets", When.SYNCS_ON_TARGET),
    Row(_VERIFY, _T, On.CHECKPOINTS, Operation.READ, "compare offsets of groups", When.NO_GROUP_OFFSETS),
    Row(_VERIFY, _T, On.GROUPS, Operation.DESCRIBE, "compare offsets of groups", When.GROUP_OFFSETS),
    Row(_VERIFY, _T, On.CLUSTER, Operation.DESCRIBE, "compare ACLs", When.ACLS),
    Row(_VERIFY, _T, On.OPERATIONS, Operation.READ, _FENCES, When.OPERATIONS),
    Row(_VERIFY, _T, On.TARGET_STATE, Operation.READ, _TURN, When.TURNS),
    Row(_VERIFY, _T, On.ACL_RECORD, Operation.READ, "read which ACLs the flow added", When.PRUNE),
    Row(_DRILL, _S, On.TOPICS, Operation.READ, "compare records, count those that are not copied"),
    Row(_DRILL, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics, compare configs"),
    Row(_DRILL, _S, On.OFFSET_SYNCS, Operation.READ, "translate offsets", When.SYNCS_ON_SOURCE),
    Row(_DRILL, _S, On.GROUPS, Operation.DESCRIBE, "find groups, read their offsets"),
    Row(_DRILL, _S, On.CLUSTER, Operation.DESCRIBE, "compare ACLs and the rights of principals"),
    Row(_DRILL, _T, On.REMOTE_TOPICS, Operation.READ, "compare records"),
    Row(_DRILL, _T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics, compare configs"),
    Row(_DRILL, _T, On.REMOTE_HEARTBEATS, Operation.READ, "read the age of the last heartbeat", part=_MONITOR),
    Row(_DRILL, _T, On.PROGRESS, Operation.READ, "read how far the copy is, and what halted"),
    Row(_DRILL, _T, On.OFFSET_SYNCS, Operation.READ, "translate offsets", When.SYNCS_ON_TARGET),
    Row(_DRILL, _T, On.CHECKPOINTS, Operation.READ, "compare checkpoints", part=_CHECKPOINT),
    Row(_DRILL, _T, On.GROUPS, Operation.DESCRIBE, "find active groups, read offsets"),
    Row(_DRILL, _T, On.CLUSTER, Operation.DESCRIBE, "compare ACLs and the rights of principals"),
    Row(_DRILL, _T, On.TARGET_STATE, Operation.READ, "check whether the flow is paused", When.PAUSE),
    Row(_DRILL, _T, On.OPERATIONS, Operation.READ, _FENCES, When.OPERATIONS),
    Row(_DRILL, _T, On.ACL_RECORD, Operation.READ, "read which ACLs the flow added", When.PRUNE),
)


def _of_copy() -> tuple[Row, ...]:
    """Rows of the function `copy`: it copies, and while it does, emits heartbeats and checkpoints."""
    found: list[Row] = []
    for function in (_COPY, _HEARTBEAT, _CHECKPOINT):
        for row in (one for one in _ALONE if one.function is function):
            if row.when is When.TURNS:
                continue  # it checks the state for itself
            same = [one for one in found if (one.side, one.on, one.operation) == (row.side, row.on, row.operation)]
            if not any(one.when in (None, row.when) for one in same):
                part = None if function is _COPY else function
                found.append(replace(row, function=Function.COPY, part=part))
    return tuple(found)


_FOLLOWING: Final = tuple(
    Row(Function.PARTITION_COPY, *row, Function.CHECKPOINT)
    for row in (
        (_S, On.GROUPS, Operation.DESCRIBE, "follow groups", When.GROUP_OFFSETS),
        (_S, On.OFFSET_SYNCS, Operation.READ, "translate offsets", When.SYNCS_ON_SOURCE),
        (_S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics", When.SHARED),
        (_T, On.OFFSET_SYNCS, Operation.READ, "translate offsets", When.SYNCS_ON_TARGET),
        (_T, On.REMOTE_TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics", When.SHARED),
        (_T, On.CHECKPOINTS, Operation.READ, "read earlier checkpoints", When.GROUP_OFFSETS),
        (_T, On.CHECKPOINTS, Operation.WRITE, "write checkpoints", When.GROUP_OFFSETS),
        (_T, On.GROUPS, Operation.DESCRIBE, "find active groups, read offsets", When.GROUP_OFFSETS),
        (_T, On.GROUPS, Operation.READ, "commit offsets", When.GROUP_OFFSETS),
    )
)
"""The job follows groups while it copies, as the function `copy` does."""
_FEEDS: Final = tuple(
    Row(function, _S, On.GROUP_COMMITS, Operation.READ, "follow groups", When.AT_ONCE, Function.CHECKPOINT)
    for function in (Function.PARTITION_COPY, Function.COPY)
)


def _of_kinds() -> tuple[Row, ...]:
    """Rows of the kinds of what clusters have beside topics: `acl_sync` applies them, `verify` and `drill` compare."""
    found: list[Row] = []
    for kind in KINDS:
        if kind.writes is not None and not kind.deletes:
            reads, writes = Operation(kind.reads), Operation(kind.writes)
            found += [
                Row(_ACLS, _S, On.CLUSTER, reads, f"read {kind.name}", kind=kind.name),
                Row(_ACLS, _T, On.CLUSTER, reads, f"compare {kind.name}", kind=kind.name),
                Row(_ACLS, _T, On.CLUSTER, writes, f"set {kind.name}", kind=kind.name),
            ]
    for function in (_VERIFY, _DRILL):
        for operation in dict.fromkeys(kind.reads for kind in KINDS):
            why = f"compare {', '.join(kind.name for kind in KINDS if kind.reads == operation)}"
            found += [Row(function, side, On.CLUSTER, Operation(operation), why, When.COMPARED) for side in (_S, _T)]
    return tuple(found)


ROWS: Final = (*_ALONE, *_FOLLOWING, *_of_copy(), *_FEEDS, *_of_kinds())


def functions_of(flow: Flow) -> frozenset[Function]:
    """Which functions are enabled by a flow's settings; not `verify_copy` and `drill`, on which nothing depends."""
    wanted = {
        Function.COPY: flow.engine != "spark",
        Function.PARTITION_COPY: flow.engine != "functions",
        Function.CONFIG_SYNC: flow.sync_topic_configs_enabled,
        Function.ACL_SYNC: flow.sync_topic_acls_enabled or bool(flow.sync_kinds) or flow.sync_topic_deletes,
        Function.HEARTBEAT: flow.emit_heartbeats_enabled,
        Function.CHECKPOINT: flow.writes_checkpoints,
        Function.HEARTBEAT_MONITOR: flow.heartbeats_replication_enabled,
        Function.VERIFY_COPY: False,
        Function.DRILL: False,
    }
    return frozenset(function for function in Function if wanted.get(function, True))


def needed(flow: Flow, functions: Iterable[Function] | None = None) -> list[Row]:
    """Return the rows that a flow needs, for all of its functions or for some, in the order of the table."""
    enabled = functions_of(flow)
    chosen = enabled if functions is None else frozenset(functions)
    return [
        row
        for row in ROWS
        if row.function in chosen
        and (row.part is None or row.part in enabled)
        and (row.when is None or _HOLDS[row.when](flow))
        and (row.kind is None or row.kind in flow.sync_kinds)
    ]


def of_the_way_back(opposite: Flow) -> list[Row]:
    """Return what `checkpoint` additionally needs if the flow `opposite` exists: rows of that flow, on its sides.

    A group that failed over is translated back with that flow's offset syncs and the compaction of its topics; that
    flow's checkpoints show which groups have not failed over.
    """
    made_of = {On.TOPICS, On.REMOTE_TOPICS, On.OFFSET_SYNCS, On.PROGRESS}
    rows = [row for row in needed(opposite, [_CHECKPOINT]) if row.on in made_of and row.when is not When.GROUP_OFFSETS]
    rows.append(Row(_CHECKPOINT, _T, On.CHECKPOINTS, Operation.READ, "find groups that have not failed over"))
    return [*rows, Row(_CHECKPOINT, _S, On.TOPICS, Operation.DESCRIBE_CONFIGS, "find compacted topics")]


def without_implied(rows: Iterable[Row]) -> list[Row]:
    """Drop rows whose right is that of another row, or, if they are required, implied by it, on the same resource."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: not row.required):
        same = row.function, row.side, row.on, row.operation
        if not any(one.required and (one.function, one.side, one.on, one.operation) == same for one in kept):
            kept.append(row)
    there = {(row.side, row.on, row.operation) for row in kept if row.required}
    return [
        row for row in kept if not any((row.side, row.on, other) in there for other in IMPLIED.get(row.operation, ()))
    ]


def name_of(flow: Flow, on: On) -> str | None:
    """Return the name of the topic or group of a right, None for several resources, and for the cluster."""
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
        case On.DELETE_NOTES:
            return notes_topic(flow)
        case On.OPERATIONS | On.GROUP_COMMITS:
            return OPERATIONS_TOPIC if on is On.OPERATIONS else GROUP_COMMITS_TOPIC
        case On.START_GROUP:
            return flow.start_group
        case On.MIRRORMAKER2:
            return group_of(flow)
    return None


def _syncs_at(flow: Flow, location: str) -> bool:
    return flow.emit_offset_syncs_enabled and flow.offset_syncs_topic_location == location


_HOLDS: Final[Mapping[When, Callable[[Flow], bool]]] = {
    When.SYNCS_ON_SOURCE: lambda flow: _syncs_at(flow, "source"),
    When.SYNCS_ON_TARGET: lambda flow: _syncs_at(flow, "target"),
    When.DEAD_LETTERS: lambda flow: bool(flow.dead_letter_topic) and flow.errors_tolerance == "all",
    When.OPERATIONS: lambda _: True,
    When.TURNS: lambda flow: flow.directions == "turns",
    When.SHARED: lambda flow: flow.directions == "skip",
    When.PRUNE: lambda flow: flow.acls_prune,
    When.DELETES: lambda flow: flow.sync_topic_deletes,
    When.GROUP_OFFSETS: lambda flow: flow.sync_group_offsets_enabled,
    When.NO_GROUP_OFFSETS: lambda flow: not flow.sync_group_offsets_enabled,
    When.CONFIGS: lambda flow: flow.sync_topic_configs_enabled,
    When.AUTO: lambda flow: flow.engine == "auto",
    When.ACLS: lambda flow: flow.sync_topic_acls_enabled,
    When.OLD_BROKERS: lambda _: True,
    When.RIVAL: lambda _: True,
    When.PAUSE: lambda _: True,
    When.LATEST: lambda flow: flow.auto_offset_reset == "latest" and flow.start_timestamp_ms is None,
    When.START_GROUP: lambda flow: flow.start_group is not None,
    When.IDENTICAL: lambda flow: flow.offsets == "identical",
    When.EXPIRY: lambda _: True,
    When.OLD_RECORDS: lambda _: True,
    When.LEFT_OUT: lambda flow: flow.errors_tolerance == "all",
    When.RACK: lambda flow: client_rack(flow.source) is not None,
    When.DOUBLE: lambda _: True,
    When.AT_ONCE: lambda flow: flow.sync_group_offsets_enabled,
    When.BETTER: lambda _: True,
    When.COMPARED: lambda _: True,
}
