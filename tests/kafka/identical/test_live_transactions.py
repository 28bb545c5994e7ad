"""Transactions that are copied while they are written: records and markers take turns, none in the other's place."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.kafka.identical.test_brokers_that_die import PARTITIONS, produce
from tests.kafka.identical.test_identical_copy import identical
from tests.kafka.identical.test_writers import lease, rows_of
from tests.support.identical import assert_identical

if TYPE_CHECKING:
    from tests.support.world import World


def test_records_and_markers_take_turns(world: World, troubles: list[str]) -> None:
    topic = identical(world, PARTITIONS)
    world.discover()
    stop = threading.Event()
    with ThreadPoolExecutor() as pool:
        load = pool.submit(produce, world, topic, stop)
        copy = pool.submit(lease, world, rows_of(world), seconds=8)
        time.sleep(4)
        stop.set()
        assert load.result() > 50
        reports = copy.result()
    assert [(report.state, report.error) for report in reports] == [("caught up", None)] * PARTITIONS
    assert assert_identical(world, topic) > 0
    assert [one for one in troubles if "claimed" not in one and "begins at offset 0" not in one] == []
