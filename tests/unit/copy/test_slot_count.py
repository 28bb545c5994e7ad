"""A flow has as many slots as it needs: all cores while it is behind, one while it has little to do."""

from __future__ import annotations

from mirrorless.copy.engines.spark.job import SLOT_BYTES_PER_S, SlotCount
from mirrorless.copy.partition.lease_rows import Report

LEASE_S = 100


def report(*, records: int = 0, copied: int = 0, lag: int = 0, state: str = "copying", waits: bool = False) -> Report:
    return Report(
        topic="t",
        partition=0,
        remote_topic="A.t",
        state=state,
        records=records,
        copied_bytes=copied,
        first_offset=None,
        next_offset=None,
        lag_records=lag,
        latency_ms=None,
        began_ms=None,
        ended_ms=None,
        waits=waits,
    )


class Leases:
    def __init__(self, *, cores: int) -> None:
        self.now = 0.0
        self.cores = cores
        self.count = SlotCount(clock=lambda: self.now)

    def end(self, *reports: Report) -> int:
        self.now += LEASE_S
        return self.count.after(reports, cores=self.cores)


def test_a_quiet_flow_comes_to_one_slot_by_halves() -> None:
    leases = Leases(cores=12)
    assert [leases.end(report(records=10, copied=1_000)) for _ in range(5)] == [6, 3, 1, 1, 1]


def test_a_flow_has_the_slots_of_its_rate() -> None:
    leases = Leases(cores=12)
    steady = report(records=1_000_000, copied=LEASE_S * SLOT_BYTES_PER_S * 5 - 1)
    assert [leases.end(steady) for _ in range(3)] == [6, 5, 5]


def test_a_flow_that_is_behind_gets_all_cores_at_once() -> None:
    leases = Leases(cores=12)
    for _ in range(4):
        leases.end(report())
    assert leases.end(report(records=100_000, copied=1_000, lag=100_000)) == 12  # 100 s of what arrives


def test_some_seconds_of_lag_at_the_end_of_a_lease_are_none() -> None:
    leases = Leases(cores=2)
    assert leases.end(report(records=100_000, lag=29_000)) == 1
    assert leases.end(report(records=100_000, lag=31_000)) == 2


def test_a_flow_that_copies_nothing_of_what_it_has_left_is_behind() -> None:
    leases = Leases(cores=4)
    assert leases.end(report(lag=1)) == 4


def test_a_lease_that_was_not_planned_changes_nothing_and_executors_come_and_go() -> None:
    leases = Leases(cores=8)
    assert leases.end() == 8
    leases.cores = 4
    assert leases.end() == 4
    leases.cores = 8
    assert leases.end() == 4


def test_what_is_halted_or_left_to_another_run_needs_no_slots() -> None:
    leases = Leases(cores=4)
    halted, waiting = report(lag=1_000_000, state="halted"), report(lag=1_000_000, waits=True)
    assert [leases.end(halted, waiting, report(records=10)) for _ in range(3)] == [2, 1, 1]
