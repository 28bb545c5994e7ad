"""What one slot costs: one-record batches, dense lz4 batches, and two thousand partitions, on embedded brokers.

Run as `python -m bench.slot`; `make bench-slot` does. Figures are of this process alone: the copier, without Spark.
CPU is user and system time; beside the dense batches stands what this machine takes to bring the same bytes from one
loopback socket to another and do nothing else with them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.world import World, producer

_ROOT = Path(__file__).parents[1]
_MEGA = 1_000_000
_RECORD = b"%09d " + b"the quick brown fox jumps over the lazy dog " * 2


def cpu_s() -> float:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def loopback_cpu_s(size: int) -> float:
    """CPU seconds to send `size` bytes through a loopback socket and to receive them, in 1 MB pieces."""
    server = socket.create_server(("127.0.0.1", 0))
    piece = b"x" * (1 << 20)
    before = cpu_s()

    def send() -> None:
        with socket.create_connection(server.getsockname()) as out:
            for _ in range(size >> 20):
                out.sendall(piece)

    sender = threading.Thread(target=send)
    sender.start()
    connection, _ = server.accept()
    with connection, server:
        while connection.recv(1 << 20):
            pass
    sender.join()
    return cpu_s() - before


def measured(world: World, flow: str) -> dict[str, float]:
    """Copy what is there in a process of its own, so that its memory and time are the copier's alone."""
    world.discover()
    script = "import sys; from bench.slot import copy_here; copy_here(sys.argv[1], sys.argv[2])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(world.file), flow],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(_ROOT / "src"), str(_ROOT)))},
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def copy_here(file: str, flow: str) -> None:
    """Copy one lease in this process and print what it took."""
    from mirrorless.copy.engines.control import Control  # noqa: PLC0415 -- only the child needs it
    from mirrorless.copy.engines.lease_run import run_lease  # noqa: PLC0415
    from mirrorless.copy.engines.spark.query import collect  # noqa: PLC0415
    from mirrorless.copy.flow.reference import FlowRef  # noqa: PLC0415
    from mirrorless.copy.partition.lease_rows import summary  # noqa: PLC0415
    from mirrorless.copy.planning.lease_planner import LeasePlanner  # noqa: PLC0415
    from mirrorless.errors import ClusterUnavailable  # noqa: PLC0415

    place = FlowRef(location=file, flow=flow, bounded=True)
    planner = LeasePlanner(place.load(), bounded=True)
    while True:
        try:
            rows = [row for pile in planner.plan(place.load()) for row in pile]
            break
        except ClusterUnavailable:  # brokers may still be busy with topics that were just made
            time.sleep(1)
    planner.close()
    collect()  # as a lease in Spark begins
    before, began = cpu_s(), time.monotonic()
    reports = run_lease(place, rows, control=Control(), lease=1, slot=0)
    seconds, cpu = time.monotonic() - began, cpu_s() - before
    totals = summary(reports)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps(
            {
                "partitions": len(reports),
                "records": totals.records,
                "bytes": totals.copied_bytes,
                "lag": totals.lag_records,
                "seconds": totals.seconds,
                "with_connecting_s": seconds,
                "cpu_s": cpu,
                "peak_bytes": peak,
            }
        )
    )


def one_record_batches(world: World, count: int) -> None:
    """A producer that does not linger."""
    topic = world.topic()
    client = producer(
        world.source,
        enable_idempotence="true",
        batch_num_messages=1,
        linger_ms=0,
        queue_buffering_max_messages=2_000_000,
    )
    for number in range(count):
        client.produce(topic, value=_RECORD % number, key=b"%d" % number)
        if number % 1_000 == 0:
            client.poll(0)
    client.flush()
    found = measured(world, world.flow)
    rate = found["records"] / found["seconds"]
    print(
        f"one-record batches: {found['records']:,.0f} records in {found['seconds']:.2f} s, {rate:,.0f} records/s, "
        f"{found['cpu_s']:.2f} s of CPU; connecting included {found['with_connecting_s']:.2f} s"
    )


def dense_batches(world: World, count: int) -> None:
    """Batches of 64 KiB, lz4, as a producer that lingers makes them."""
    topic = world.topic(partitions=4)
    client = producer(
        world.source,
        enable_idempotence="true",
        compression_type="lz4",
        batch_size=512_000,
        linger_ms=50,
        queue_buffering_max_messages=2_000_000,
    )
    for number in range(count):
        client.produce(topic, value=os.urandom(60).hex().encode() + _RECORD % number, partition=number % 4)
        if number % 10_000 == 0:
            client.poll(0)
    client.flush()
    found = measured(world, world.flow)
    size = found["bytes"] / _MEGA
    beside = loopback_cpu_s(int(found["bytes"]))
    print(
        f"dense lz4 batches: {size:,.1f} MB on the wire in {found['seconds']:.2f} s, "
        f"{found['cpu_s'] * 1000 / size:.2f} ms of CPU a MB; "
        f"this machine's own copy of the same bytes {beside * 1000 / size:.2f} ms a MB"
    )


def many_partitions(world: World, topics: int, partitions: int) -> None:
    """Every partition has more than a fetch may bring, so that all of them want memory."""
    names = [world.topic(partitions=partitions) for _ in range(topics)]
    client = producer(
        world.source,
        enable_idempotence="true",
        batch_size=512_000,
        linger_ms=100,
        queue_buffering_max_messages=2_000_000,
    )
    value = os.urandom(10_000)
    for name in names:
        for number in range(partitions * 60):
            client.produce(name, value=value, partition=number % partitions)
        client.flush()
    found = measured(world, world.flow)
    print(
        f"{found['partitions']:,.0f} partitions in one slot: {found['bytes'] / _MEGA:,.0f} MB "
        f"in {found['seconds']:.1f} s, "
        f"peak memory {found['peak_bytes'] / (1 << 20):,.0f} MiB, {found['lag']:,.0f} left"
    )


def main() -> None:
    """Measure what the arguments name, all of it without."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    everything = ("tiny", "dense", "many")
    parser.add_argument("what", nargs="*", default="all", choices=[*everything, "all"])
    given = parser.parse_args().what
    chosen = everything if "all" in given else given
    with start_clusters([ClusterSpec(name=name) for name in ("source", "target")]) as clusters:
        for name in chosen:
            with tempfile.TemporaryDirectory() as folder:
                world = World(clusters["source"], clusters["target"], Path(folder))
                world.write_settings(**{"mirrorless.lease.seconds": "300"})
                if name == "tiny":
                    one_record_batches(world, 200_000)
                elif name == "dense":
                    dense_batches(world, 2_000_000)
                else:
                    many_partitions(world, 20, 100)


if __name__ == "__main__":
    main()
