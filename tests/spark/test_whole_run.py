"""`mirrorless run` does all of it: copies, translates the offsets of groups, beats, and outlives its own processes."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import psutil
import pytest

from mirrorless.client import MirrorClient
from tests.spark.test_run import copied, wait_for
from tests.support.feed import Feed
from tests.support.offsets import commit, committed
from tests.support.processes import Mirrorless
from tests.support.world import World, fill


def test_groups_find_their_offsets_and_clients_the_heartbeats(world: World) -> None:
    topic = world.topic(partitions=4)
    group = f"group-{topic}"
    fill(world.source, topic, (b"%d" % n for n in range(1_000)), partitions=4)
    offsets = {(topic, partition): 100 + partition for partition in range(4)}
    back = f"{world.target_alias}->{world.source_alias}"
    world.write_settings(
        **{
            # Two flows in one process, each with functions of its own.
            f"{back}.enabled": "true",
            f"{back}.topics": "none",
            f"{back}.groups": "none",
            "groups": group,
            "emit.heartbeats.enabled": "true",
            "refresh.topics.interval.seconds": "2",
            "heartbeats.replication.enabled": "true",
            "emit.checkpoints.interval.seconds": "2",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "3600",  # only the thread that follows commits them in time
        }
    )
    client = MirrorClient(world.place().load().target)
    expected = {(world.remote(topic), partition): 100 + partition for partition in range(4)}

    def is_followed() -> bool:
        commit(world.source, group, offsets)
        time.sleep(1.0)
        return committed(world.target, group) == expected

    with Mirrorless(world.file, "--engine", "spark") as running:
        wait_for(is_followed, running=running)
        # By the heartbeats of the way back, which this flow replicates.
        wait_for(lambda: client.replication_hops(world.source_alias) == 1, running=running)
        running.process.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0, running.text()
        assert {line["flow"] for line in running.lines("Checkpoints")} == {world.flow, back}
        assert running.errors() == []
    assert "heartbeats" in client.heartbeat_topics()
    translated = client.translate_offsets(world.source_alias, group)
    assert {place: offset for place, (offset, _) in translated.items()} == expected


@pytest.mark.nightly
def test_its_python_processes_are_killed_and_it_goes_on(world: World) -> None:
    topic = world.topic(partitions=4)
    world.write_settings(**{"mirrorless.lease.seconds": "3"})
    with Mirrorless(world.file) as running:
        with Feed(world, topic, per_second=2_000):
            wait_for(lambda: copied(world, topic, 4) > 2_000, running=running)
            for process in running.family():
                with suppress(psutil.NoSuchProcess):
                    if any("pyspark.daemon" in part for part in process.cmdline()):
                        process.kill()
            before = copied(world, topic, 4)
            wait_for(lambda: copied(world, topic, 4) > before + 2_000, running=running, seconds=90)
        running.process.send_signal(signal.SIGTERM)
        running.wait(30)
    world.copy_to_the_end()
    assert world.assert_equal(topic) > 4_000
