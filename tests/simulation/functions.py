"""The functions engine in the simulation: containers that are frozen between their invocations, as Lambda's.

An invocation runs the product's `FunctionsEngine` with its marks. Doubled and overlapping ones run beside each other in
containers of their own; one that exceeds its limit is killed, with the container.
"""

# ruff: noqa: ARG002 -- they take what the real ones take
from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mirrorless.copy.engines.functions import engine as engine_module
from mirrorless.copy.flow.memory_limits import SPARK_WORKER
from mirrorless.copy.planning import dealing, run_order
from mirrorless.errors import ClusterUnavailable, MirrorlessError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.structs import DefaultRecordBatch
from mirrorless.progress import mark_writer
from mirrorless.progress.run_marks import MARKS_PARTITION, WHOLE, RunMarks
from tests.simulation import threads
from tests.simulation.cluster import NAMES
from tests.simulation.copier import CopierProcess
from tests.simulation.seams import SimulatedProducer
from tests.simulation.threads import ThreadedProcess
from tests.simulation.world import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.settings import Flow

_MARGIN_S = 2.0
"""An invocation ends by itself so long before its limit."""

_DEALS = {"WORTH_BYTES": 1, "EVERY_S": 3.0, "_RATE_S": 0.2}
"""So often, and for so little, partitions are assigned to other shares."""


def replace_engine_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the engine use simulated marks, threads and leases."""
    monkeypatch.setattr(mark_writer, "TopicProducer", WaitingProducer)
    monkeypatch.setattr(mark_writer, "threading", _THREADING)
    monkeypatch.setattr(run_order, "MarkReader", SimulatedMarkReader)
    monkeypatch.setattr(engine_module, "side_by_side", lambda *works: [work() for work in works])
    monkeypatch.setattr(engine_module, "run_watched_lease", _run_lease)
    monkeypatch.setattr(engine_module, "connect_slot", lambda *_, **__: None)
    monkeypatch.setattr(engine_module, "forget_slot", lambda *_: None)
    monkeypatch.setattr(engine_module, "LeasePlans", SimulatedPlans)
    for name, often in _DEALS.items():
        monkeypatch.setattr(dealing, name, often)


class _Lock:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_THREADING = SimpleNamespace(Thread=threads.SimulatedThread, Event=threads.Event, Lock=_Lock)


class WaitingProducer(SimulatedProducer):
    """A producer whose flush waits, in a thread."""

    def flush(self, seconds: float) -> int:
        """As of `TopicProducer`."""
        until = clock.monotonic() + seconds
        while (left := len(self._waiting) + self.under_way) and clock.monotonic() < until:
            threads.sleep(0.01)
        return left


class SimulatedMarkReader:
    """In place of `MarkReader`: what the partition has, as its leader shows it, a moment ago."""

    def __init__(self, flow: Flow, **_: Any) -> None:  # noqa: ANN401
        self._cluster = clock.process.world.clusters[flow.target.alias]
        self._topic = flow.offset_storage_topic
        self._alias = flow.source.alias
        self.is_missing = False
        self.marks = RunMarks(self._alias)
        self._read_to = 0
        self._was_read = False

    def read(self) -> RunMarks:
        """As of `MarkReader`."""
        threads.sleep(0.005)
        while not self._take():
            threads.sleep(0.2)
        self._was_read = True
        return self.marks

    def wait(self, seconds: float) -> RunMarks:
        """As of `MarkReader`."""
        self._take()
        if seconds:
            threads.sleep(seconds)
            self._take()
        return self.marks

    def close(self) -> None:
        """As of `MarkReader`."""
        self._was_read, self._read_to, self.marks = False, 0, RunMarks(self._alias)

    def _take(self) -> bool:
        partition = self._cluster.topics[self._topic].partitions[MARKS_PARTITION]
        if partition.leader is None or partition.leader % NAMES in self._cluster.down:
            return False
        now = clock.monotonic()
        for header, body in partition.log.batches_from(self._read_to):
            for record in DefaultRecordBatch(header.pack() + body):
                self.marks.take(record.key, record.value, record.offset, now=now, is_news=self._was_read)
            self._read_to = header.next_offset
        return True


class SimulatedPlans:
    """In place of `LeasePlans`: the rows of what both sides have, as administrators' clients see them now."""

    def __init__(self, place: Any, control: Any, order: Any) -> None:  # noqa: ANN401
        self.complaint = self.idle = ""
        self._container = cast("FunctionContainer", clock.process)
        self.planner = SimpleNamespace(missing=(), refuse_paused=lambda: None, planned_again=self._again)

    def _again(self, rows: Sequence[LeaseRow]) -> list[LeaseRow]:
        wanted = {row.place for row in rows}
        return [row for row in self._container.rows() if row.place in wanted]

    def prepare(self, flow: Flow) -> bool:
        """As of `LeasePlans`."""
        threads.sleep(0.05)
        return True

    def refuse_paused(self, flow: Flow) -> None:
        """As of `LeasePlans`."""

    def next(self, *, stopping: Callable[[], bool], slots: int | None = None) -> list[list[LeaseRow]] | None:
        """As of `LeasePlans`."""
        threads.sleep(0.05 + 0.3 * self._container.world.random.random())
        return [self._container.rows()]

    def close(self) -> None:
        """As of `LeasePlans`."""


def _run_lease(
    place: Any,  # noqa: ANN401
    rows: Sequence[LeaseRow],
    *,
    watch: Any,  # noqa: ANN401
    seconds: float,
    **_: Any,  # noqa: ANN401
) -> list[Report]:
    container = cast("FunctionContainer", clock.process)
    return container.run_coroutine(container.lease(rows, watch, seconds))


class _TimeLeft:
    def __init__(self, seconds: float) -> None:
        self._until = clock.monotonic() + seconds

    @property
    def left_s(self) -> float:
        return max(0.0, self._until - clock.monotonic())


class FunctionContainer(ThreadedProcess, CopierProcess):
    """A container with its engine, which is kept from invocation to invocation; frozen between them."""

    is_busy = False
    share = WHOLE

    def invoke(self, *, limit_s: float) -> None:
        """Begin an invocation, which is killed after `limit_s` seconds."""
        self.is_busy = True
        self.resume(slept=self.world.random.random() < 0.5)
        self._invocation += 1
        mine = self._invocation

        def exceed() -> None:
            if self.is_busy and self._invocation == mine and not self.dead:
                self.world.note(f"{self.name} exceeds its limit")
                self.kill()

        self.world.later(limit_s, None, exceed)
        self.begin(lambda: self._invocation_of(limit_s))

    _invocation = 0
    _engine: engine_module.FunctionsEngine | None = None

    async def _copies(self) -> None:
        """Nothing runs without an invocation."""
        self._begin_clients()

    def _invocation_of(self, limit_s: float) -> None:
        if self._engine is None:
            place = SimpleNamespace(
                load=lambda: self.flow, bounded=False, deployment="", flow=self.flow.name, is_functions=True
            )
            slot = SimpleNamespace(stopping=lambda: self.stopping, observe=self._observed)
            control = SimpleNamespace(
                stopping=lambda: self.stopping, of=lambda *_: slot, complain=lambda *_, **__: None
            )
            self._engine = engine_module.FunctionsEngine(
                cast("Any", place), control=cast("Any", control), memory=SPARK_WORKER, share=self.share
            )
        try:
            result = self._engine.run(_TimeLeft(limit_s - _MARGIN_S), self._observed)
            self.world.note(f"{self.name}: {result.note}, {result.records} records")
            self.world.events[f"run: {result.note}"] += 1
        except MirrorlessError as error:
            self.world.note(f"{self.name}: {error}")
        self.is_busy = False
        self.suspend()

    def _observed(self, reports: Sequence[Report]) -> None:
        self.reports = reports

    def rows(self) -> list[LeaseRow]:
        """The partitions to copy."""
        return [replace(row, is_first=True) for row in self._rows()]

    async def lease(self, rows: Sequence[LeaseRow], watch: Any, seconds: float) -> list[Report]:  # noqa: ANN401
        """Copy for one lease."""
        try:
            await self._connect(rows)
            lease = self._lease(rows, watch=watch, seconds=min(seconds, self._terms["seconds"]))
            return await lease.run()
        except (ClusterUnavailable, kafka_errors.KafkaError) as error:
            self.world.note(f"{self.name}: {error}")
            await self.sleep(2.0)
            return []


__all__ = ["FunctionContainer", "replace_engine_clients"]
