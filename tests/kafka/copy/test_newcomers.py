"""Topics and partitions that appear while a lease runs are copied within it, and nothing else is disturbed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewPartitions

from mirrorless.copy.engines.control import Control
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.copy.slot.lease import LeaseTerms
from mirrorless.copy.slot.worker import Slot
from tests.support.world import World, fill, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import LeaseRow, Report

LEASE_S = 120.0


def copy(world: World, rows: list[LeaseRow], slot: int, control: Control) -> list[Report]:
    with closing(Slot(world.place(bounded=False).load())) as one:
        return one.copy(rows, terms=LeaseTerms(seconds=LEASE_S), watch=control.of(1, slot), slot=slot)


def wait_until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + LEASE_S / 3
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.1)


def count(world: World, topic: str) -> int:
    return sum(map(len, read(world.target, world.remote(topic)).values()))


def test_within_the_lease_and_each_by_one_slot(world: World, tmp_path: Path) -> None:
    world.tasks_max = 2
    control = Control(str(tmp_path))
    there = world.topic(partitions=2)
    fill(world.source, there, (b"%d" % number for number in range(200)), partitions=2)
    world.write_settings(**{f"{world.flow}.topics": f"{there}, {there}-.*"})
    world.discover()
    flow = world.place(bounded=False).load()
    with closing(LeasePlanner(flow, bounded=False)) as planner, ThreadPoolExecutor() as pool:
        piles = planner.plan(flow)
        assert len(piles) == 2
        running = [pool.submit(copy, world, rows, slot, control) for slot, rows in enumerate(piles)]
        wait_until(lambda: count(world, there) == 200)
        new = world.topic(partitions=3, name=f"{there}-new")
        fill(world.source, new, (b"%d" % number for number in range(300)), partitions=3)
        admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
        admin.create_partitions([NewPartitions(there, 4)])[there].result()
        world.discover()
        wait_until(lambda: count(world, new) == 300)
        fill(world.source, there, (b"%d" % number for number in range(400)), partitions=4)
        wait_until(lambda: count(world, there) == 600)
        assert not any(run.done() for run in running)
        control.ask_to_stop()
        reports = [report for run in running for report in run.result()]
    assert world.assert_equal(new) == 300
    assert world.assert_equal(there) == 600
    places = [(report.topic, report.partition) for report in reports if report.topic in (there, new)]
    assert sorted(places) == sorted([(there, number) for number in range(4)] + [(new, number) for number in range(3)])
