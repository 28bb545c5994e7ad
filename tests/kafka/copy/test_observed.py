"""Reports of a lease that runs are made for whoever watches, and for nobody else: thousands of them take a while."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.copy.engines import lease_run
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.copy.slot.progress_tracker import ProgressTracker
from tests.support.world import fill

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.copy.partition.state import PartitionCopy
    from tests.support.world import World


def test_a_running_lease_reports_where_somebody_watches(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world.source, world.topic(), [b"one"])
    world.discover()
    world.write_settings(**{"mirrorless.lease.seconds": "2"})
    place = world.place(bounded=False)
    with closing(LeasePlanner(place.load(), bounded=False)) as planner:
        (rows,) = planner.plan(place.load())
    made: list[list[Report]] = []
    reports_of = ProgressTracker.reports

    def kept(tracker: ProgressTracker, copies: Iterable[PartitionCopy]) -> list[Report]:
        made.append(reports_of(tracker, copies))
        return made[-1]

    monkeypatch.setattr(ProgressTracker, "reports", kept)
    control = Control(str(world.folder))
    try:
        last = run_lease(place, rows, control=control, lease=1, slot=0)
        in_the_lease = len(made)
    finally:
        if (left := lease_run._slots.pop(world.flow, None)) is not None:
            left.close()
    assert [report.records for report in last] == [1]
    assert last in made
    assert in_the_lease > 1
    assert list(control.collect().values()) == [last]
