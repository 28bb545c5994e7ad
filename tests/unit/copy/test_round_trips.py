"""How many requests wait for each other when partitions are resumed: both clusters in memory, each request 1 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.resume.target_logs import states_of
from tests.support.fake_cluster import LATENCY_S

if TYPE_CHECKING:
    from tests.support.fake_flow import FakeFlow


def test_all_that_is_asked_of_a_target_leader_takes_one_round_trip(flow: FakeFlow) -> None:
    began = flow.loop.monotonic()
    flow.loop.run(states_of(flow.target.client, 1, [flow.copy_of()]))
    assert flow.loop.monotonic() - began == pytest.approx(LATENCY_S)
    assert flow.target.requests == {"producers": 1, "log_ends": 1, "offsets": 2}


def test_the_start_and_the_end_of_a_first_copy_take_one_round_trip(flow: FakeFlow) -> None:
    flow.produce(b"value")
    began = flow.loop.monotonic()
    assert flow.loop.run(flow.epochs().start_and_end(flow.copy_of())) == (0, 1)
    assert flow.loop.monotonic() - began == pytest.approx(LATENCY_S)
