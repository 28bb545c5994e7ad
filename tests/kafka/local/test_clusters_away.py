"""`mirrorless run` while neither cluster answers: nearly no CPU, no new threads, one line each; then it continues."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.processes import Mirrorless
from tests.support.world import World, fill

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

SETTLED_S = 25.0
"""When requests that were under way have timed out."""
MEASURED_S = 20.0


def wait_for(world: World, topic: str, records: int, *, seconds: float) -> float:
    """Wait for so many records of the remote topic; returns how long that took."""
    began = time.monotonic()
    consumer = Consumer({"bootstrap.servers": world.target.bootstrap_servers, "group.id": "test", "log_level": 0})
    try:
        while time.monotonic() - began < seconds:
            try:
                if consumer.get_watermark_offsets(TopicPartition(world.remote(topic), 0), timeout=5)[1] >= records:
                    return time.monotonic() - began
            except KafkaException:
                pass
            time.sleep(0.2)
    finally:
        consumer.close()
    raise AssertionError(f"{records} records are not copied after {seconds} s")


@pytest.mark.nightly
def test_both_clusters_are_away(world: World, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
    topic = world.topic()
    fill(source, topic, [b"one"])
    with Mirrorless(world.file) as run:
        wait_for(world, topic, 1, seconds=90)
        process = psutil.Process(run.process.pid)
        try:
            for cluster in (source, target):
                cluster.stop_broker(1)
            time.sleep(SETTLED_S)
            cpu, threads, lines = process.cpu_times(), process.num_threads(), len(run.text().splitlines())
            time.sleep(MEASURED_S)
            used = sum(process.cpu_times()[:2]) - sum(cpu[:2])
            assert used / MEASURED_S < 0.1, "it was 0.2 of a core for this flow, on a machine that has other work"
            assert process.num_threads() <= threads
            assert len(run.text().splitlines()) == lines
        finally:
            for cluster in (source, target):
                cluster.start_broker(1)
        fill(source, topic, [b"two"])
        assert wait_for(world, topic, 2, seconds=60) < 20
        # The first one that is away ends everything that would notice the other.
        told = [line["error"] for line in run.lines("Trouble") if line["flow"].startswith("cluster ")]
        back = [line["note"] for line in run.lines("Note") if line["flow"].startswith("cluster ")]
        assert len(told) == len(back) > 0
        assert len(told) <= 2
        assert all(line.startswith("does not answer: ") for line in told)
