"""How many produce requests a connection may have in flight: as many as the link holds."""

from __future__ import annotations

from mirrorless.copy.slot.in_flight_limit import MOST_REQUESTS, InFlightLimit


def test_nearby_there_are_five() -> None:
    limit = InFlightLimit()
    for _ in range(1_000):
        limit.answered(0.002, limited=True)
    assert limit.requests == 5


def test_far_away_there_are_more_as_long_as_answers_take_no_longer() -> None:
    limit = InFlightLimit()
    for _ in range(20):
        limit.answered(0.1, limited=True)
    assert limit.requests == 25
    limit.answered(0.25, limited=True)
    assert limit.requests == 25
    for _ in range(1_000):
        limit.answered(0.11, limited=True)
    assert limit.requests == MOST_REQUESTS


def test_what_was_never_needed_is_not_allowed() -> None:
    limit = InFlightLimit()
    for _ in range(100):
        limit.answered(0.1, limited=False)
    assert limit.requests == 5


def test_requests_that_only_wait_become_fewer() -> None:
    limit = InFlightLimit()
    for _ in range(20):
        limit.answered(0.1, limited=True)
    for _ in range(12):
        limit.answered(1.0, limited=True)
    assert limit.requests == 13
    for _ in range(100):
        limit.answered(1.0, limited=True)
    assert limit.requests == 2
