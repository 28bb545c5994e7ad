"""What of Kafka's protocol earlier releases lack, as far as it makes a difference to the copier."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.cluster_client import EARLIEST_LOCAL, ClusterClient
from mirrorless.protocol.fetch_session import FetchSession
from mirrorless.protocol.requests import Offset
from mirrorless.settings import Cluster
from tests.support.releases import CURRENT
from tests.support.world import World, fill

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.releases import Releases


class Session(FetchSession):
    """Knows in which version it was spoken to."""

    version = 0

    def answered(self, session_id: int, *, version: int) -> None:
        self.version = version
        super().answered(session_id, version=version)


class Can(NamedTuple):
    """What a leader does."""

    topic_has_an_id: bool
    fetch_by_id: bool
    tells_of_producers: bool
    first_local_offset: Offset


@pytest.mark.parametrize(
    ("release", "can"),
    [
        ("2.8.2", Can(True, False, True, Offset(0, 0))),
        ("3.9.1", Can(True, True, True, Offset(0, 0))),
        (CURRENT, Can(True, True, True, Offset(0, 0))),
    ],
)
def test_what_brokers_can_be_asked(releases: Releases, tmp_path: Path, release: str, can: Can) -> None:
    world = World(releases[release], releases[release], tmp_path)
    topic = world.topic()
    fill(world.source, topic, [b"1"], enable_idempotence="true")
    net, session = EventLoop(), Session()
    cluster = Cluster(alias="A", bootstrap_servers=world.source.bootstrap_servers)
    wire = ClusterClient(net, cluster="A", config=for_kafka_python(cluster, role="consumer"))

    async def ask() -> Can:
        await wire.connect(timeout_ms=10_000, topics=[topic])
        place = topic, 0
        node = wire.leader(place)
        assert node is not None
        (fetched,) = await wire.fetch(node, [(place, 0, -1)], session=session)
        assert not fetched.error_code
        producer_id = int.from_bytes(bytes(fetched.records[43:51]), "big")
        return Can(
            wire.topic_id(topic) is not None,
            session.version >= 13,
            (await wire.producers(node, {place: producer_id}))[place] is not None,
            (await wire.offsets(node, [place], at=EARLIEST_LOCAL))[place],
        )

    found = net.run(ask)
    wire.close()
    net.close()
    assert found == can
