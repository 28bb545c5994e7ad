"""Computes metric values from the reports of a lease, per flow and per topic. No I/O."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.settings.patterns import compile_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.api import Report

_LATENCIES: Final = (("record-age-ms", "age"), ("replication-latency-ms", "latency"))
_SHORTEST_S: Final = 0.001
_LAGS_FROM_S: Final = 30.0
"""A topic with steady traffic is some seconds behind at the end of many leases."""
_FAILING: Final = frozenset({"halted", "unreachable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """A value that was measured several times: last (of the slowest partition), minimum, maximum, sum and count."""

    last: float
    least: float
    greatest: float
    total: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A value of a metric; of the flow if `topic` (the remote topic) is None."""

    metric: str
    value: float | Values
    topic: str | None = None


class LeaseMeter:
    """Turns every lease of one flow into samples; keeps between leases since when partitions are lagging.

    Source topics that match none of `topics` have no samples per topic; the flow's samples include all topics. With
    `only_troubled` a topic has samples only while it lags or fails, and once more in the lease after that.
    """

    def __init__(self, topics: Iterable[str] = (".*",), *, only_troubled: bool = False) -> None:
        self._topics = compile_patterns(topics)
        self._only_troubled = only_troubled
        self._troubled: set[str] = set()
        # The last copied record's time, or when the partition was last seen caught up.
        self._behind_since_ms: dict[TopicPartition, int] = {}
        # The source's end at the last lease, and when that was.
        self._ends: dict[TopicPartition, tuple[int, int]] = {}
        self._last_ms: int | None = None

    def lease(self, reports: Sequence[Report], *, now_ms: int) -> list[Sample]:
        """Return the samples of one lease that ended at `now_ms`."""
        began = min((report.began_ms for report in reports if report.began_ms is not None), default=now_ms)
        seconds = max(_SHORTEST_S, (now_ms - (began if self._last_ms is None else self._last_ms)) / 1000)
        self._last_ms = now_ms
        lags = {(report.topic, report.partition): self._lag_s(report, now_ms) for report in reports}
        by_topic: dict[str, list[Report]] = defaultdict(list)
        for report in reports:
            by_topic[report.remote_topic].append(report)
        # The flow's samples first, which alarms use: later ones may not be sent.
        samples = self._samples(reports, lags, seconds=seconds, topic=None)
        for name, value in (
            ("partitions-halted", sum(report.state == "halted" for report in reports)),
            ("partitions-unreachable", sum(report.state == "unreachable" for report in reports)),
            ("gap-count", sum(report.gaps for report in reports)),
            ("left-out-count", sum(report.left_out for report in reports)),
            ("foreign-count", sum(report.foreign for report in reports)),
            ("skipped-count", sum(report.skipped for report in reports)),
            ("fetch-throttle-time-ms", max((report.fetch_throttle_ms for report in reports), default=0)),
            ("produce-throttle-time-ms", max((report.produce_throttle_ms for report in reports), default=0)),
        ):
            samples.append(Sample(metric=name, value=value))
        troubled = {topic for topic, some in by_topic.items() if any(_in_trouble(one, lags) for one in some)}
        before, self._troubled = self._troubled, troubled
        for topic, some in by_topic.items():
            if self._only_troubled and topic not in troubled | before:
                continue
            if any(pattern.fullmatch(some[0].topic) for pattern in self._topics):
                samples += self._samples(some, lags, seconds=seconds, topic=topic)
        return samples

    def _lag_s(self, report: Report, now_ms: int) -> float:
        """The maximum age of what is left to copy; 0 if nothing is left.

        A record in a quiet topic is not as old as the record before it: it was written after the last lease. Nor are
        remaining records of a topic with old timestamps, once everything that existed at the last lease is copied. For
        an unavailable partition new records are unknown; there may be some.
        """
        place = report.topic, report.partition
        copied_ms = None
        if report.ended_ms is not None and report.latency_ms is not None:
            copied_ms = report.ended_ms - report.latency_ms
        if not report.lag_records and report.state != "unreachable":
            self._behind_since_ms[place] = now_ms
            return 0.0
        since_ms = self._behind_since_ms.get(place, now_ms if copied_ms is None else copied_ms)
        if copied_ms is not None:
            since_ms = max(since_ms, min(copied_ms, now_ms))
        end, at_ms = self._ends.get(place, (0, 0))
        if report.next_offset is not None:
            if report.next_offset >= end and report.state != "unreachable":
                since_ms = max(since_ms, at_ms)
            self._ends[place] = report.next_offset + report.lag_records, now_ms
        self._behind_since_ms[place] = since_ms
        return max(0.0, (now_ms - since_ms) / 1000)

    def _samples(
        self,
        reports: Sequence[Report],
        lags: dict[TopicPartition, float],
        *,
        seconds: float,
        topic: str | None,
    ) -> list[Sample]:
        records = sum(report.records for report in reports)
        size = sum(report.copied_bytes for report in reports)
        values: dict[str, float | Values | None] = {
            "record-count": records,
            "byte-count": size,
            "record-rate": records / seconds,
            "byte-rate": size / seconds,
            "lag-records": sum(report.lag_records for report in reports),
            "lag-seconds": max((lags[report.topic, report.partition] for report in reports), default=0.0),
            **{name: _values(reports, what) for name, what in _LATENCIES},
        }
        return [Sample(metric=name, value=value, topic=topic) for name, value in values.items() if value is not None]


def _in_trouble(report: Report, lags: dict[TopicPartition, float]) -> bool:
    """Whether a partition is worth metrics of its own topic."""
    lags_behind = lags[report.topic, report.partition] >= _LAGS_FROM_S
    return lags_behind or report.error is not None or report.state in _FAILING


def _values(reports: Iterable[Report], what: str) -> Values | None:
    """Add up `age` or `latency` of several partitions; None if nothing was copied."""
    last, least, greatest = (f"{what}_ms", f"{what}_min_ms", f"{what}_max_ms")
    copied = [report for report in reports if report.batches and getattr(report, last) is not None]
    if not copied:
        return None
    return Values(
        last=max(getattr(report, last) for report in copied),
        least=min(getattr(report, least) for report in copied),
        greatest=max(getattr(report, greatest) for report in copied),
        total=sum(getattr(report, f"{what}_avg_ms") * report.batches for report in copied),
        count=sum(report.batches for report in copied),
    )
