"""The simulation in its short form, and every seed that once showed something."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.simulation import planting
from tests.simulation.running import prepared, run_seed

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEDULES = int(os.environ.get("MIRRORLESS_SCHEDULES", "1000"))
SECONDS = float(os.environ.get("MIRRORLESS_SIMULATION_SECONDS", "50"))
"""A slow or busy machine runs fewer."""

STORED: dict[int, str] = {
    18: "the target lost its whole tail while appends were in flight",
    34: "a marker that was not replicated is lost with its leader, and written again",
    44: "retention on the target, and then the loss of all that was left",
    156: "the source topic is recreated twice",
    708: "an unclean election on the source while the progress is old: records are repeated, and none is missing",
    1468: "a claim is lost just while the copy is resumed (functions)",
    2427: "a marker is the first of a leader's epoch: a copy with identical offsets halted as truncated",
    2471: "retention deletes copied records that the progress does not have: they were repeated",
    2503: "a process with old metadata took a recreated topic for the newer one: records were repeated",
    10224: "two runs, and retention: an epoch began while another run still appended in the one before",
    61: "a run that was suspended while it began an epoch took others' records for its own (skip)",
    11139: "a leader that lost its tail does not come back",
    2119: "brokers forget producers within 0.3 s: an append of a run that was not the first arrived after that",
    208907: "a run that was suspended overwrote the progress, and halted at what others had copied (skip)",
    216413: "of two runs one skipped a gap that the other had passed, and both copied what followed (skip)",
    1050: "the source lost a tail that was copied and not in the progress, and got other records: they were skipped",
    217576: "the same with some progress, after a fence and a kill",
}
"""Seeds with what they showed: faults of the product, or of a world that did not behave as Kafka."""


@pytest.fixture(scope="module")
def product() -> Iterator[None]:
    with prepared():
        yield


@pytest.mark.parametrize("seed", STORED, ids=str)
def test_a_stored_seed_holds(product: None, seed: int) -> None:
    assert run_seed(seed).error is None


def test_schedules_hold() -> None:
    """In processes of their own, with the same order of sets each time."""
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    limits = ["--schedules", str(SCHEDULES), "--seconds", str(SECONDS)]
    command = [sys.executable, "-m", "tests.simulation", *limits, "--keep-going"]
    ended = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, cwd=planting.ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_one_seed_is_one_schedule(product: None) -> None:
    one, other = run_seed(7, trace=True), run_seed(7, trace=True)
    assert one.trace == other.trace
    assert one.events == other.events
    assert one.copied == other.copied > 0
