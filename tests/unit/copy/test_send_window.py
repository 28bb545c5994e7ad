"""What a target remembers of our producer, by the age of records."""

from __future__ import annotations

import pytest

from mirrorless.copy.partition.send_window import PRODUCER_EXPIRY_MS, SendWindow, remembered_ms

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("expiry_ms", "age_ms", "remembered"),
    [
        (PRODUCER_EXPIRY_MS, 12 * 60 * MINUTE_MS, True),
        (PRODUCER_EXPIRY_MS, 12 * 60 * MINUTE_MS + 1, False),
        (30 * MINUTE_MS, 15 * MINUTE_MS, True),
        (30 * MINUTE_MS, 16 * MINUTE_MS, False),
        (20 * MINUTE_MS, 0, False),
        (300, 0, False),
        (300, -5 * MINUTE_MS, False),
    ],
)
def test_a_record_counts_as_remembered_for_half_of_an_expiry_that_outlasts_differing_clocks(
    expiry_ms: int, age_ms: int, remembered: bool
) -> None:
    window = SendWindow(remembered_ms(expiry_ms))
    assert window.remembers(NOW_MS - age_ms, NOW_MS) is remembered
    window.acknowledged(NOW_MS - age_ms, now_ms=NOW_MS, now=0.0, more=False)
    window.sent(NOW_MS - age_ms, now=0.0)
    assert window.has_room(NOW_MS) is remembered
