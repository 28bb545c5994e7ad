"""A lag in seconds from offsets that were seen at some times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.web.lag_time import LagTime


def test_nothing_left_is_no_lag() -> None:
    assert LagTime().see(5.0, end=10, next_offset=10) == (0.0, False)


def test_records_from_before_the_first_look_have_waited_at_least_since_then() -> None:
    lag = LagTime()
    assert lag.see(100.0, end=50, next_offset=0) == (0.0, True)
    assert lag.see(107.0, end=60, next_offset=10) == (7.0, True)


def test_a_copy_that_reached_an_earlier_end_lags_by_the_time_since_then() -> None:
    lag = LagTime()
    lag.see(0.0, end=100, next_offset=0)
    lag.see(10.0, end=200, next_offset=100)
    # The record at offset 150 came half-way between the two looks.
    assert lag.see(20.0, end=300, next_offset=150) == (15.0, False)


def test_a_copy_that_stops_lags_more_and_more() -> None:
    lag = LagTime()
    lag.see(0.0, end=100, next_offset=100)
    assert lag.see(10.0, end=150, next_offset=100) == (10.0, False)
    assert lag.see(30.0, end=150, next_offset=100) == (30.0, False)
    assert lag.see(40.0, end=150, next_offset=150) == (0.0, False)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=80))
def test_it_is_never_negative_and_never_longer_than_it_has_looked(steps: list[tuple[int, int]]) -> None:
    lag, end, position = LagTime(), 0, 0
    for now, (written, copied) in enumerate(steps):
        end += written
        position = min(end, position + copied)
        seconds, _ = lag.see(float(now), end=end, next_offset=position)
        assert 0 <= seconds <= now
        assert (position == end) <= (seconds == 0)


@given(st.integers(1, 500))
def test_memory_is_bounded(looks: int) -> None:
    lag = LagTime()
    for now in range(looks):
        lag.see(float(now), end=10 * (now + 1), next_offset=0)
    assert len(lag._marks) <= 17
    assert lag.see(float(looks), end=10 * looks, next_offset=0) == (float(looks), True)
