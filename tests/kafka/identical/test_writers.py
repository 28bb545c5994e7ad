"""One process writes a copy with identical offsets at a time; what another one writes is noticed before more is."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.copy.engines.control import Control
from mirrorless.copy.identical import claims
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.copy.slot.lease import LeaseTerms
from mirrorless.copy.slot.worker import Slot
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.progress.topic import ProgressTopic
from mirrorless.protocol.cluster_client import ClusterClient
from mirrorless.protocol.markers import write_markers
from tests.kafka.identical.test_identical_copy import identical, transactions
from tests.support.identical import assert_identical, ends, records_at
from tests.support.processes import Mirrorless
from tests.support.secured import eventually
from tests.support.world import World, delete, fill

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.progress.records import Claim


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter times, in the same proportions."""
    monkeypatch.setattr(claims, "CONFIRM_EVERY_S", 0.5)
    monkeypatch.setattr(claims, "CERTAIN_FOR_S", 3.0)
    monkeypatch.setattr(claims, "WAIT_S", 7.0)
    monkeypatch.setattr("mirrorless.copy.slot.lease.CONFIRM_EVERY_S", 0.5)


def rows_of(world: World) -> list[LeaseRow]:
    with closing(LeasePlanner(world.place().load(), bounded=False)) as planner:
        return [row for pile in planner.plan(world.place().load()) for row in pile]


def lease(world: World, rows: list[LeaseRow], *, seconds: float) -> list[Report]:
    """Copy in a slot of its own, as another process would."""
    with closing(Slot(world.place().load())) as slot:
        return slot.copy(rows, terms=LeaseTerms(seconds=seconds), watch=Control().of(1, 0))


def foreign_markers(world: World, topic: str, count: int) -> None:
    """Have another program write markers to the remote partition, as an operator who ends a transaction might."""
    place = (world.remote(topic), 0)

    async def write() -> None:
        await client.connect(timeout_ms=20_000, topics=[place[0]])
        node = client.leader(place)
        assert node is not None
        assert await write_markers(client, node, place, producer=1, epoch=0, count=count) == 0

    net = EventLoop()
    cluster = world.place().load().target
    client = ClusterClient(net, cluster="target", config=for_kafka_python(cluster, role="producer"))
    try:
        net.run(write)
    finally:
        client.close()
        net.close()


@pytest.mark.nightly
def test_of_two_processes_the_first_one_stops(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    topic = identical(world)
    transactions(world, topic)
    world.discover()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(lease, world, rows_of(world), seconds=25)
        until = time.monotonic() + 20
        while ends(world.target, world.remote(topic)) != ends(world.source, topic):
            assert time.monotonic() < until, "the first process copies nothing"
        second = pool.submit(lease, world, rows_of(world), seconds=20)
        transactions(world, topic)
        (one,), (other,) = first.result(), second.result()
    assert one.state == "halted"
    assert "another process has claimed this copy" in str(one.error)
    assert (other.state, other.error) == ("caught up", None)
    assert assert_identical(world, topic) == 48
    # The second one has released its claim: the next one need not wait.
    transactions(world, topic, rounds=1)
    (report,) = world.copy()
    assert (report.state, report.records) == ("caught up", 6)
    assert assert_identical(world, topic) == 54


@pytest.mark.nightly
def test_a_claim_is_written_again_into_a_progress_topic_that_was_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next owner's claim follows it, so that the target takes markers of that one at once."""
    hurry(monkeypatch)
    topic = identical(world)
    transactions(world, topic)
    world.copy()  # claims and releases, so that the next claim has another number than 0
    with closing(LeasePlanner(world.place().load(), bounded=False)) as planner, ThreadPoolExecutor() as pool:
        rows = [row for pile in planner.plan(world.place().load()) for row in pile]
        owner = pool.submit(lease, world, rows, seconds=25)
        transactions(world, topic, rounds=1)
        eventually(lambda: ends(world.target, world.remote(topic)) == ends(world.source, topic))
        before = claim_of(world, topic)
        assert before is not None
        assert before.number > 0
        delete(world.target, world.progress_topic)
        world.discover()
        eventually(lambda: claim_of(world, topic) == before)
        planner.plan(world.place().load())  # which writes the rest again
        transactions(world, topic, rounds=1)
        (report,) = owner.result()
    assert (report.state, report.error) == ("caught up", None)
    transactions(world, topic, rounds=1)
    (report,) = world.copy()
    assert (report.state, report.records) == ("caught up", 6)
    after = claim_of(world, topic)
    assert after is not None
    assert after.number > before.number
    assert assert_identical(world, topic) == 24 + 3 * 6


def claim_of(world: World, topic: str) -> Claim | None:
    flow = world.place().load()
    with closing(ProgressTopic(flow, Admin(flow.target))) as progress:
        known = progress.read().get((topic, 0))
    return None if known is None else known.claim


def test_offsets_that_another_program_took_stop_the_partition_for_good(world: World) -> None:
    topic = identical(world)
    transactions(world, topic)
    world.copy()
    before = ends(world.target, world.remote(topic))
    foreign_markers(world, topic, 2)
    fill(world.source, topic, [b"1", b"2", b"3"])
    for _ in range(2):
        (report,) = world.copy()
        assert (report.state, report.records) == ("halted", 0)
        assert "the copy is not identical" in str(report.error)
        assert "delete the remote topic, then run `mirrorless offsets reset`" in str(report.error)
    assert ends(world.target, world.remote(topic)) == (before[0], before[1] + 2)


@pytest.mark.nightly
def test_offsets_that_are_taken_while_it_copies_stop_it_after_one_batch(world: World) -> None:
    topic = identical(world)
    transactions(world, topic)
    world.discover()
    with ThreadPoolExecutor() as pool:
        copy = pool.submit(lease, world, rows_of(world), seconds=12)
        until = time.monotonic() + 10
        while ends(world.target, world.remote(topic)) != ends(world.source, topic):
            assert time.monotonic() < until, "nothing is copied"
        foreign_markers(world, topic, 1)
        end = ends(world.source, topic)[1]
        for number in range(20):
            fill(world.source, topic, [b"%d" % number])
            time.sleep(0.2)
        (report,) = copy.result()
    assert report.state == "halted"
    assert f"source offset {end} is at offset {end + 1} of {world.remote(topic)}-0" in str(report.error)
    there = len(records_at(world.target, world.remote(topic))[0])
    (report,) = world.copy()  # also in the next lease
    assert (report.state, report.records) == ("halted", 0)
    assert len(records_at(world.target, world.remote(topic))[0]) == there


def test_a_process_that_is_killed_is_followed_by_another(world: World) -> None:
    topic = identical(world)
    world.write_settings(**{"mirrorless.engine": "functions", "mirrorless.copy.tick.seconds": "10"})
    transactions(world, topic)
    remote = world.remote(topic)
    with ThreadPoolExecutor() as pool:
        with Mirrorless(world.file) as running:
            wait_for_records(world, remote, 24)
            load = pool.submit(transactions, world, topic, 60)
            wait_for_records(world, remote, 100)
            running.kill()
        load.result()
        with Mirrorless(world.file):
            wait_for_records(world, remote, 24 + 60 * 6)
    assert assert_identical(world, topic) == 24 + 60 * 6
    assert ends(world.target, remote) == ends(world.source, topic)


def wait_for_records(world: World, remote: str, count: int) -> None:
    until = time.monotonic() + 150
    while True:
        try:
            there = len(records_at(world.target, remote)[0])
        except KeyError:
            there = 0
        if there >= count:
            return
        assert time.monotonic() < until, f"{there} of {count} records are copied"
        time.sleep(0.5)
