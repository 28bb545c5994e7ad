"""Copies what a flow's source has now, in this process."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import forget_slot, run_lease
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.planning.lease_planner import LeasePlanner

if TYPE_CHECKING:
    from mirrorless.settings import Flow, Settings


def copy_once(settings: Settings, flow: Flow) -> None:
    """Copy one lease, up to the ends of the source at its beginning; raises `MirrorlessError`."""
    place = FlowRef(location=settings.file, flow=flow.name, bounded=True)
    with closing(LeasePlanner(flow, bounded=True)) as planner:
        rows = [row for pile in planner.plan(flow) for row in pile]
        try:
            if rows:
                run_lease(place, rows, control=Control(), lease=1, slot=0)
        finally:
            forget_slot(place)
