"""A process that was suspended in the middle of an operation wakes up after another one has completed or undone it.

Some of the schedules of `python -m tests.suspended`, which tries every write.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.functions.engine import FunctionsEngine
from mirrorless.copy.flow.memory_limits import SPARK_WORKER
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations import run
from mirrorless.operations.refusals import Terms
from mirrorless.settings import load
from tests.support.moving import PARTITIONS, Applications
from tests.support.secured import eventually
from tests.support.world import World, fill, read
from tests.suspended.schedules import IDLE_MS, Case, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.copy.engines.functions.run_result import RunResult
    from mirrorless.local.embedded_kafka import EmbeddedCluster

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def impatient() -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    """Two clusters that close idle connections soon: an abort waits for that."""
    settings = {"connections.max.idle.ms": str(IDLE_MS)}
    with start_clusters([ClusterSpec(name=name, settings=settings) for name in ("source", "target")]) as started:
        yield started["source"], started["target"]


@pytest.mark.parametrize(
    ("case", "schedule"),
    [
        # The live topic has the name of the one that is to be deleted.
        pytest.param(
            Case("failback", turns=True, stranded="reset"),
            ("DeleteTopicsRequest", "continue", 0),
            marks=pytest.mark.nightly,
        ),
        # The abort was to save the tail.
        (Case("failback", turns=True, stranded="reset"), ("DeleteTopicsRequest", "abort", -120)),
        # No operation would explain the fence.
        (Case("switchover"), ("incremental_alter_configs", "abort", 120)),
        # Clients would be sent to the cluster that was left.
        pytest.param(Case("switchover", turns=True), ("switch file", "continue", 0), marks=pytest.mark.nightly),
    ],
    ids=["delete-continue", "delete-abort", "fence-abort", "switch-continue"],
)
def test_what_a_suspended_process_does_late_does_no_harm(
    impatient: tuple[EmbeddedCluster, EmbeddedCluster],
    tmp_path: Path,
    case: Case,
    schedule: tuple[str, str, float],
) -> None:
    before, meanwhile, ahead_s = schedule
    result = Schedule(impatient, tmp_path, case).run(before, meanwhile, ahead_s=ahead_s)
    assert before in result.label
    assert result.wrong == [], (tmp_path / "process.log").read_text()


def test_a_run_that_plans_while_its_flow_is_stopped_copies_nothing(
    impatient: tuple[EmbeddedCluster, EmbeddedCluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read the state of before; the failover waits for its mark, though it is not ready."""
    world = World(*impatient, tmp_path)
    applications = Applications(world, takes_turns=True)
    topic = applications.topic
    fill(world.source, topic, [b"%d" % number for number in range(30)], partitions=PARTITIONS)
    world.copy_to_the_end()
    fill(world.source, topic, [b"%d" % number for number in range(30, 60)], partitions=PARTITIONS)
    plans, may_plan = threading.Event(), threading.Event()
    plan = LeasePlanner.plan

    def slow(self: LeasePlanner, *arguments: object, **named: object) -> object:
        plans.set()
        assert may_plan.wait(120)
        return plan(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(LeasePlanner, "plan", slow)
    results: list[RunResult] = []
    ended: list[float] = []
    place = world.place(bounded=False)
    with closing(FunctionsEngine(place, control=Control(), memory=SPARK_WORKER)) as engine:

        def copies() -> None:
            results.append(engine.run(SimpleNamespace(left_s=60.0), lambda _: None))
            ended.append(time.monotonic())

        thread = threading.Thread(target=copies)
        thread.start()
        assert plans.wait(60)
        done: list[float] = []

        def fails_over() -> None:
            over = run.begin(load(str(world.file)), OperationKind.FAILOVER, world.target_alias, Terms())
            assert over.error is None, over
            done.append(time.monotonic())

        other = threading.Thread(target=fails_over)
        other.start()
        eventually(lambda: "open" in _steps(world))
        time.sleep(2)
        assert not done
        may_plan.set()
        thread.join(100)
        other.join(100)
    assert not results[0].copied
    assert results[0].paused
    assert done[0] > ended[0] - 1
    assert sum(map(len, read(world.target, topic).values())) == 30


def _steps(world: World) -> set[str]:
    found, _ = run.show(load(str(world.file)))
    return {name for one in found for name in one.steps}
