"""A link to one side that is cut and whose connections are reset: the copy resumes, loses nothing, repeats nothing."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.kafka.copy.test_functions_engine import until, writing
from tests.kafka.copy.test_refused_while_forgotten import DAYS_AGO_MS, FORGETFUL
from tests.support.function_run import FunctionRun
from tests.support.link import Link, LinkTerms
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WITHIN_S = 15
"""So soon every partition has new records once the link is back."""
TERMS = LinkTerms(round_trip_s=0.05)
TIMEOUT_MS = 2_000


class Linked(NamedTuple):
    clusters: dict[str, EmbeddedCluster]
    links: dict[str, Link]


@pytest.fixture(scope="module")
def linked() -> Iterator[Linked]:
    """A source, and a target that forgets the producer of old records at once, with a link before each."""
    with ExitStack() as stack:
        links = {name: Link(TERMS) for name in ("source", "target")}
        for link in links.values():
            stack.callback(link.close)
        specs = [
            ClusterSpec(
                name=name,
                settings=FORGETFUL if name == "target" else {},
                secure=(SecureListener(name="DOOR", protocol="PLAINTEXT", settings={}, advertised=(link.port,)),),
            )
            for name, link in links.items()
        ]
        clusters = stack.enter_context(start_clusters(specs))
        for name, link in links.items():
            link.connect(*clusters[name].secure_ports("DOOR"))
        yield Linked(clusters, links)


class Ends:
    """How many records the remote partitions have, by a client that does not use the link."""

    def __init__(self, world: World, partitions: dict[str, int]) -> None:
        self._admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
        self._latest = {
            TopicPartition(world.remote(topic), number): OffsetSpec.latest()
            for topic, count in partitions.items()
            for number in range(count)
        }

    def now(self) -> list[int]:
        return [one.result().offset for one in self._admin.list_offsets(self._latest).values()]

    def resumed(self) -> None:
        """Wait until every partition has new records."""
        before = self.now()
        until(lambda: all(new > old for new, old in zip(self.now(), before, strict=True)), seconds=WITHIN_S)


@pytest.mark.nightly
@pytest.mark.parametrize("far", ["source", "target"])
def test_a_copy_resumes_after_cuts_and_resets(linked: Linked, tmp_path: Path, far: str) -> None:
    """The second cut is longer than the timeout of requests, and TCP delivers what it held back after the resume.

    Of old records the target accepts any sequence, so that a request that is late would be appended twice.
    """
    world, link = World(linked.clusters["source"], linked.clusters["target"], tmp_path), linked.links[far]
    fresh, old = world.topic(partitions=2), world.topic()
    world.discover()
    alias = world.source_alias if far == "source" else world.target_alias
    world.write_settings(
        **{
            f"{alias}.bootstrap.servers": f"127.0.0.1:{link.port}",
            f"{alias}.consumer.request.timeout.ms": str(TIMEOUT_MS),
            f"{alias}.producer.request.timeout.ms": str(TIMEOUT_MS),
        }
    )
    ends = Ends(world, {fresh: 2, old: 1})
    with (
        writing(world, fresh, partitions=2, age_ms=0) as fresh_written,
        writing(world, old, partitions=1, age_ms=DAYS_AGO_MS) as old_written,
        FunctionRun(world, seconds=120) as run,
    ):
        run.begun()
        ends.resumed()
        for seconds in (1, 5):
            link.cut(seconds, retransmits=True)
            time.sleep(seconds)
            ends.resumed()
        time.sleep(2)  # what was held back arrives
        link.become(LinkTerms(round_trip_s=TERMS.round_trip_s, resets=0.3))
        time.sleep(3)
        link.become(TERMS)
        ends.resumed()
        assert link.reset() > 0
        ends.resumed()
        assert run.process.poll() is None, run.output.read_text()
        seen = fresh_written() + old_written()
        until(lambda: sum(ends.now()) >= seen, seconds=WITHIN_S)
        run.control.ask_to_stop()
        run.result()
    world.write_settings(
        **{
            f"{world.source_alias}.bootstrap.servers": world.source.bootstrap_servers,
            f"{world.target_alias}.bootstrap.servers": world.target.bootstrap_servers,
        }
    )
    world.copy_to_the_end()
    assert world.assert_equal(fresh) == fresh_written()
    assert world.assert_equal(old) == old_written()
