"""How fast `mirrorless verify` compares: megabytes of both sides together, a core, on embedded clusters.

Run as `python -m bench.verify`; `make bench-verify` does. CPU is user and system time of Spark's JVM and its Python,
without the brokers; megabytes are those of keys and values, not compressed. The first round warms the JVM up and is
shown apart: a comparison of gigabytes spends its time like the later ones.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.local.jars import SPARK_KAFKA, class_path
from mirrorless.local.spark import spark_session
from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from tests.support.world import World, producer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEGA = 1_000_000


def cpu_s(spark: SparkSession) -> float:
    """CPU seconds so far of Spark's JVM and of this process."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = psutil.Process(gateway.proc.pid)
    family = [psutil.Process(), jvm, *jvm.children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in family if one.status() != psutil.STATUS_ZOMBIE)


def fill(world: World, *, size: int, count: int, partitions: int) -> None:
    """A topic of so many records with keys; half of each value does not compress. Then copied."""
    topic = world.topic(partitions=partitions)
    client = producer(
        world.source, compression_type="lz4", batch_size=256_000, linger_ms=50, queue_buffering_max_messages=2_000_000
    )
    noise = os.urandom(1 << 20).hex().encode()
    for number in range(count):
        at = number * 37 % (len(noise) - size)
        client.produce(topic, key=b"%09d" % number, value=noise[at : at + size - 9], partition=number % partitions)
        if number % 10_000 == 0:
            client.poll(0)
    client.flush()
    world.write_settings(**{"mirrorless.lease.seconds": "600"})
    world.copy()


def main() -> None:
    """Measure records of 1,000 and of 100 bytes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200, help="of the source, for each size of record")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100], help="bytes of a record")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    with (
        start_clusters([ClusterSpec(name=name) for name in ("source", "target")]) as clusters,
        tempfile.TemporaryDirectory() as folder,
        spark_session(
            master=f"local[{arguments.threads}]", folder=Path(folder), jars=class_path(SPARK_KAFKA, say=print)
        ) as spark,
    ):
        for size in arguments.sizes:
            (place := Path(folder) / str(size)).mkdir()
            world = World(clusters["source"], clusters["target"], place)
            fill(world, size=size, count=arguments.megabytes * _MEGA // size, partitions=4)
            for number in range(arguments.rounds):
                before, began = cpu_s(spark), time.monotonic()
                verdict, _ = verify_flow(spark, world.place().load(), ComparisonTerms(), say=lambda _: None)
                seconds, cpu = time.monotonic() - began, cpu_s(spark) - before
                assert verdict.status == 0, verdict
                mega = verdict.size_bytes / _MEGA
                print(
                    f"{size} B records, round {number + 1}: {verdict.records:,} records, {mega:,.0f} MB of both sides "
                    f"in {seconds:.1f} s, {cpu:.1f} s of CPU: {mega / cpu:.0f} MB/s a core"
                )


if __name__ == "__main__":
    main()
