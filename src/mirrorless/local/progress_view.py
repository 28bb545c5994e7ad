"""The progress of a running copy: its slots' reports, added up by partition and by topic."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.copy.api import PartitionState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.api import Control, Report

_RATE_WINDOW_S = 10.0
"""With a limit for the flow, whole batches arrive seconds apart."""
PASSING: Final = (PartitionState.RESUMING, PartitionState.WAITING)
"""States in which a partition is retried, without action by an operator."""
_WORST_FIRST = ("halted", "unreachable", "resuming", "waiting", "copying", "caught up")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """One topic since the run began: counts are totals, rates are over the last seconds, `lag_records` is the lag.

    `state` and `error` are those of the partition in the worst state; `latency_ms` is the largest of its partitions',
    None if nothing was copied within these seconds.
    """

    topic: str
    partitions: int
    records: int
    copied_bytes: int
    records_per_s: float
    bytes_per_s: float
    lag_records: int
    latency_ms: int | None
    state: str
    error: str | None


class ProgressView:
    """Adds up the reports of one flow's run; each of its engines has a control."""

    def __init__(self, *controls: Control) -> None:
        self._controls = controls
        self._finished: dict[TopicPartition, tuple[int, int]] = {}
        self._current: dict[Control, dict[tuple[int, int], list[Report]]] = {control: {} for control in controls}
        self._latest: dict[TopicPartition, Report] = {}
        self._history: dict[str, deque[tuple[float, int, int]]] = defaultdict(deque)

    @property
    def complaint(self) -> str:
        """Why no lease can be planned at the moment, empty if one can."""
        return next(filter(None, (control.complaint() for control in self._controls)), "")

    def look(self) -> list[TopicView]:
        """Read new reports and return every topic, by name."""
        for control in self._controls:
            self._read(control)
        totals = dict(self._finished)
        for current in self._current.values():
            for reports in current.values():
                for report in reports:
                    place = report.topic, report.partition
                    records, size = totals.get(place, (0, 0))
                    totals[place] = records + report.records, size + report.copied_bytes
        by_topic: dict[str, list[Report]] = defaultdict(list)
        for report in self._latest.values():
            by_topic[report.topic].append(report)
        now = time.monotonic()
        return [self._view(topic, by_topic[topic], totals, now) for topic in sorted(by_topic)]

    def _read(self, control: Control) -> None:
        current = self._current[control]
        for key, reports in sorted(control.collect().items(), key=lambda item: item[0]):
            if current.get(key) != reports:  # the engine that does not copy reports nothing new
                current[key] = reports
                self._latest |= {(report.topic, report.partition): report for report in reports}
        newest = max((lease for lease, _ in current), default=0)
        for lease, slot in [key for key in current if key[0] < newest]:
            for report in current.pop((lease, slot)):
                self._add_finished(report)

    def _add_finished(self, report: Report) -> None:
        place = report.topic, report.partition
        records, size = self._finished.get(place, (0, 0))
        self._finished[place] = records + report.records, size + report.copied_bytes

    def _view(
        self, topic: str, reports: Iterable[Report], totals: dict[TopicPartition, tuple[int, int]], now: float
    ) -> TopicView:
        reports = sorted(reports, key=lambda report: _WORST_FIRST.index(report.state))
        records = sum(totals.get((topic, report.partition), (0, 0))[0] for report in reports)
        size = sum(totals.get((topic, report.partition), (0, 0))[1] for report in reports)
        history = self._history[topic]
        history.append((now, records, size))
        while now - history[0][0] > _RATE_WINDOW_S:
            history.popleft()
        seconds = max(now - history[0][0], 1e-3)
        return TopicView(
            topic=topic,
            partitions=len(reports),
            records=records,
            copied_bytes=size,
            records_per_s=(records - history[0][1]) / seconds,
            bytes_per_s=(size - history[0][2]) / seconds,
            lag_records=sum(report.lag_records for report in reports),
            latency_ms=max((report.latency_ms for report in reports if report.latency_ms is not None), default=None)
            if records > history[0][1]
            else None,
            state=reports[0].state,
            error=next((report.error for report in reports if report.error is not None), None),
        )
