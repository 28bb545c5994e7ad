"""`mirrorless.engine = auto` with a backlog: functions, Spark, functions again, and whether every record came once.

    python -m bench.engine_switch [--gigabytes 3] [--mb-per-s 40]

A flow has a backlog of some gigabytes and a steady load of 1 MB/s. `mirrorless run` may copy so many MB a second (the
flow's own limit), so that the functions would need longer for the backlog than the setting allows. The choices of the
engine are those of the run's log.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.engines import Family
from bench.function_ticks import PARTITIONS, RECORD_BYTES, Load, Reader
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.processes import Mirrorless
from tests.support.world import World, producer

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_HEAD: Final = struct.Struct(">Qd")
_PATIENCE_S: Final = 900.0
_AFTER_S: Final = 20.0
_SETTINGS: Final = {
    "mirrorless.engine": "auto",
    "mirrorless.spark.start.backlog.seconds": "20",
    "mirrorless.spark.stop.caught.up.seconds": "20",
    "mirrorless.lease.seconds": "15",
    "tasks.max": "2",
    "emit.heartbeats.enabled": "true",
}


def fill(cluster: EmbeddedCluster, topic: str, *, records: int, written: list[int]) -> None:
    """Write a backlog of numbered records, and count it in `written`."""
    client = producer(cluster, queue_buffering_max_messages=1_000_000, linger_ms=20, batch_size=1 << 18)
    now = time.time()
    for number in range(records):
        partition = number % PARTITIONS
        client.produce(topic, value=_HEAD.pack(written[partition], now).ljust(RECORD_BYTES, b"."), partition=partition)
        written[partition] += 1
        if number % 2_000 == 0:
            client.poll(0)
            while len(client) > 500_000:
                client.poll(0.1)
    assert client.flush(300) == 0


def choices(run: Mirrorless) -> list[dict[str, Any]]:
    """The run's lines on engines."""
    return [line for line in run.lines("Note") if str(line.get("note", "")).startswith("engine ")]


def measured(given: argparse.Namespace, source: EmbeddedCluster, target: EmbeddedCluster) -> dict[str, Any]:
    """Run until the functions have taken over again, and compare."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(source, target, Path(folder))
        world.extra |= _SETTINGS | {"mirrorless.max.bytes.per.second": str(round(given.mb_per_s * 1e6))}
        topic = world.topic(PARTITIONS)
        world.discover()
        load = Load(source, topic, mb_per_s=1.0, age_days=0.0)
        fill(source, topic, records=round(given.gigabytes * 1e9 / RECORD_BYTES), written=load.written)
        reader = Reader(target, world.remote(topic))
        reader.start()
        load.start()
        with Mirrorless(world.file) as run:
            began = time.monotonic()
            family = Family(run.process.pid)
            while len(choices(run)) < 3:
                assert run.process.poll() is None, run.text()
                assert time.monotonic() < began + _PATIENCE_S, run.text()
                family.look()
                time.sleep(0.5)
            time.sleep(_AFTER_S)
            load.stop.set()
            load.join()
            until = time.monotonic() + 60
            while reader.next != load.written and time.monotonic() < until:
                time.sleep(0.2)
            time.sleep(2)
            processes = len(run.family())
            found = choices(run)
        reader.stop.set()
        reader.join()
        return {
            "records": sum(load.written),
            "lost": sum(load.written) - sum(reader.next) + reader.missing,
            "repeated": reader.repeated,
            "processes_at_the_end": processes,
            "peak_mb": round(family.peak_bytes / 1e6),
            "choices": [f"{line['time'][11:19]} {line['note']}" for line in found],
        }


def main() -> None:
    """Run once, and print what was seen as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--mb-per-s", type=float, default=40.0)
    given = parser.parse_args()
    with start_clusters([ClusterSpec(name=name) for name in ("source", "target")]) as clusters:
        print(json.dumps(measured(given, clusters["source"], clusters["target"]), indent=1), flush=True)


if __name__ == "__main__":
    main()
