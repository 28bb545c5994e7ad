"""The raw wire against a real broker."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.copy.event_loop import EventLoop
from mirrorless.copy.requests import Offset
from mirrorless.copy.wire import EARLIEST, EARLIEST_LOCAL, LATEST, Wire
from mirrorless.errors import ClusterUnavailable
from mirrorless.settings import Cluster
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.local.kafka import EmbeddedCluster


@pytest.fixture
def net() -> Iterator[Any]:
    selector = EventLoop()
    yield selector
    selector.close()


def wire_to(net: Any, servers: str) -> Wire:  # noqa: ANN401 -- the library has no types
    cluster = Cluster(alias="A", bootstrap_servers=servers)
    return Wire(net, cluster="A", config=for_kafka_python(cluster, role="consumer"))


def test_offsets_of_every_kind(net: Any, world: World) -> None:  # noqa: ANN401
    topic = world.topic()
    fill(world.source, topic, (b"%d" % n for n in range(7)))
    wire = wire_to(net, world.source.bootstrap_servers)

    async def ask() -> list[Offset]:
        await wire.connect(timeout_ms=10_000, topics=[topic])
        node = wire.leader((topic, 0))
        assert node is not None
        kinds = EARLIEST, EARLIEST_LOCAL, LATEST
        return [(await wire.offsets(node, [(topic, 0)], at=at))[topic, 0] for at in kinds]

    assert net.run(ask) == [Offset(0, 0), Offset(0, 0), Offset(7, 0)]
    wire.close()


def test_a_topic_that_is_not_there_does_not_keep_the_others_from_connecting(net: Any, world: World) -> None:  # noqa: ANN401
    topic = world.topic()
    wire = wire_to(net, world.source.bootstrap_servers)
    net.run(lambda: wire.connect(timeout_ms=10_000, topics=[topic, "never-made"]))
    assert wire.leader((topic, 0)) is not None
    assert wire.leader(("never-made", 0)) is None
    wire.close()


def test_a_listener_that_says_nothing_is_given_up_in_time(net: Any, source: EmbeddedCluster) -> None:  # noqa: ANN401
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        wire = wire_to(net, f"127.0.0.1:{port}")
        began = time.monotonic()
        with pytest.raises(ClusterUnavailable, match=f"no answer from 127.0.0.1:{port}"):
            net.run(lambda: wire.connect(timeout_ms=1_000, topics=[]))
        assert time.monotonic() - began < 5
        wire.close()
