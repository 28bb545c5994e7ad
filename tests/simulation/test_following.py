"""No offset of a group on the target is ahead of the copied records, or of what the group has read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mirrorless.offsets.other_sources import OtherSources
from tests.simulation.following import Following
from tests.simulation.operated import operated
from tests.simulation.world import Violation, clock

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEDULES = int(os.environ.get("MIRRORLESS_FOLLOWING", "3"))


@pytest.fixture(scope="module")
def product() -> Iterator[None]:
    with operated():
        yield


def run(seed: int) -> int:
    """Run a schedule; returns how many offsets were followed."""
    schedule = Following(seed)
    clock.world = schedule.world
    schedule.run()
    return schedule.committed


def test_schedules_hold(product: None) -> None:
    assert sum(run(seed) for seed in range(SCHEDULES)) > 0


def test_an_offset_that_is_one_too_far_is_found(product: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherSources, "earliest", lambda _self, _group, _place, downstream: downstream + 1)
    with pytest.raises(Violation, match="is committed at"):
        run(0)
