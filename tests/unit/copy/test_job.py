"""When a copy with an end gives up: after leases that got nowhere, not after those in which partitions were done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.outcome import GAVE_UP
from mirrorless.copy.engines.spark.job import _Job
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.partition.lease_rows import Report

if TYPE_CHECKING:
    from pathlib import Path

FAR = 1_000_000_000


def at(partition: int, offset: int, *, state: str = "copying") -> Report:
    return Report(
        topic="t",
        partition=partition,
        remote_topic="A.t",
        state=state,
        records=0,
        copied_bytes=0,
        first_offset=None,
        next_offset=FAR + offset,
        lag_records=0 if state == "caught up" else 1,
        latency_ms=None,
        began_ms=None,
        ended_ms=None,
    )


def job(folder: Path, told: list[str]) -> _Job:
    place = FlowRef(location="mm2.properties", flow="A->B", bounded=True)
    return _Job(place, Control(str(folder)), lambda _: None, told.append)


def test_a_partition_that_is_done_takes_nothing_from_the_others(tmp_path: Path) -> None:
    told: list[str] = []
    one = job(tmp_path, told)
    for lease in range(6):
        # The next lease has only those that were not done.
        done = [at(lease, 10, state="caught up")]
        one.lease_ended(done + [at(partition, lease + 1) for partition in range(lease + 1, 8)])
    assert not one.outcome.stuck
    one.lease_ended([at(partition, 10, state="caught up") for partition in (6, 7)])
    assert one.outcome.complete
    assert told == []


def test_three_leases_that_get_nowhere_are_enough(tmp_path: Path) -> None:
    told: list[str] = []
    one = job(tmp_path, told)
    for lease in range(4):
        assert not one.outcome.stuck
        assert told == []
        one.lease_ended([at(0, 5), at(1, 5)])
        assert one.outcome.stuck is (lease == 3)
    assert not one.outcome.complete
    assert told == [GAVE_UP]


def test_leases_in_which_partitions_wait_for_another_run_are_none_that_get_nowhere(tmp_path: Path) -> None:
    told: list[str] = []
    one = job(tmp_path, told)
    for _ in range(6):
        one.lease_ended([replace(at(0, 5, state="resuming"), waits=True), at(1, 10, state="caught up")])
    assert not one.outcome.stuck
    assert told == []
