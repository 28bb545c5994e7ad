"""A copy rests beside a MirrorMaker 2 that runs for the same flow, and takes over from it as soon as it is stopped."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.doctor.checks import examine
from mirrorless.errors import MirrorMaker2Runs
from mirrorless.rights import Function
from tests.support.peer import MirrorMaker, peer_settings
from tests.support.world import fill, read

if TYPE_CHECKING:
    from mirrorless.settings import Flow
    from tests.support.world import World

pytestmark = pytest.mark.timeout(400)
_PATIENCE_S = 120


def refused(flow: Flow, peer: MirrorMaker) -> str:
    """Plan leases until it is said why there are none."""
    until = time.monotonic() + _PATIENCE_S
    with closing(LeasePlanner(flow, bounded=False)) as planner:
        while time.monotonic() < until:
            peer.check()
            try:
                planner.plan(flow)
            except MirrorMaker2Runs as error:
                return str(error)
            time.sleep(0.5)
    return "not refused"


@pytest.mark.nightly
def test_nothing_is_copied_twice(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.discover()
    flow = world.place().load()
    with MirrorMaker(world.folder, peer_settings(world, **{"offset.flush.interval.ms": "1000"})) as peer:
        # One that ran before MirrorMaker 2 did.
        assert "copies this flow too" in refused(flow, peer)
        (warned,) = [one for one in examine(flow, [Function.PARTITION_COPY]) if one.check == "MirrorMaker 2"]
        for sign in ("-mm2 has members", "MirrorMaker 2 wrote progress", "has status RUNNING"):
            assert sign in warned.text
        # One that starts beside it.
        with (
            closing(LeasePlanner(flow, bounded=True)) as late,
            pytest.raises(MirrorMaker2Runs, match=r"group s\d+-mm2 has members"),
        ):
            late.plan(flow)
    fill(world.source, topic, (b"%d" % number for number in range(100, 200)))
    assert {report.state for report in world.copy()} == {"caught up"}
    assert read(world.target, world.remote(topic)) == read(world.source, topic)
