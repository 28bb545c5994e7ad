"""Every metric: its name, unit, meaning and dimensions. docs/metrics.md, alarms and dashboard derive from this list.

Names are MirrorMaker 2's where it has the metric; its MBeans are per partition, these are per flow and per topic.
CloudWatch gets a count as the increase since the last value (use its Sum), and a latency as one metric with its own
minimum, maximum and average; Prometheus gets running totals, and `-min`, `-max` and `-avg` by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class Unit(StrEnum):
    """CloudWatch's names of units."""

    COUNT = "Count"
    BYTES = "Bytes"
    MILLISECONDS = "Milliseconds"
    SECONDS = "Seconds"
    COUNT_PER_SECOND = "Count/Second"
    BYTES_PER_SECOND = "Bytes/Second"


class Emitter(StrEnum):
    """What emits a metric: the copy, the function `copy` only, or the function or job of that name."""

    COPY = "copy"
    """Either engine: the function `copy` or the job `partition_copy`."""
    COPY_FUNCTION = "copy function"
    TOPIC_DISCOVERY = "topic_discovery"
    CONFIG_SYNC = "config_sync"
    ACL_SYNC = "acl_sync"
    HEARTBEAT = "heartbeat"
    CHECKPOINT = "checkpoint"
    HEARTBEAT_MONITOR = "heartbeat_monitor"
    JOB_SUPERVISOR = "job_supervisor"
    VERIFY_COPY = "verify_copy"
    DRILL = "drill"
    FUNCTIONS = "functions"
    """Any of the functions."""


FLOW: Final = ("source", "target")
"""Dimensions of a flow's metric: the two aliases."""
TOPIC: Final = ("source", "target", "topic")
"""Dimensions of a topic's metric; `topic` is the remote topic, as in MirrorMaker 2."""

_FLOW: Final = (FLOW,)
_BOTH: Final = (FLOW, TOPIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric; `dimensions` are the sets under which it is emitted, `counts` says that values are added up.

    `cloudwatch` is False for what CloudWatch has as statistics (`-min`, `-max`, `-avg`) or as metric math (rates).
    A `sparse` metric is mostly zero: CloudWatch, paid by what is sent, gets no zeros of it, and alarms take a missing
    value for zero. `cloudwatch_topic` is False for what CloudWatch gets of the flow only.
    `mm2` says that MirrorMaker 2 has a metric of that name.
    """

    name: str
    unit: Unit
    meaning: str
    emitter: Emitter
    dimensions: tuple[tuple[str, ...], ...] = _FLOW
    counts: bool = False
    cloudwatch: bool = True
    cloudwatch_topic: bool = True
    sparse: bool = False
    mm2: bool = False

    def is_sent(self, value: object, *, of_topic: bool = False) -> bool:
        """Whether CloudWatch gets this value, of the flow or of a topic."""
        return self.cloudwatch and not (self.sparse and value == 0) and (self.cloudwatch_topic or not of_topic)


def _spread(
    name: str,
    meaning: str,
    emitter: Emitter,
    dimensions: tuple[tuple[str, ...], ...] = _BOTH,
    *,
    cloudwatch: bool = False,
) -> tuple[Metric, ...]:
    """A latency as in MirrorMaker 2: the last value, and minimum, maximum and average of the last lease or run.

    CloudWatch gets none of a topic: `lag-seconds` shows which one lags.
    """
    plain = Metric(name=name, unit=Unit.MILLISECONDS, meaning=meaning, emitter=emitter, dimensions=dimensions, mm2=True)
    plain = replace(plain, cloudwatch=cloudwatch, cloudwatch_topic=False)
    others = (("min", "The minimum"), ("max", "The maximum"), ("avg", "The average"))
    return (
        plain,
        *(
            Metric(
                name=f"{name}-{suffix}",
                unit=Unit.MILLISECONDS,
                meaning=f"{what} `{name}` in the last lease or run.",
                emitter=emitter,
                dimensions=dimensions,
                cloudwatch=False,
                mm2=True,
            )
            for suffix, what in others
        ),
    )


NAMESPACE: Final = "Mirrorless"
"""CloudWatch's namespace of metrics, where a deployment names none of its own, `Mirrorless/<environment>`."""

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        name="record-count",
        unit=Unit.COUNT,
        meaning="Records acknowledged by the target.",
        emitter=Emitter.COPY,
        dimensions=_BOTH,
        counts=True,
        mm2=True,
    ),
    Metric(
        name="record-rate",
        unit=Unit.COUNT_PER_SECOND,
        meaning="Records acknowledged by the target per second, over the last lease.",
        emitter=Emitter.COPY,
        dimensions=_BOTH,
        cloudwatch=False,
        mm2=True,
    ),
    Metric(
        name="byte-count",
        unit=Unit.BYTES,
        meaning="Bytes of the record batches acknowledged by the target, as sent to the broker. "
        "MirrorMaker 2 counts uncompressed values.",
        emitter=Emitter.COPY,
        dimensions=_BOTH,
        counts=True,
        mm2=True,
    ),
    Metric(
        name="byte-rate",
        unit=Unit.BYTES_PER_SECOND,
        meaning="Bytes of record batches acknowledged by the target per second, over the last lease.",
        emitter=Emitter.COPY,
        dimensions=_BOTH,
        cloudwatch=False,
        mm2=True,
    ),
    *_spread("record-age-ms", "Time from the newest record of a batch to the fetch of the batch.", Emitter.COPY),
    *_spread(
        "replication-latency-ms",
        "Time from the newest record of a batch to its acknowledgement by the target.",
        Emitter.COPY,
        cloudwatch=True,
    ),
    Metric(
        name="lag-records",
        unit=Unit.COUNT,
        meaning="Offsets of the source that are not copied yet, including transaction markers and gaps in offsets.",
        emitter=Emitter.COPY,
        dimensions=_BOTH,
    ),
    Metric(
        name="lag-seconds",
        unit=Unit.SECONDS,
        meaning="Age of the last copied record, of the partition that lags furthest behind; 0 if nothing is left to "
        "copy. While a cluster is unavailable it grows from the last answer.",
        emitter=Emitter.COPY,
        dimensions=_BOTH,
    ),
    Metric(
        name="partitions-halted",
        unit=Unit.COUNT,
        meaning="Partitions that stopped and need an operator; the log of the copy has the partition and the reason.",
        emitter=Emitter.COPY,
    ),
    Metric(
        name="partitions-unreachable",
        unit=Unit.COUNT,
        meaning="Partitions that were not copied because a cluster was unavailable.",
        emitter=Emitter.COPY,
        sparse=True,
    ),
    Metric(
        name="gap-count",
        unit=Unit.COUNT,
        meaning="Gaps that were skipped, with `mirrorless.on.gap=continue`.",
        emitter=Emitter.COPY,
        counts=True,
        sparse=True,
    ),
    Metric(
        name="left-out-count",
        unit=Unit.COUNT,
        meaning="Records or batches that could not be copied and were skipped, with `errors.tolerance=all`.",
        emitter=Emitter.COPY,
        counts=True,
        sparse=True,
    ),
    Metric(
        name="foreign-count",
        unit=Unit.COUNT,
        meaning="Offsets of remote partitions that were written by another producer.",
        emitter=Emitter.COPY,
        counts=True,
        sparse=True,
    ),
    Metric(
        name="skipped-count",
        unit=Unit.COUNT,
        meaning="Records of the source that flows of this file had copied there (`mirrorless.both.directions=skip`).",
        emitter=Emitter.COPY,
        counts=True,
        sparse=True,
    ),
    *(
        Metric(
            name=f"{request}-throttle-time-ms",
            unit=Unit.MILLISECONDS,
            meaning=f"Throttle time by quotas of the {end}'s brokers in the last lease, of the partition that was "
            "throttled longest.",
            emitter=Emitter.COPY,
            sparse=True,
        )
        for request, end in (("fetch", "source"), ("produce", "target"))
    ),
    Metric(
        name="copy-running",
        unit=Unit.COUNT,
        meaning="1 for an invocation of `copy` that copied, or waited for another one to end.",
        emitter=Emitter.COPY_FUNCTION,
    ),
    Metric(
        name="topics-created",
        unit=Unit.COUNT,
        meaning="Remote topics that were created or given more partitions.",
        emitter=Emitter.TOPIC_DISCOVERY,
        counts=True,
        sparse=True,
    ),
    Metric(
        name="configs-changed",
        unit=Unit.COUNT,
        meaning="Remote topics whose configs were changed to those of their source topics.",
        emitter=Emitter.CONFIG_SYNC,
        counts=True,
        sparse=True,
    ),
    Metric(
        name="acls-changed",
        unit=Unit.COUNT,
        meaning="ACLs that were added or removed.",
        emitter=Emitter.ACL_SYNC,
        counts=True,
        sparse=True,
    ),
    *(
        Metric(name=name, unit=Unit.COUNT, meaning=meaning, emitter=emitter, sparse=True)
        for name, emitter, meaning in (
            (
                "topics-failed",
                Emitter.TOPIC_DISCOVERY,
                "Topics that could not be described, created or given more partitions in this sync run.",
            ),
            (
                "configs-failed",
                Emitter.CONFIG_SYNC,
                "Topics whose configs could not be read or changed in this sync run.",
            ),
            ("acls-failed", Emitter.ACL_SYNC, "ACLs that could not be read, added or removed in this sync run."),
        )
    ),
    *_spread(
        "checkpoint-latency-ms",
        "Time from a checkpoint's timestamp to the target's acknowledgement of it.",
        Emitter.CHECKPOINT,
        _FLOW,
    ),
    Metric(
        name="checkpoint-count",
        unit=Unit.COUNT,
        meaning="Checkpoints that were written.",
        emitter=Emitter.CHECKPOINT,
        counts=True,
    ),
    Metric(
        name="group-offset-count",
        unit=Unit.COUNT,
        meaning="Offsets that were committed for groups on the target.",
        emitter=Emitter.CHECKPOINT,
        counts=True,
        sparse=True,
    ),
    Metric(
        name="group-offset-age-ms",
        unit=Unit.MILLISECONDS,
        meaning="How long the oldest commit of a group on the source has waited for its place on the target, at most "
        "in ten seconds; with `sync.group.offsets.enabled`.",
        emitter=Emitter.COPY_FUNCTION,
        sparse=True,
    ),
    Metric(
        name="offsets-inexact",
        unit=Unit.COUNT,
        meaning="Group offsets of this run that could only be translated as MirrorMaker 2 does: the group re-reads "
        "more records than necessary, and misses none.",
        emitter=Emitter.CHECKPOINT,
        sparse=True,
    ),
    Metric(
        name="offsets-unknown",
        unit=Unit.COUNT,
        meaning="Group offsets of this run that have no translation yet.",
        emitter=Emitter.CHECKPOINT,
        sparse=True,
    ),
    Metric(
        name="heartbeat-count",
        unit=Unit.COUNT,
        meaning="Heartbeats that were written to the target.",
        emitter=Emitter.HEARTBEAT,
        counts=True,
        cloudwatch=False,
    ),
    Metric(
        name="heartbeat-latency-ms",
        unit=Unit.MILLISECONDS,
        meaning="Time from a heartbeat's timestamp on the source to when the monitor function reads it on the target.",
        emitter=Emitter.HEARTBEAT_MONITOR,
    ),
    Metric(
        name="heartbeat-age-seconds",
        unit=Unit.SECONDS,
        meaning="Age of the last heartbeat that was replicated from the source, emitted each minute, but not "
        "before the target has one.",
        emitter=Emitter.HEARTBEAT_MONITOR,
    ),
    *(
        Metric(name=name, unit=Unit.COUNT, meaning=meaning, emitter=Emitter.JOB_SUPERVISOR, sparse=sparse)
        for name, sparse, meaning in (
            ("job-running", True, "1 while a run of the copy job is under way, else 0."),
            ("job-paused", False, "1 while the flow is paused or stopped on purpose, else 0."),
            ("copy-missing", True, "Functions that are to copy and have no invocation; 0 while the copy job is to."),
            ("engine-functions", False, "1 while functions are to copy the flow, 0 while the copy job is."),
        )
    ),
    Metric(
        name="job-starts",
        unit=Unit.COUNT,
        meaning="Runs of the copy job that were started.",
        emitter=Emitter.JOB_SUPERVISOR,
        counts=True,
        sparse=True,
    ),
    Metric(
        name="records-compared",
        unit=Unit.COUNT,
        meaning="Records of the source that were compared with those of the target.",
        emitter=Emitter.VERIFY_COPY,
        counts=True,
    ),
    Metric(
        name="differences",
        unit=Unit.COUNT,
        meaning="Differences between source and target that a run found; its report lists them.",
        emitter=Emitter.VERIFY_COPY,
    ),
    Metric(
        name="not-compared",
        unit=Unit.COUNT,
        meaning="Items that a run could not compare; its report has the reasons, and the run fails.",
        emitter=Emitter.VERIFY_COPY,
    ),
    *(
        Metric(name=name, unit=unit, meaning=meaning, emitter=Emitter.DRILL)
        for name, unit, meaning in (
            ("drill-checks-failed", Unit.COUNT, "Checks that failed; the report of the drill has them."),
            ("drill-checks-not-done", Unit.COUNT, "Checks that could not be done; the report of the drill has them."),
            ("drill-rpo-records", Unit.COUNT, "Records that were not copied, at most; no value if unknown."),
            ("drill-rpo-seconds", Unit.SECONDS, "Age of the oldest of these, 0 without any; no value if unknown."),
            ("drill-rto-seconds", Unit.SECONDS, "Duration of the measured part of a failover."),
        )
    ),
    Metric(
        name="records-refused",
        unit=Unit.COUNT,
        meaning="Records of a trigger's event that could not be processed and went to the failure destination.",
        emitter=Emitter.FUNCTIONS,
        counts=True,
        sparse=True,
    ),
    Metric(
        name="units-left",
        unit=Unit.COUNT,
        meaning="Units of work that an invocation left to the next one, because its timeout was near.",
        emitter=Emitter.FUNCTIONS,
        sparse=True,
    ),
)

BY_NAME: Final = {metric.name: metric for metric in METRICS}
