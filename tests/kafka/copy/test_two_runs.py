"""Two runs of one flow at once, with records by which the target has forgotten the producer."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.engines.control import Control
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.copy.planning.run_order import RunOrder
from mirrorless.copy.slot.lease import LeaseTerms
from mirrorless.copy.slot.worker import Slot
from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.progress.mark_writer import take_back
from tests.kafka.copy.test_refused_while_forgotten import FORGETFUL, fill_old
from tests.support.link import Link, LinkTerms
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.settings import Flow

RECORDS = 60_000


@pytest.fixture(scope="module")
def link() -> Iterator[Link]:
    found = Link(LinkTerms(round_trip_s=0.12))  # the target forgets a producer every 50 ms
    yield found
    found.close()


@pytest.fixture(scope="module")
def forgetful(link: Link) -> Iterator[EmbeddedCluster]:
    door = SecureListener(name="DOOR", protocol="PLAINTEXT", settings={}, advertised=(link.port,))
    with start_clusters([ClusterSpec(name="forgetful", settings=FORGETFUL, secure=(door,))]) as started:
        link.connect(started["forgetful"].secure_ports("DOOR")[0])
        yield started["forgetful"]


@pytest.fixture
def world(source: EmbeddedCluster, forgetful: EmbeddedCluster, tmp_path: Path) -> World:
    return World(source, forgetful, tmp_path)


def lease(world: World, rows: list[LeaseRow], *, seconds: float) -> list[Report]:
    """Copy in a slot of its own, as another process would."""
    return lease_of(world.place().load(), rows, seconds=seconds)


def lease_of(flow: Flow, rows: list[LeaseRow], *, seconds: float) -> list[Report]:
    with closing(Slot(flow)) as slot:
        return slot.copy(rows, terms=LeaseTerms(seconds=seconds), watch=Control().of(1, 0))


def planned(planner: LeasePlanner, world: World) -> list[LeaseRow]:
    return [row for pile in planner.plan(world.place().load()) for row in pile]


@pytest.mark.nightly
def test_the_second_leaves_old_records_to_the_first(world: World) -> None:
    topic = world.topic(partitions=2)
    fill_old(world, topic, RECORDS, partitions=2)
    world.discover()
    flow = world.place().load()
    with closing(LeasePlanner(flow, bounded=False)) as second, ThreadPoolExecutor() as pool:
        with closing(LeasePlanner(flow, bounded=False)) as first:
            rows = [planned(planner, world) for planner in (first, second)]
            runs = [pool.submit(lease, world, some, seconds=6) for some in rows]
            copied, left = (run.result() for run in runs)
        assert sum(report.records for report in copied) == RECORDS
        assert sum(report.records for report in left) == 0
        assert all(report.state == "caught up" or "another run of this flow" in str(report.error) for report in left)
        assert world.assert_equal(topic) == RECORDS
        # The first one has stopped and taken its mark back: the second one continues, without a wait.
        fill_old(world, topic, 100, partitions=2)
        assert sum(report.records for report in lease(world, planned(second, world), seconds=4)) == 100
    assert world.assert_equal(topic) == RECORDS + 100


def test_records_that_the_target_remembers_are_not_waited_for(world: World, target: EmbeddedCluster) -> None:
    world.target = target  # it has Kafka's defaults
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": target.bootstrap_servers})
    world.discover()
    flow = world.place().load()
    with closing(LeasePlanner(flow, bounded=False)) as first, closing(LeasePlanner(flow, bounded=False)) as second:
        rows = [planned(planner, world) for planner in (first, second)]
        assert [row.is_first for some in rows for row in some] == [True, False]
        (report,) = lease(world, rows[1], seconds=3)
    assert report.records == 100


def test_a_run_whose_mark_another_one_deleted_claims_again(world: World) -> None:
    """As after it was cut off from the target for longer than its mark is valid."""
    world.topic()
    world.discover()
    flow = world.place().load()
    with closing(LeasePlanner(flow, bounded=False, order=RunOrder(flow, run="cut off"))) as planner:
        assert [row.is_first for row in planned(planner, world)] == [True]
        take_back(flow, "cut off")
        assert [row.is_first for row in planned(planner, world)] == [True]
        with closing(LeasePlanner(flow, bounded=False)) as later:
            assert [row.is_first for row in planned(later, world)] == [False]


def test_where_both_believe_to_be_first_it_is_reported(world: World, link: Link) -> None:
    """As after a run was frozen for longer than its mark is valid. One of them is far from the target."""
    topic = world.topic()
    world.discover()
    with closing(LeasePlanner(world.place().load(), bounded=False)) as planner:
        rows = [replace(row, is_first=True) for row in planned(planner, world)]
    near = world.place().load()
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": f"127.0.0.1:{link.port}"})
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(lease_of, flow, rows, seconds=8) for flow in (near, world.place().load())]
        while not all(run.done() for run in runs):
            fill_old(world, topic, 10, partitions=1)
            time.sleep(0.5)  # the far one resumes in between
    reports = [report for run in runs for report in run.result()]
    assert any("another run of this flow" in report.events for report in reports), reports
