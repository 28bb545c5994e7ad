"""What a backfill of old records costs: the copier alone, the same records of now and of three days ago.

    python -m bench.old_records [--records 600000] [--rounds 5]

Batches of records by which the target may have forgotten the producer go one at a time (decision 0010).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka.admin import AdminClient, NewTopic

from bench import slot
from bench.brokers import source_and_target
from bench.logs import until_made
from bench.throughput import tidy, warm
from bench.workloads import PARTITIONS, dense
from tests.support.world import World

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_SIZE: Final = 1_000
_BATCHES: Final = {"64 KB": 64 << 10, "16 KB": 16 << 10}
_DAYS_MS: Final = 3 * 86_400_000


def filled(cluster: EmbeddedCluster, *, records: int, batch_bytes: int, age_ms: int) -> str:
    """Create and fill a topic."""
    topic = f"old-{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    dense(
        cluster,
        topic,
        records=records,
        size=_SIZE,
        codec="lz4",
        batch_bytes=batch_bytes,
        timestamp_ms=int(time.time() * 1000) - age_ms,
    )
    return topic


def seconds(clusters: dict[str, EmbeddedCluster], topic: str) -> float:
    """Copy a topic once, and tidy the target."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder), topics=[topic])
        world.write_settings()
        world.discover()
        until_made(world.target, world.remote(topic), PARTITIONS)
        found = slot.measured(world, world.flow)["seconds"]
        tidy(world.target, [world.remote(topic)])
    return found


def main() -> None:
    """Measure in turns and print a line for each size of batches."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with source_and_target() as clusters:
        warm(clusters)
        for name, batch_bytes in _BATCHES.items():
            topics = {
                age: filled(clusters["source"], records=given.records, batch_bytes=batch_bytes, age_ms=age)
                for age in (0, _DAYS_MS)
            }
            found: dict[int, list[float]] = {age: [] for age in topics}
            for number in range(given.rounds + 1):
                for age, topic in topics.items():
                    took = seconds(clusters, topic)
                    if number:  # the first one warms
                        found[age].append(took)
            now, old = (given.records / statistics.median(found[age]) for age in (0, _DAYS_MS))
            print(
                f"batches of {name}: {now:,.0f} records/s of now, {old:,.0f} of three days ago, {old / now:.2f} times",
                flush=True,
            )
            tidy(clusters["source"], list(topics.values()))


if __name__ == "__main__":
    main()
