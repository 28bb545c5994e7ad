"""What the live page costs a running copy: without it, with it, and with 50 pages open.

    python -m bench.web_load [--pages 50] [--seconds 60] [--records 3000000] [--rounds 2] [--json FILE]

A backlog is copied with `--available-now` in each of the three ways in turns, which shows the throughput. Then records
are written at a steady rate for a minute, which shows the CPU of the process and the latency. Pages are connections to
`/api/stream` that read everything, in a process of their own.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from bench.brokers import source_and_target
from tests.support.processes import Mirrorless
from tests.support.world import World, fill, producer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.local.embedded_kafka import EmbeddedCluster

WAYS: Final = ("without the page", "with the page", "with open pages")
_RATE: Final = 10_000
_PARTITIONS: Final = 6
_READER: Final = """
import selectors, socket, sys
port, pages = int(sys.argv[1]), int(sys.argv[2])
selector, total = selectors.DefaultSelector(), 0
for _ in range(pages):
    one = socket.create_connection(("127.0.0.1", port))
    one.sendall(b"GET /api/stream HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    selector.register(one, selectors.EVENT_READ)
while selector.get_map():
    for key, _ in selector.select(1):
        part = key.fileobj.recv(1 << 20)
        if not part:
            selector.unregister(key.fileobj)
"""


@contextmanager
def running(world: World, way: str, pages: int, *arguments: str) -> Iterator[Mirrorless]:
    """Run the flow in one of the ways; yields once its pages are open."""
    web = () if way == WAYS[0] else ("--web", "0")
    with ExitStack() as stack:
        process = stack.enter_context(Mirrorless(world.file, *web, *arguments))
        if way == WAYS[2]:
            readers = subprocess.Popen([sys.executable, "-c", _READER, str(_port(process)), str(pages)])
            stack.callback(readers.wait)
            stack.callback(readers.kill)
        yield process


def _port(process: Mirrorless) -> int:
    until = time.monotonic() + 60
    while not (found := re.search(r"http://localhost:(\d+)/", process.text())):
        assert time.monotonic() < until, process.text()
        time.sleep(0.02)
    return int(found[1])


def backlog(clusters: dict[str, EmbeddedCluster], topic: str, way: str, pages: int) -> float:
    """Copy a topic to a new remote topic, and return the records per second of the copy itself."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder), topics=[topic])
        world.write_settings(**{"mirrorless.engine": "functions"})
        with running(world, way, pages, "--available-now") as process:
            assert process.wait() == 0, process.text()
            leases = process.lines("Lease")
        return float(sum(one["records"] for one in leases) / sum(one["seconds"] for one in leases))


def steady(clusters: dict[str, EmbeddedCluster], way: str, pages: int, seconds: float) -> dict[str, float]:
    """Copy records while they are written; returns CPU seconds per second, and the median latency in ms."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder))
        topic = world.topic(partitions=_PARTITIONS)
        world.write_settings(**{"mirrorless.engine": "functions", "mirrorless.lease.seconds": "10"})
        over = threading.Event()
        writer = threading.Thread(target=_write, args=(world, topic, over))
        with running(world, way, pages) as process:
            writer.start()
            time.sleep(10)
            measured = psutil.Process(process.process.pid)
            before = measured.cpu_times()
            time.sleep(seconds)
            after = measured.cpu_times()
            over.set()
            writer.join()
            latencies = [line["latency_ms"] for line in process.lines("Lease") if line.get("latency_ms") is not None]
        used = after.user + after.system - before.user - before.system
        return {"cpu": used / seconds, "latency_ms": statistics.median(latencies)}


def _write(world: World, topic: str, over: threading.Event) -> None:
    client = producer(world.source, queue_buffering_max_messages=2_000_000)
    while not over.wait(0.05):
        for number in range(_RATE // 20):
            client.produce(topic, b"%0100d" % number, partition=number % _PARTITIONS)
        client.poll(0)
    client.flush(30)


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with source_and_target() as clusters:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            world = World(clusters["source"], clusters["target"], Path(folder))
            topic = world.topic(partitions=_PARTITIONS)
            values = (b"%0100d" % number for number in range(given.records))
            fill(world.source, topic, values, partitions=_PARTITIONS, compression_type="lz4")
        found: dict[str, dict[str, Any]] = {way: {"records_per_s": []} for way in WAYS}
        for _ in range(given.rounds):
            for way in WAYS:
                found[way]["records_per_s"].append(round(backlog(clusters, topic, way, given.pages)))
                print(way, found[way], flush=True)
        for way in WAYS:
            found[way] |= steady(clusters, way, given.pages, given.seconds)
            print(way, found[way], flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps({"pages": given.pages, "rate": _RATE, "ways": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
