"""`make faults`: three brokers a cluster, a Spark cluster of two executors, load, and at least thirty faults.

At the end the target, read uncommitted, must hold exactly what the source holds, per partition and in order.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from rich.console import Console
from rich.table import Table

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.faults.injection import Injection
from tests.faults.load import COMPACTED, PARTITIONS, PLAIN, TRANSACTIONS, Load
from tests.faults.verdict import judge
from tests.support.proxy import Proxy
from tests.support.world import World

_BEFORE_S, _BETWEEN_S, _AFTER_S = 25.0, 6.0, 20.0
"""How long the copy is left alone before the first fault, between two, and after the last.

With identical offsets a claim of a process that was killed is waited for, 35 s, so partitions hardly advance between.
"""
_SETTINGS = {"broker.session.timeout.ms": "6000", "min.insync.replicas": "2", "log.cleaner.backoff.ms": "500"}
_FORGETFUL = {"producer.id.expiration.check.interval.ms": "200"}
"""Of the target: by a record that is older than a day it forgets the producer at once, not within ten minutes."""
_DOOR = "DOOR"
_ANSWER_S = 1.0
"""How long brokers may take to say what the target has; one that is being killed says nothing."""


class Progress:
    """Watches how many records the target has, and remembers the longest time in which none came."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stop = threading.Event()
        self._began = time.monotonic()
        self.longest_s = 0.0
        self.longest_from_s = 0.0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._world.target.bootstrap_servers, "log_level": 0})
        places = [
            TopicPartition(self._world.remote(topic), number)
            for topic in PARTITIONS
            for number in range(PARTITIONS[topic])
        ]
        latest = {place: OffsetSpec.latest() for place in places}
        known: dict[TopicPartition, int] = {}
        moved = time.monotonic()
        while not self._stop.wait(0.25):
            before = sum(known.values())
            for place, future in admin.list_offsets(latest, request_timeout=_ANSWER_S).items():
                try:
                    known[place] = max(known.get(place, 0), future.result().offset)
                except Exception:  # noqa: BLE001, S112 -- its leader is being killed
                    continue
            now = time.monotonic()
            if sum(known.values()) > before:
                moved = now
            if now - moved > self.longest_s:
                self.longest_s, self.longest_from_s = now - moved, moved - self._began


def build(
    folder: Path, clusters: dict[str, EmbeddedCluster], proxies: dict[str, list[Proxy]], *, offsets: str
) -> World:
    """Create the topics, and a configuration whose clients go through the proxies."""
    source, target = clusters["source"], clusters["target"]
    for name, cluster in clusters.items():
        for proxy, port in zip(proxies[name], cluster.secure_ports(_DOOR), strict=True):
            proxy.target_port = port
    world = World(source, target, folder, tasks_max=2, replicas=3)
    admin = AdminClient({"bootstrap.servers": source.bootstrap_servers})
    compact = {"cleanup.policy": "compact", "segment.ms": "5000", "min.cleanable.dirty.ratio": "0.01"}
    wanted = [
        NewTopic(topic, count, 3, config=compact if topic == COMPACTED else {}) for topic, count in PARTITIONS.items()
    ]
    for future in admin.create_topics(wanted).values():
        future.result()
    world.topics += [PLAIN, TRANSACTIONS, COMPACTED]
    addresses = {
        alias: ",".join(f"127.0.0.1:{proxy.port}" for proxy in proxies[name])
        for alias, name in ((world.source_alias, "source"), (world.target_alias, "target"))
    }
    world.write_settings(
        **{f"{alias}.bootstrap.servers": servers for alias, servers in addresses.items()},
        **{"mirrorless.lease.seconds": "10", "mirrorless.offsets": offsets},
    )
    return world


def main() -> None:
    """Run, print, and exit with 0 if the two sides are equal."""
    parser = argparse.ArgumentParser(description="Copy under load while everything is killed.")
    parser.add_argument("--faults", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-second", type=int, default=3_000, help="records a second, all topics together")
    parser.add_argument("--between", type=float, default=_BETWEEN_S, help="seconds from one fault to the next")
    parser.add_argument("--offsets", choices=["dense", "identical"], default="dense")
    arguments = parser.parse_args()
    console = Console(width=120)
    proxies = {name: [Proxy() for _ in range(3)] for name in ("source", "target")}
    specs = [
        ClusterSpec(
            name=name,
            brokers=3,
            settings=_SETTINGS | (_FORGETFUL if name == "target" else {}),
            secure=(
                SecureListener(
                    name=_DOOR, protocol="PLAINTEXT", settings={}, advertised=tuple(one.port for one in proxies[name])
                ),
            ),
        )
        for name in proxies
    ]
    scratch = tempfile.TemporaryDirectory(prefix="mirrorless-faults-", ignore_cleanup_errors=True)
    with scratch as folder, start_clusters(specs) as clusters:
        world = build(Path(folder), clusters, proxies, offsets=arguments.offsets)
        load = Load(world.source, per_second=arguments.per_second)
        injection = Injection(world, proxies, seed=arguments.seed)
        load.start()
        time.sleep(_BEFORE_S)
        progress = Progress(world)
        done: Counter[str] = Counter()
        began = time.monotonic()
        try:
            for number, kind in enumerate(injection.plan(arguments.faults), 1):
                console.print(f"{time.monotonic() - began:6.0f} s  {number:2}  {kind}", highlight=False)
                injection.kinds[kind]()
                done[kind] += 1
                time.sleep(arguments.between)
            time.sleep(_AFTER_S)
        finally:
            progress.stop()
            load.stop()
        injection.end()
        world.write_settings(
            **{
                f"{world.source_alias}.bootstrap.servers": world.source.bootstrap_servers,
                f"{world.target_alias}.bootstrap.servers": world.target.bootstrap_servers,
                "mirrorless.lease.seconds": "120",  # longer than a claim of identical offsets is waited for
            }
        )
        world.copy_to_the_end(seconds=600)
        verdict = judge(world, load, identical=arguments.offsets == "identical")
    table = Table("fault", "times", title=f"{sum(done.values())} faults in {time.monotonic() - began:,.0f} s")
    for kind, times in sorted(done.items()):
        table.add_row(kind, str(times))
    console.print(table)
    console.print(
        f"records {verdict.records:,} (transactions: {load.committed} committed, {load.aborted} aborted), "
        f"duplicates {verdict.duplicates}, losses {verdict.losses}, out of order {verdict.disordered}, "
        f"not from the source {verdict.strangers}, at another offset {verdict.moved}\n"
        f"longest time without progress {progress.longest_s:.1f} s, from {progress.longest_from_s:.0f} s on",
        highlight=False,
    )
    for error in load.errors:
        console.print(f"the load itself failed: {error}")
    sys.exit(0 if verdict.equal and not load.errors else 1)


if __name__ == "__main__":
    main()
