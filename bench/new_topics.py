"""How soon a new topic is copied: from its creation to its first record on the target, beside MirrorMaker 2.

    python -m bench.new_topics [--there 500] [--new 20]

A flow of many topics runs, with `refresh.topics.interval.seconds = 2` for either engine. Then topics are created one
after the other, each with one record at once, and each is waited for.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bench.brokers import source_and_target
from bench.engines import DEFAULT, OURS
from tests.support.peer import MirrorMaker, peer_settings
from tests.support.processes import Mirrorless
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.local.embedded_kafka import EmbeddedCluster

_LOOK_S: Final = 0.05
_START_S: Final = 300.0
_PATIENCE_S: Final = 300.0
_PAUSE_S: Final = 1.0
_OFTEN: Final = {"refresh.topics.interval.seconds": "2"}


def create(cluster: EmbeddedCluster, topics: list[str]) -> None:
    """Create topics of one partition, and write one record into each."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result()
    client = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    for topic in topics:
        client.produce(topic, value=b"first")
    assert client.flush(60) == 0


def wait_for(cluster: EmbeddedCluster, topics: list[str], *, seconds: float) -> float:
    """Wait until each of these topics has a record; returns the seconds it took."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    began, left = time.monotonic(), set(topics)
    while left:
        assert time.monotonic() < began + seconds, f"{len(left)} topics are not copied, among them {min(left)}"
        there = left & admin.list_topics(timeout=10).topics.keys()
        asked = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in there}
        for place, future in (admin.list_offsets(asked, request_timeout=10) if asked else {}).items():
            if future.exception() is None and future.result().offset > 0:
                left.discard(place.topic)
        if left:
            time.sleep(_LOOK_S)
    return time.monotonic() - began


@contextmanager
def running(engine: str, world: World) -> Iterator[None]:
    """Run an engine for the flow of a world."""
    if engine == OURS:
        world.write_settings(**_OFTEN)
        with Mirrorless(world.file):
            yield
        return
    settings = peer_settings(world, **_OFTEN, **{"tasks.max": "1", "emit.heartbeats.enabled": "false"})
    with MirrorMaker(world.folder, settings, as_shipped=True):
        yield


def measured(engine: str, clusters: dict[str, EmbeddedCluster], *, there: int, new: int) -> list[float]:
    """Seconds for each new topic of a flow in which so many are there already."""
    stem = f"new-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder), topics=[f"{stem}-.*"])
        old = [f"{stem}-there-{number}" for number in range(there)]
        create(world.source, old)
        found = []
        with running(engine, world):
            wait_for(world.target, [world.remote(topic) for topic in old], seconds=_START_S)
            for number in range(new):
                time.sleep(_PAUSE_S)
                topic = f"{stem}-late-{number}"
                create(world.source, [topic])
                found.append(wait_for(world.target, [world.remote(topic)], seconds=_PATIENCE_S))
    return found


def main() -> None:
    """Measure both engines and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--there", type=int, default=500)
    parser.add_argument("--new", type=int, default=20)
    given = parser.parse_args()
    with source_and_target() as clusters:
        for engine in (OURS, DEFAULT):
            found = measured(engine, clusters, there=given.there, new=given.new)
            print(
                f"{engine}: {len(found)} new topics beside {given.there}: median {statistics.median(found):.1f} s, "
                f"maximum {max(found):.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
