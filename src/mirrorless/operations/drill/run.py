"""Runs the drill of one flow."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final

from mirrorless import client_logs
from mirrorless.operations.drill.canary import move_canary
from mirrorless.operations.drill.gather import gather
from mirrorless.operations.drill.report import report_of

if TYPE_CHECKING:
    from mirrorless.operations.drill.report import DrillReport
    from mirrorless.settings import Flow, Settings

MOST_POSITIONS: Final = 500


def drill_flow(
    settings: Settings, flow: Flow, *, most_positions: int = MOST_POSITIONS, canary: bool = False
) -> DrillReport:
    """Rehearse a failover of one flow of a file. Writes nothing to a cluster, except what `move_canary` does.

    Raises `ClusterError` if an end does not answer.
    """
    client_logs.set_up()
    began_ms = int(time.time() * 1000)
    moved = [move_canary(settings, flow)] if canary else []
    facts = gather(flow, location=settings.file, most_positions=most_positions, chance=random.Random())  # noqa: S311 -- a sample
    return report_of(facts, began_ms=began_ms, ended_ms=int(time.time() * 1000), more=moved)
