"""How far behind a run is and how fast it copies, by a clock of the test's own."""

from __future__ import annotations

from mirrorless.copy.engines.work_meter import WorkMeter
from tests.support.reports import report


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Measured:
    """A meter and its clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.meter = WorkMeter(clock=self.clock)

    def at(self, seconds: float, *, copied: int, lag: int = 0, ended: bool = False) -> None:
        """Have so many bytes, of records of a hundred bytes, copied in this lease by then."""
        self.clock.now = 1_000.0 + seconds
        some = [report(records=copied // 100, copied_bytes=copied, lag_records=lag)]
        if ended:
            self.meter.lease_ended(some)
        else:
            self.meter.observed(some)

    @property
    def rate(self) -> float:
        assert self.meter.work is not None
        return self.meter.work.bytes_per_s

    @property
    def lag_bytes(self) -> int:
        assert self.meter.work is not None
        return self.meter.work.lag_bytes


def test_before_the_first_report_nothing_is_known() -> None:
    assert Measured().meter.work is None


def test_the_rate_of_the_first_seconds_is_not_known() -> None:
    """A run that has just taken over is not taken for a slow one."""
    one = Measured()
    one.at(0.5, copied=10_000)
    assert one.rate == 0
    one.at(4.9, copied=400_000)
    assert one.rate == 0
    one.at(5, copied=500_000)
    assert one.rate == 100_000


def test_the_rate_is_over_the_last_thirty_seconds_and_all_leases_in_them() -> None:
    one = Measured()
    for second in range(1, 31):
        one.at(second, copied=second * 1_000, ended=second == 30)
    assert one.rate == 1_000
    for second in range(31, 61):
        one.at(second, copied=(second - 30) * 5_000)
    assert one.rate == 5_000


def test_the_rate_is_over_a_lease_that_is_longer_than_that() -> None:
    one = Measured()
    one.at(60, copied=60_000, ended=True)
    assert one.rate == 1_000
    one.at(120, copied=180_000, ended=True)
    assert one.rate == 3_000


def test_nothing_copied_is_no_rate() -> None:
    one = Measured()
    one.at(10, copied=10_000, ended=True)
    one.at(41, copied=0)
    one.at(71, copied=0)
    assert one.rate == 0


def test_the_size_of_what_is_left_is_that_of_what_was_copied() -> None:
    one = Measured()
    one.at(1, copied=1_000, lag=7)
    assert one.lag_bytes == 7_000  # ten records are no sample
    one.at(2, copied=200_000, lag=7)
    assert one.lag_bytes == 700
    assert one.meter.work is not None
    assert one.meter.work.lag_records == 7


def test_what_is_halted_or_left_to_another_run_is_no_backlog() -> None:
    meter = WorkMeter(clock=Clock())
    meter.observed(
        [report(lag_records=5), report("u", state="halted", lag_records=70), report("v", waits=True, lag_records=900)]
    )
    assert meter.work is not None
    assert (meter.work.lag_records, meter.work.lag_bytes) == (5, 5_000)
