"""What the page shows at one moment, as frozen values. No I/O.

`/api/openapi.json` is generated from these classes: a field's name is its name in JSON. Times end in `_ms` (since
1970) or `_s` (a duration).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ClusterState(StrEnum):
    """Whether a cluster answers."""

    CONNECTING = "connecting"
    AVAILABLE = "available"
    SLOW = "slow"
    UNAVAILABLE = "unavailable"


class FlowState(StrEnum):
    """The target state of a flow; `UNKNOWN` while the target does not answer."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class TopicState(StrEnum):
    """The worst state of a topic's partitions, as in docs/operations.md.

    `NOT_STARTED` without any progress; `UNKNOWN` while a cluster that would have to answer does not, or was not read.
    """

    HALTED = "halted"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"
    RESUMING = "resuming"
    WAITING = "waiting"
    NOT_STARTED = "not started"
    COPYING = "copying"
    CAUGHT_UP = "caught up"


class Level(StrEnum):
    """How serious an event is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """One cluster. `answer_ms` is the duration of its last answer, `answered_ms` when that was.

    `kafka` is the release of Kafka, by the requests that a broker supports; None while it is not known.
    """

    alias: str
    bootstrap_servers: str
    state: ClusterState
    brokers: int | None
    kafka: str | None
    answer_ms: int | None
    answered_ms: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopierRow:
    """A process that copies a flow, by its mark in the progress topic; `share` is None if it copies all of it."""

    engine: str
    share: str | None
    bytes_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """One flow: the sums of its topics, and what copies it.

    What is not known is None, as everything is until the flow is read. `lag_records` is a minimum where
    `unknown_partitions` is not 0, and None while a cluster does not answer: then `last_lag_records` is the lag of
    `read_ms`, when the flow was last read completely. `lag_s` is the time for which the oldest record that is not
    copied has waited; a minimum with `lag_is_minimum`, since the records were there before this process looked.
    `lag_per_s` is by how much the lag has grown per second, negative if it shrinks; `catch_up_s` when it would be 0 if
    it continued to shrink so. `rpo_s` and `limit_bytes_per_s` are settings, None if not set. `records_per_s` counts
    offsets where another process copies. `groups_age_ms` is how long the oldest group offset waited lately for its
    place on the target, known where this process follows groups. `has_heartbeat` says whether the target has any,
    `error` why the flow cannot be read now.
    """

    name: str
    source: str
    target: str
    state: FlowState
    engine: str
    engine_reason: str
    copiers: tuple[CopierRow, ...]
    topics: int | None
    partitions: int | None
    started: int | None
    halted: int | None
    unknown_partitions: int
    lag_records: int | None
    last_lag_records: int | None
    lag_s: float | None
    lag_is_minimum: bool
    lag_per_s: float | None
    catch_up_s: float | None
    rpo_s: float | None
    records_per_s: float | None
    bytes_per_s: float | None
    limit_bytes_per_s: float | None
    latency_ms: int | None
    groups_age_ms: int | None
    has_heartbeat: bool | None
    heartbeat_ms: int | None
    waiting: str
    error: str | None
    problems: tuple[str, ...]
    read_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """One topic of a flow. Fields are as in `FlowRow`; `bytes_per_s` and `latency_ms` are known where it is copied.

    `latency_ms` is None while nothing is copied.
    """

    flow: str
    topic: str
    remote_topic: str
    partitions: int
    halted: int
    state: TopicState
    records_per_s: float | None
    bytes_per_s: float | None
    unknown_partitions: int
    lag_records: int | None
    lag_s: float | None
    lag_is_minimum: bool
    lag_per_s: float | None
    catch_up_s: float | None
    latency_ms: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """One partition of a topic: the next offset to copy, and the source's end, both None if unknown."""

    partition: int
    state: TopicState
    next_offset: int | None
    source_end: int | None
    lag_records: int | None
    lag_s: float | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What an operator can do about a problem: a sentence, and a command to copy; None if there is none."""

    text: str
    command: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HaltedRow:
    """A halted partition: the source offset, the kind of gap (None if it is no gap) and the reason."""

    flow: str
    topic: str
    partition: int
    offset: int
    gap: str | None
    records: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemRow:
    """Something that needs an operator; `rank` orders them, the most urgent first, 0 for the first kind.

    `kind` and `subject` identify it. `flow` is empty if it is not of one flow. `manual` is a page of docs/ with the
    section that is about it.
    """

    rank: int
    level: Level
    kind: str
    subject: str
    flow: str
    topic: str
    title: str
    text: str
    fixes: tuple[Fix, ...]
    manual: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationsRow:
    """On which cluster of a pair the last completed operation has put applications.

    `cluster` is None if no operation moved any, and without `is_known` if that cannot be said; `text` says why.
    """

    between: tuple[str, ...]
    is_known: bool
    cluster: str | None
    since_ms: int | None
    kind: str | None
    operation: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceRow:
    """A fence, which blocks writers of topics; `operation` is None if none explains it.

    `topics` has the first of `count`; `fix` removes the fence.
    """

    cluster: str
    operation: str | None
    topics: tuple[str, ...]
    count: int
    text: str
    fix: Fix


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRow:
    """When a table was last read, and why it cannot be read now or why it is empty; `read_ms` is None before.

    `flow` is empty for a table of all flows.
    """

    table: str
    flow: str
    read_ms: int | None
    error: str | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A consumer group of the source: what it has left to read there, and would read again or skip on the target.

    `read_again` and `skipped` are the sums of its partitions, at most, None if one is unknown; `untranslated` is the
    number of partitions without a position on the target, and `why` the reason of the first of them.
    """

    flow: str
    group: str
    state: str
    partitions: int
    lag_records: int | None
    read_again: int | None
    skipped: int | None
    untranslated: int
    why: str
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRow:
    """A group's offset on the source, and its translation `target_offset`; `how` says how that is known.

    On the target it would be at `continues_at`, which may be its own offset there.
    """

    topic: str
    remote_topic: str
    partition: int
    source_offset: int
    source_lag: int | None
    target_offset: int | None
    continues_at: int | None
    read_again: int | None
    skipped: int
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStepRow:
    """A step of an operation, with its result in one line."""

    step: str
    state: str
    began_ms: int
    ended_ms: int | None
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """A switchover, failover or failback; `notes` are its warnings, and what groups read again.

    `next_step` says what to do now, empty if a later operation of these clusters has replaced it; `next_command` is the
    command for that.
    """

    id: str
    kind: str
    source: str
    target: str
    outcome: str
    owner: str
    began_ms: int
    ended_ms: int | None
    blocked_s: float | None
    reason: str
    notes: tuple[str, ...]
    next_step: str
    next_command: str | None
    steps: tuple[OperationStepRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillCheckRow:
    """A check of a drill that is not ok."""

    status: str
    check: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillRow:
    """A stored report of a drill.

    `rpo_records` and `rpo_seconds` are what would have been lost, None if unknown; `rto_seconds` is the measured part
    of a failover.
    """

    flow: str
    began_ms: int
    ended_ms: int
    status: str
    rpo_records: int | None
    rpo_exact: bool
    rpo_seconds: float | None
    rto_seconds: float
    problems: tuple[DrillCheckRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """A setting in effect; secrets are masked. `is_default` says that no file sets it, `origin` which one does."""

    key: str
    value: str
    is_default: bool
    origin: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsOf:
    """The settings of one flow or of one cluster."""

    name: str
    kind: str
    settings: tuple[SettingRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened; `flow` is empty for a cluster or an operation. `number` grows by one."""

    number: int
    at_ms: int
    level: Level
    flow: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything on the page but settings, partitions and positions, which are read when they are opened.

    `copies_here` says that this process copies the flows. `notes` are lines about reports that could not be read.
    """

    at_ms: int
    copies_here: bool
    clusters: tuple[ClusterRow, ...]
    flows: tuple[FlowRow, ...]
    applications: tuple[ApplicationsRow, ...]
    fences: tuple[FenceRow, ...]
    readings: tuple[ReadingRow, ...]
    problems: tuple[ProblemRow, ...]
    topics: tuple[TopicRow, ...]
    halted: tuple[HaltedRow, ...]
    groups: tuple[GroupRow, ...]
    operations: tuple[OperationRow, ...]
    drills: tuple[DrillRow, ...]
    notes: tuple[str, ...]
