"""How much it says of a partition that an answer has nothing of it."""

from __future__ import annotations

import pytest

from mirrorless.copy.fetcher import _silence
from mirrorless.protocol.requests import Fetched


def parts(*sizes: int) -> list[Fetched]:
    return [
        Fetched(place=("t", number), error_code=0, last_stable_offset=1, aborted=[], records=bytes(size))
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((), 1),
        ((0, 0), 1),
        ((100, 400), 1),  # the others left room for more
        ((600, 400), 0.02),
        ((501, 0), 0.01),  # room for what was too large
        ((600, 400, 0, 0), 0.02),
        ((5_000,), 0.01),  # one batch that is larger than an answer
        ((10,) * 101, 1),  # of one more than was known to be behind
    ],
)
def test_silence_counts_as_often_as_it_was_ones_turn(sizes: tuple[int, ...], expected: float) -> None:
    assert _silence(parts(*sizes), max_bytes=1_000, behind=100) == expected
