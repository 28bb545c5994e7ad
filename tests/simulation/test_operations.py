"""Schedules of operations in their short form, and every seed that once showed something."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.simulation import planting
from tests.simulation.operated import operated
from tests.simulation.operating import Operating, Setup, Step, setup_of
from tests.simulation.running import run_seed
from tests.simulation.world import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEDULES = int(os.environ.get("MIRRORLESS_OPERATIONS", "20"))

STORED: dict[int, str] = {
    61: "the world suspended each copier before its second write, also when everything was healed",
    120: "as 61, after a switchover that was refused",
    178: "a second close found the fence lifted, by the logs that it had read again: KeyError",
    282: "an aborted switchover committed the offsets of groups after the next one had moved them",
}
"""Seeds with what they showed: faults of the product, of a world that did not behave as Kafka, or documented limits."""


@pytest.fixture(scope="module")
def product() -> Iterator[None]:
    with operated():
        yield


@pytest.mark.parametrize("seed", STORED, ids=str)
def test_a_stored_seed_holds(product: None, seed: int) -> None:
    assert run_seed(seed, of="operations").error is None


def test_schedules_hold() -> None:
    """In processes of their own, with the same order of sets each time."""
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.simulation", "--of", "operations", "--schedules", str(SCHEDULES)]
    ended = subprocess.run(
        [*command, "--keep-going"], env=environment, check=False, capture_output=True, text=True, cwd=planting.ROOT
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_one_seed_is_one_schedule(product: None) -> None:
    one, other = run_seed(1004, of="operations", trace=True), run_seed(1004, of="operations", trace=True)
    assert _timeless(one.trace) == _timeless(other.trace)
    assert one.events == other.events
    assert one.copied == other.copied > 0


@pytest.mark.parametrize("ahead_s", [0.0, 120.0, -120.0])
def test_a_failback_notices_late_writers_whatever_its_clock_says(product: None, ahead_s: float) -> None:
    """They write to the old cluster for eight seconds after the failover, the failback begins after one."""
    setup = Setup(
        turns=True,
        identical=False,
        fence="config",
        partitions=1,
        copies=False,
        checkpoints=False,
        reads=False,
        copier_stops=0,
        stays_s=8.0,
        stranded="reset",
        returns_s=1.0,
        steps=(Step(8.0, "failover B"), Step(11.0, "failback A", ahead_s)),
    )
    schedule = Operating(1, setup=setup)
    clock.world = schedule.world
    schedule.run()
    assert schedule.story()[:2] == ["failover B: completed", "failback A: producers write to A: stop them"]


def _timeless(trace: list[str]) -> list[str]:
    """Without the names of temporary folders."""
    return [" ".join(word for word in line.split() if "/tmp" not in word) for line in trace]  # noqa: S108


def test_every_kind_of_operation_is_in_the_schedules() -> None:
    """And each is interrupted by others, suspended before a write, and given from machines whose clocks differ."""
    setups = [setup_of(seed)[0] for seed in range(500)]
    steps = [step for one in setups for step in one.steps]
    kinds = {step.command.split()[0] for step in steps}
    assert kinds == {"switchover", "failover", "failback", "drill", "close", "continue", "abort"}
    assert {step.command.split()[0] for step in steps if step.stop_at} >= {
        "switchover",
        "failover",
        "failback",
        "close",
    }
    assert {step.ahead_s for step in steps} == {0.0, 120.0, -120.0}
    assert {(one.turns, one.identical, one.fence) for one in setups} == {
        (turns, identical, fence)
        for turns, identical in ((False, False), (True, False), (True, True))
        for fence in ("config", "acl")
    }
