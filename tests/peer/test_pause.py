"""A running MirrorMaker 2 obeys the pause and the resume that we write."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from mirrorless.client import MirrorClient
from mirrorless.clusters.target_state import TargetState, TargetStates
from tests.support.peer import MirrorMaker, peer_settings
from tests.support.world import fill, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.world import World

pytestmark = pytest.mark.timeout(400)


def eventually(condition: Callable[[], bool], peer: MirrorMaker) -> None:
    until = time.monotonic() + 120
    while not condition():
        peer.check()
        assert time.monotonic() < until, peer.log.read_text()[-3000:]
        time.sleep(0.5)


def test_mirrormaker_copies_nothing_until_the_flow_is_resumed(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.discover()
    flow = world.place().load()
    states = TargetStates(flow)
    states.write(TargetState.PAUSED)

    def copied() -> int:
        return len(read(world.target, world.remote(topic))[0])

    with MirrorMaker(world.folder, peer_settings(world)) as peer:
        # Its other connectors run: checkpoints have their topic.
        checkpoints = f"{world.source_alias}.checkpoints.internal"
        eventually(lambda: checkpoints in MirrorClient(flow.target).checkpoint_topics(), peer)
        time.sleep(5)
        assert copied() == 0
        states.write(TargetState.STARTED)
        eventually(lambda: copied() == 100, peer)
    states.close()
