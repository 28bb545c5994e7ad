"""What is counted of one partition's copy."""

from __future__ import annotations

from mirrorless.copy.partition.stats import Spread


def test_a_time_that_is_none_does_not_take_a_report_away() -> None:
    spread = Spread()
    for value_ms in (-5, 7, 1 << 63):
        spread.note(value_ms)
    assert (spread.least, spread.greatest) == (0, (1 << 53) - 1)
    assert spread.average is not None
    assert spread.average < 1 << 63
