"""Between two leases the copy goes on, unless somebody else has a say in it."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition

from mirrorless.cli import root
from mirrorless.copy.engines import lease_run
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.planning.lease_planner import LeasePlanner
from tests.support.feed import Feed
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.lease import Lease
    from mirrorless.copy.slot.worker import Slot


class Worker:
    """A process's leases of one flow, one after the other, as a run without an end has them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._number = 0
        folder = world.folder / "control"
        folder.mkdir()
        self.control = Control(str(folder))
        self.records = 0
        world.write_settings(**{"mirrorless.lease.seconds": "2"})

    def lease(self, *, discover: bool = True) -> list[Report]:
        if discover:
            self._world.discover()
        self._number += 1
        place = self._world.place(bounded=False)
        with closing(LeasePlanner(place.load(), bounded=False)) as planner:
            (rows,) = planner.plan(place.load())
        reports = run_lease(place, rows, control=self.control, lease=self._number, slot=0, holdover=True)
        self.records += sum(report.records for report in reports)
        return reports

    @property
    def lease_object(self) -> Lease:
        held = lease_run._slots[self._world.flow]._held
        assert held is not None
        return held.lease

    def copies(self) -> dict[tuple[str, int], PartitionCopy]:
        return dict(self.lease_object._copies)

    def restart(self) -> Slot:
        """Have the next lease in another slot, as in another process; returns the one that does not know of it."""
        return lease_run._slots.pop(self._world.flow)


@pytest.fixture
def worker(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.setattr(lease_run, "HOLDOVER_S", 300.0)  # on a busy machine too, nothing ends because time is up
    yield Worker(world)
    if (slot := lease_run._slots.pop(world.flow, None)) is not None:
        slot.close()


def on_target(world: World, topic: str, partitions: int = 1) -> int:
    with closing(Consumer({"bootstrap.servers": world.target.bootstrap_servers, "group.id": "test"})) as consumer:
        places = [TopicPartition(world.remote(topic), partition) for partition in range(partitions)]
        return sum(consumer.get_watermark_offsets(place, timeout=60)[1] for place in places)


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_next_lease_takes_the_copy_over_as_it_is(world: World, worker: Worker) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, [b"a"] * 100, partitions=2)
    worker.lease()
    assert worker.records == 100
    assert worker.control.held()
    first = worker.lease_object
    # One record for each partition: how many batches more records make is the producer's choice.
    fill(world.source, topic, [b"b"] * 2, partitions=2)
    wait_for(lambda: on_target(world, topic, 2) == 102)  # there is no lease now
    fill(world.source, topic, [b"c"] * 2, partitions=2)
    reports = worker.lease()
    assert worker.lease_object is first
    assert (sum(report.records for report in reports), sum(report.batches for report in reports)) == (4, 4)
    assert [report.first_offset for report in reports] == [50, 50]
    assert {report.state for report in reports} == {"caught up"}
    assert worker.control.left() == []
    worker.lease()
    assert worker.lease_object is first
    assert worker.records == 104
    assert world.assert_equal(topic) == 104


def test_another_process_has_the_next_lease(world: World, worker: Worker) -> None:
    topic = world.topic(partitions=4)
    with Feed(world, topic, per_second=5_000):
        for _ in range(2):
            worker.lease()
            old = worker.restart()  # and copies on
            worker.lease()
            old.close()
    world.copy_to_the_end()
    assert world.assert_equal(topic) > 5_000


@pytest.mark.nightly
def test_copies_under_way_are_kept_and_every_record_is_counted_once(world: World, worker: Worker) -> None:
    topic = world.topic(partitions=4)
    idle = world.topic()
    with Feed(world, topic, per_second=2_000) as feed:
        worker.lease()
        first = worker.copies()
        for _ in range(3):
            worker.lease()
            kept = {place for place, copy in worker.copies().items() if copy is first[place]}
            assert kept == {(topic, number) for number in range(4)}
    wait_for(lambda: on_target(world, topic, 4) == feed.produced)
    worker.lease()
    assert worker.records == world.assert_equal(topic) == feed.produced
    assert on_target(world, idle) == 0


def test_a_reset_in_between_is_obeyed(world: World, worker: Worker) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"a", b"b"])
    worker.lease()
    arguments = ["offsets", "reset", str(world.file), "--topic", topic, "--offset", "earliest", "--yes"]
    assert CliRunner().invoke(root, arguments).exit_code == 0
    (report,) = worker.lease()
    assert (report.records, report.first_offset) == (2, 0)
    assert values(read(world.target, world.remote(topic))[0]) == [b"a", b"b"] * 2


def test_a_changed_configuration_is_obeyed(world: World, worker: Worker) -> None:
    topic = world.topic()
    worker.lease()
    first = worker.lease_object
    world.write_settings(**{"offset.lag.max": "7"})
    fill(world.source, topic, [b"a"])
    worker.lease()
    assert worker.lease_object is not first
    assert world.assert_equal(topic) == 1
