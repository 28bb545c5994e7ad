"""copy replicates for a tick, with heartbeats and checkpoints, which their own functions leave to it meanwhile."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.client import MirrorClient
from mirrorless.functions.copying import EMITTED_BY_COPY
from mirrorless.progress.mark_reader import MarkReader
from tests.functions.test_heartbeats import beats
from tests.support.events import schedule
from tests.support.offsets import commit
from tests.support.world import fill

if TYPE_CHECKING:
    from tests.functions.conftest import Start
    from tests.support.world import World

RECORDS = 1_000


def test_one_invocation_copies_for_a_tick_and_emits_heartbeats_and_checkpoints(world: World, start: Start) -> None:
    topic = world.topic(partitions=2)
    group = f"group-{topic}"
    fill(world.source, topic, (b"%d" % number for number in range(RECORDS)), partitions=2)
    commit(world.source, group, {(topic, 0): 42})
    world.write_settings(
        **{
            "groups": group,
            "mirrorless.copy.tick.seconds": "3",
            "emit.heartbeats.enabled": "true",
            "emit.heartbeats.interval.seconds": "1",
            "emit.checkpoints.interval.seconds": "1",
        }
    )
    world.discover()
    function, heartbeat, checkpoint = (start(name) for name in ("copy", "heartbeat", "checkpoint"))
    function.begin(schedule(), timeout_s=120)
    until = time.monotonic() + 90  # the function's process may start slowly
    with closing(MarkReader(world.place().load())) as marks:
        while not marks.read()._marks:
            assert time.monotonic() < until, function.output.read_text()
    began = time.monotonic()
    for other in (heartbeat, checkpoint):
        other.begin(schedule(), timeout_s=60)
    for other in (heartbeat, checkpoint):
        answer = other.end()
        assert answer.error is None
        assert answer.result == {"flow": world.flow, **EMITTED_BY_COPY}
    assert time.monotonic() - began < 5

    done = function.end()
    assert done.error is None, function.output.read_text()
    answer = done.result
    assert answer["note"] == "its time is over"
    assert (answer["copied"], answer["records"], answer["lag_records"]) == (True, RECORDS, 0)
    assert answer["heartbeats"]["beats"] >= 3
    assert answer["checkpoints"]["groups"] == 1
    assert "left" not in answer["heartbeats"]
    assert world.assert_equal(topic) == RECORDS
    there = [one // 1000 for one in beats(world.target, world.source_alias, world.target_alias)]
    assert there == list(range(there[0], there[0] + len(there)))
    translated = MirrorClient(world.place().load().target).translate_offsets(world.source_alias, group)
    assert {place: offset for place, (offset, _) in translated.items()} == {(world.remote(topic), 0): 42}

    metrics = function.metrics()
    assert sum(metrics["record-count"]) == RECORDS
    assert metrics["copy-running"] == [1]
    assert metrics["lag-records"][-1] == 0
    assert len(metrics["replication-latency-ms"]) >= 1
    assert "heartbeat-count" not in metrics  # Prometheus only
    assert sum(metrics["checkpoint-count"]) == 1

    # Warm: no record is copied twice, and the invocation has ended its threads.
    fill(world.source, topic, [b"one more"])
    again = function.invoke(schedule(), timeout_s=60)
    assert (again["records"], again["waited_s"]) == (1, 0)
    assert heartbeat.invoke(schedule(), timeout_s=6)["beats"] >= 1
    assert world.assert_equal(topic) == RECORDS + 1
