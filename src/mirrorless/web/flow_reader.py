"""Reads one flow: its topics and their ends from the source, its progress, state and copiers from the target."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.clusters.topics import high_watermarks, partition_counts
from mirrorless.errors import MirrorlessError
from mirrorless.heartbeats import last_heartbeat
from mirrorless.metadata.service_records import replicated_on
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.topic import ProgressTopic
from mirrorless.web.flow_view import FlowView
from mirrorless.web.lag_time import catch_up_s
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import CopierRow, FlowRow, FlowState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.local.progress_view import TopicView
    from mirrorless.progress.run_marks import RunMark
    from mirrorless.settings import Flow
    from mirrorless.web.cluster_reader import ClusterReader
    from mirrorless.web.snapshot import HaltedRow, PartitionRow, TopicRow

_ENDS_AT_ONCE: Final = 1_000
"""So many ends are asked for at a time: of 10,000 partitions each is asked every tenth time."""
_HEARTBEAT_EVERY_S: Final = 10.0
_MARKS_S: Final = 5.0
_STATES: Final = {
    TargetState.STARTED: FlowState.RUNNING,
    TargetState.PAUSED: FlowState.PAUSED,
    TargetState.STOPPED: FlowState.STOPPED,
}


class FlowReader(RepeatingReader):
    """The state of `flow`; `deployment` is as in `deployment_of`."""

    def __init__(
        self,
        flow: Flow,
        *,
        source: ClusterReader,
        target: ClusterReader,
        deployment: str,
        every_s: float,
    ) -> None:
        super().__init__(f"web: flow {flow.name}", every_s=every_s, after=(source, target))
        self.flow = flow
        self._source, self._target = source, target
        self._deployment = deployment
        self._lock = threading.Lock()
        self._view = FlowView(flow.name)
        self._view.set_unread("not read yet")
        self._has_topics = self._has_progress = self._is_target_read = False
        self._last_lag: int | None = None
        self._seen: ClusterMetadata | None = None
        self._next_place = 0
        self._state = FlowState.UNKNOWN
        self._states: TargetStates | None = None
        self._progress: ProgressTopic | None = None
        self._marks = MarkReader(flow, patience_s=_MARKS_S)
        self._copiers: tuple[RunMark, ...] = ()
        self._choice: tuple[str, str] | None = None
        self._has_heartbeat: bool | None = None
        self._heartbeat_ms: int | None = None
        self._heartbeat_due_s = 0.0
        self._heartbeat_error: str | None = None
        self.waiting = ""
        self.groups_age_ms: int | None = None

    def read(self) -> None:
        """Read both ends as far as they answer; raises the first error."""
        errors: dict[str, MirrorlessError] = {}
        for name, part in (("topics", self._read_topics), ("target", self._read_target), ("ends", self._read_ends)):
            try:
                part()
            except MirrorlessError as error:
                errors[name] = error
        first = next(iter(errors.values()), None)
        self._is_target_read = "target" not in errors
        with self._lock:
            self._view.set_unread(None if first is None else str(first))
        if first is not None:
            raise first

    def note_state(self, state: TargetState) -> None:
        """Take a state that was just written, so that the page shows it before it is read."""
        self._state = _STATES[state]

    def set_live(self, topics: Sequence[TopicView]) -> None:
        """Take the progress that this process itself makes."""
        live = {one.topic: one for one in topics} if self._state is FlowState.RUNNING else {}
        with self._lock:
            self._view.set_live(live)

    def topics(self) -> list[TopicRow]:
        """Return a row for each topic."""
        with self._lock:
            return self._view.rows()

    def halted(self) -> list[HaltedRow]:
        """Return every halted partition."""
        with self._lock:
            return self._view.halted()

    def partitions(self, topic: str) -> list[PartitionRow] | None:
        """Return a row for each partition of a topic; None if there is no such topic."""
        with self._lock:
            return self._view.partitions(topic)

    def lag_of(self, place: TopicPartition, offset: int) -> int | None:
        """Return how many offsets of a source partition are from `offset` on; None if unknown."""
        with self._lock:
            return self._view.lag_of(place, offset)

    def row(self, topics: Sequence[TopicRow]) -> FlowRow:
        """Return the flow with the sums of its topics."""
        with self._lock:
            started = self._view.started
        is_read = self.error is None and self.read_ms is not None
        lags = [one.lag_s for one in topics]
        lag_s = None if None in lags or not is_read else max((one for one in lags if one is not None), default=0.0)
        lag_records, unknown = _lag(topics) if is_read else (None, sum(one.partitions for one in topics))
        lag_per_s = _sum(one.lag_per_s for one in topics) if is_read else None
        records_per_s = _sum(one.records_per_s for one in topics) if is_read else None
        if lag_records is not None and not unknown:
            self._last_lag = lag_records
        soon = None if unknown else catch_up_s(lag_records, lag_per_s=lag_per_s, copied_per_s=records_per_s or 0.0)
        bytes_per_s = sum(one.bytes_per_s for one in topics if one.bytes_per_s is not None)
        is_live = any(one.bytes_per_s is not None for one in topics)
        marked = [one.work.bytes_per_s for one in self._copiers if one.work is not None]
        engine, reason = self._choice or (self.flow.engine, f"mirrorless.engine is {self.flow.engine}")
        return FlowRow(
            name=self.flow.name,
            source=self.flow.source.alias,
            target=self.flow.target.alias,
            state=self._state if self._is_target_read else FlowState.UNKNOWN,
            engine=engine,
            engine_reason=reason,
            copiers=tuple(map(_copier, self._copiers)) if self._is_target_read else (),
            topics=len(topics) if self._has_topics else None,
            partitions=sum(one.partitions for one in topics) if self._has_topics else None,
            started=started if self._has_progress else None,
            halted=sum(one.halted for one in topics) if self._has_topics and self._has_progress else None,
            unknown_partitions=unknown,
            lag_records=lag_records,
            last_lag_records=self._last_lag,
            lag_s=lag_s,
            lag_is_minimum=any(one.lag_is_minimum and one.lag_s == lag_s for one in topics),
            lag_per_s=None if lag_per_s is None else round(lag_per_s, 1),
            catch_up_s=None if soon is None else round(soon, 1),
            rpo_s=self.flow.rpo_seconds,
            records_per_s=None if records_per_s is None else round(records_per_s, 1),
            bytes_per_s=None if not is_read else bytes_per_s if is_live else sum(marked) if marked else None,
            limit_bytes_per_s=self.flow.max_bytes_per_second,
            latency_ms=max((one.latency_ms for one in topics if one.latency_ms is not None), default=None),
            groups_age_ms=self.groups_age_ms if self._state is FlowState.RUNNING else None,
            has_heartbeat=self._has_heartbeat if self._heartbeat_error is None else None,
            heartbeat_ms=self._heartbeat_ms,
            waiting=self.waiting,
            error=self.error,
            problems=() if self._heartbeat_error is None else (self._heartbeat_error,),
            read_ms=self.read_ms,
        )

    def close(self) -> None:
        """Close the connections."""
        self._marks.close()
        for one in (self._states, self._progress):
            if one is not None:
                one.close()

    def _read_topics(self) -> None:
        metadata = self._source.metadata
        if metadata is None:
            _ = self._source.admin  # raises why not
            return
        if metadata is self._seen:
            return
        counts = partition_counts(metadata)
        remote = replicated_on(self.flow, self._source.admin, counts)
        with self._lock:
            self._view.set_topics(remote, counts)
        self._seen, self._has_topics = metadata, True

    def _read_target(self) -> None:
        admin = self._target.admin
        if self._states is None:
            self._states = TargetStates(self.flow, admin=admin)
            self._progress = ProgressTopic(self.flow, admin, must_exist=False)
        assert self._progress is not None
        self._state = _STATES[self._states.read()]
        known = self._progress.read(stopping=lambda: self.is_ending)
        with self._lock:
            self._view.set_progress(known, time.monotonic())
        self._has_progress = True
        self._read_marks()
        self._read_heartbeat()

    def _read_marks(self) -> None:
        marks = self._marks.read()
        now_ms, now_s = int(time.time() * 1000), time.monotonic()
        valid = marks.valid(self.flow, now_ms=now_ms, now=now_s, deployment=self._deployment)
        self._copiers = tuple(mark for mark in valid if mark.is_ready)
        choice = marks.chosen(self.flow, self._deployment) or marks.only_choice()
        if self.flow.engine == "auto" and choice is not None:
            self._choice = choice.engine, choice.reason

    def _read_heartbeat(self) -> None:
        """Read the newest heartbeat; one that cannot be read hides nothing else."""
        if time.monotonic() < self._heartbeat_due_s:
            return
        self._heartbeat_due_s = time.monotonic() + _HEARTBEAT_EVERY_S
        try:
            beat = last_heartbeat(self.flow)
        except MirrorlessError as error:
            self._heartbeat_error = str(error)
        else:
            self._heartbeat_error = None
            self._has_heartbeat = beat is not None
            self._heartbeat_ms = None if beat is None else beat.timestamp_ms

    def _read_ends(self) -> None:
        admin = self._source.admin
        with self._lock:
            places = self._view.places
        if self._next_place >= len(places):
            self._next_place = 0
        some = places[self._next_place : self._next_place + _ENDS_AT_ONCE]
        ends, unknown = high_watermarks(admin, some, attempts=1)
        self._next_place += _ENDS_AT_ONCE
        with self._lock:
            self._view.set_ends(ends, unknown, time.monotonic())


def _lag(topics: Sequence[TopicRow]) -> tuple[int | None, int]:
    """Return the lag of all topics, None if nothing is known of it, and of how many partitions it is not known."""
    unknown = sum(one.unknown_partitions for one in topics)
    known = sum(one.lag_records for one in topics if one.lag_records is not None)
    return None if unknown and not known else known, unknown


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum, None if a part of it is unknown."""
    total = 0.0
    for one in values:
        if one is None:
            return None
        total += one
    return total


def _copier(mark: RunMark) -> CopierRow:
    return CopierRow(
        engine=mark.engine,
        share=None if mark.share.of == 1 else f"{mark.share.number} of {mark.share.of}",
        bytes_per_s=None if mark.work is None else mark.work.bytes_per_s,
    )
