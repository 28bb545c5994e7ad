"""Reports of a lease that runs are made for whoever watches, and for nobody else: thousands of them take a while."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mirrorless.copy import slot as slots
from mirrorless.copy.control import Control
from mirrorless.copy.ledger import Ledger
from mirrorless.copy.planning import Planner
from mirrorless.copy.slot import run_lease
from tests.support.world import fill

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.copy.partition import PartitionCopy
    from mirrorless.copy.rows import Report
    from tests.support.world import World


@pytest.mark.parametrize("watched", [False, True])
def test_a_running_lease_reports_where_somebody_watches(
    world: World, monkeypatch: pytest.MonkeyPatch, *, watched: bool
) -> None:
    fill(world.source, world.topic(), [b"one"])
    world.discover()
    world.write_settings(**{"mirrorless.lease.seconds": "2"})
    place = world.place(bounded=False)
    with closing(Planner(place.load(), bounded=False)) as planner:
        (rows,) = planner.plan(place.load())
    made: list[list[Report]] = []
    reports_of = Ledger.reports

    def kept(ledger: Ledger, copies: Iterable[PartitionCopy]) -> list[Report]:
        made.append(reports_of(ledger, copies))
        return made[-1]

    monkeypatch.setattr(Ledger, "reports", kept)
    control = Control(str(world.folder) if watched else None)
    try:
        last = run_lease(place, rows, control=control, lease=1, slot=0)
        in_the_lease = len(made)
    finally:
        if (left := slots._slots.pop(world.flow, None)) is not None:
            left.close()
    assert [report.records for report in last] == [1]
    assert last in made
    assert (in_the_lease > 1) is watched
    assert list(control.collect().values()) == ([last] if watched else [])
