"""A run is watched from outside, by Prometheus, and held from outside, by `mirrorless pause` or its file."""

from __future__ import annotations

import signal
import socket
import time
import urllib.request
from contextlib import suppress

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mirrorless.clusters.target_state import TargetState, TargetStates
from tests.spark.test_run import copied, wait_for
from tests.support.offsets import commit
from tests.support.processes import Mirrorless
from tests.support.world import World, fill


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scrape(port: int) -> dict[str, float]:
    """Values by name, added up over topics."""
    found: dict[str, float] = {}
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        for family in text_string_to_metric_families(answer.read().decode()):
            for sample in family.samples:
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


@pytest.mark.nightly
def test_a_run_is_measured_paused_resumed_and_switched_off(world: World) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % number for number in range(1000)), partitions=2)
    commit(world.source, f"group-{topic}", {(topic, 0): 100})
    world.write_settings(
        groups=f"group-{topic}",
        **{
            "mirrorless.lease.seconds": "2",
            "refresh.topics.interval.seconds": "2",
            "emit.checkpoints.interval.seconds": "2",
            "emit.heartbeats.enabled": "true",
            "heartbeats.replication.enabled": "true",
        },
    )
    port = free_port()
    with Mirrorless(world.file, "--metrics-port", str(port)) as running:
        wait_for(
            lambda: (
                {"mirrorless_heartbeat_latency_ms", "mirrorless_checkpoint_latency_ms"} <= scrape(port).keys()
                and scrape(port).get("mirrorless_record_count_total", 0) >= 1000
                and scrape(port).get("mirrorless_heartbeat_count_total", 0) > 0
            ),
            running=running,
            seconds=150,
        )
        found = scrape(port)
        states = TargetStates(world.place().load())
        states.write(TargetState.PAUSED)
        wait_for(
            lambda: any("is paused, according to topic mm2-" in line["error"] for line in running.lines("Trouble")),
            running=running,
        )
        wait_for(lambda: scrape(port).get("mirrorless_job_running") == 0, running=running)
        held = scrape(port)
        fill(world.source, topic, (b"%d" % number for number in range(10)))
        time.sleep(5)
        assert copied(world, topic, 2) == 1000
        states.write(TargetState.STARTED)
        states.close()
        wait_for(lambda: copied(world, topic, 2) == 1010, running=running)
        wait_for(lambda: scrape(port).get("mirrorless_job_running") == 1, running=running)
        resumed = scrape(port)
        # The functions read the file once a minute, the copy before every lease.
        world.write_settings(**{f"{world.flow}.enabled": "false"})
        wait_for(
            lambda: any("its run is stopped" in line["error"] for line in running.lines("Trouble")), running=running
        )
        time.sleep(3)  # what was held between two leases lands
        fill(world.source, topic, (b"%d" % number for number in range(10)))
        time.sleep(5)
        assert copied(world, topic, 2) == 1010
        running.process.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0, running.text()
    # The supervisor's own doing: it stopped the run, and started another.
    assert (found["mirrorless_job_running"], found["mirrorless_job_starts_total"]) == (1, 1)
    assert (held["mirrorless_job_paused"], held["mirrorless_copy_missing"]) == (1, 0)
    assert (resumed["mirrorless_job_paused"], resumed["mirrorless_job_starts_total"]) == (0, 2)
    assert found["mirrorless_topics_created_total"] >= 1
    assert found["mirrorless_partitions_halted"] == 0
    assert found["mirrorless_checkpoint_count_total"] >= 1
    assert found["mirrorless_heartbeat_age_seconds"] < 60
    assert {"mirrorless_record_age_ms_max", "mirrorless_byte_rate", "mirrorless_lag_seconds"} <= found.keys()
    assert any(line["note"] == f"metrics are served on port {port} at /metrics" for line in running.lines("Note"))
