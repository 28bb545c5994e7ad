"""A copy over a link that is cut and reset: when copying resumes, and whether anything is lost or repeated.

    python -m bench.link_cuts [--namespaces] [--engine functions] [--cuts 1 10 120] [--json docs/bench/link_cuts.json]

Three brokers a cluster. A relay with 100 ms round trip is before every broker of the far side: first of the source,
then of the target. Under a steady load of ordinary records, transactions and a compacted topic, all links are cut at
once, then for a minute each connection is reset with a probability of 1 % every second, then all are reset at once.

With `--namespaces` (as root) the engine is in a network namespace of its own, and a cut is that of a router between it
and the relays: what follows is the kernel's TCP. Without, `tests.support.link` imitates it: after a cut, a connection
continues when what was lost is retransmitted.

A partition resumes with its first new record on the target; all is normal again when the youngest record that arrives
in every partition is as young as before the cuts. At the end both sides are compared record by record. A compacted
topic whose cleaner runs during a cut may be copied again from the last progress on, which is counted by the log.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka.admin import AdminClient, NewTopic

from bench.arrivals import HEARTBEATS, Arrivals
from bench.first_record import begun
from bench.namespaces import FAR, NEAR, Router, run_inside
from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.faults.load import COMPACTED, PARTITIONS, PLAIN, TRANSACTIONS, Load
from tests.faults.verdict import Verdict, judge_compacted, judge_whole
from tests.support.link import Link, LinkTerms
from tests.support.processes import Mirrorless
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.local.embedded_kafka import EmbeddedCluster

ROUND_TRIP_S: Final = 0.1
_DOOR: Final = "DOOR"
_BROKERS: Final = 3
_LOOPBACK: Final = "127.0.0.1"
_SETTINGS: Final = {"min.insync.replicas": "2", "log.cleaner.backoff.ms": "500"}
_FORGETFUL: Final = {"producer.id.expiration.check.interval.ms": "200"}
"""Of the target: of records that are older than a day it forgets the producer at once, not within ten minutes."""
_NORMAL_S: Final = 10.0
_BETWEEN_S: Final = 10.0
_RESETS_S: Final = 60.0
_PATIENCE_S: Final = 180.0
_YOUNG_S: Final = 1.0
_LATE: Final = "late"
"""A topic that is created on the source during the longest cut."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What followed an event, in seconds: from its end until partitions resumed, and until all was normal."""

    event: str
    resumed_median_s: float
    resumed_longest_s: float
    normal_s: float
    heartbeat_s: float
    new_topic_s: float | None = None


@dataclass(frozen=True, slots=True)
class Resets:
    """A minute of resets: how many connections were opened again, and how long nothing came, by partition."""

    connections: int
    pause_median_s: float
    pause_longest_s: float


@dataclass(frozen=True, slots=True)
class _Place:
    """A flow, the links before one of its clusters, and the router before them; None if the links imitate it."""

    world: World
    links: list[Link]
    router: Router | None


class Trial:
    """One placement: the clusters, the links before one of them, the load and the copy."""

    def __init__(self, place: _Place, run: Mirrorless, arrivals: Arrivals) -> None:
        world = place.world
        self._world = world
        self._links = place.links
        self._router = place.router
        self._run = run
        self._arrivals = arrivals
        self._admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers, "log_level": 0})
        self._age_s = 2 * _YOUNG_S

    def settle(self) -> None:
        """Wait until everything is copied, and find out how old records are then when they arrive."""
        self._after(time.monotonic(), "start", new_topic=False)
        since = time.monotonic()
        time.sleep(_NORMAL_S)
        ages = [age for place in self._arrivals.dated for _, age in self._arrivals.since(since, place)]
        self._age_s = max(_YOUNG_S, statistics.quantiles(ages, n=100)[98])

    def cut(self, seconds: float, *, new_topic: bool) -> Outcome:
        """Cut all links for so long."""
        ends = time.monotonic() + seconds
        if self._router is not None:
            self._router.cut()
        else:
            for link in self._links:
                link.cut(seconds, retransmits=True)
        if new_topic:
            create(self._world, _LATE)
            fill(self._world.source, _LATE, (b"%d" % number for number in range(1_000)))
        time.sleep(max(0.0, ends - time.monotonic()))
        if self._router is not None:
            self._router.mend()
            ends = time.monotonic()
        return self._after(ends, f"cut of {seconds:g} s", new_topic=new_topic)

    def reset(self) -> Outcome:
        """Reset all connections at once."""
        at = time.monotonic()
        count = sum(link.reset() for link in self._links)
        return self._after(at, f"{count} connections reset at once", new_topic=False)

    def resets(self) -> Resets:
        """Reset each connection with a probability of 1 % every second, for a minute."""
        at, before = time.monotonic(), self._accepted()
        for link in self._links:
            link.become(LinkTerms(round_trip_s=ROUND_TRIP_S, resets=0.01))
        time.sleep(_RESETS_S)
        for link in self._links:
            link.become(LinkTerms(round_trip_s=ROUND_TRIP_S))
        pauses = [self._arrivals.longest_pause(at, place) for place in self._arrivals.places]
        return Resets(self._accepted() - before, round(statistics.median(pauses), 2), round(max(pauses), 2))

    def _accepted(self) -> int:
        return sum(link.stats()["accepted"] for link in self._links)

    def _after(self, at: float, event: str, *, new_topic: bool) -> Outcome:
        limit = at + _PATIENCE_S
        new_topic_s: float | None = None
        while True:
            assert self._run.process.poll() is None, f"the run ended:\n{self._run.text()}"
            assert time.monotonic() < limit, f"{event}: not all is normal\n{self._run.text()[-5_000:]}"
            if new_topic and new_topic_s is None and begun(self._admin, self._world.remote(_LATE)):
                new_topic_s = round(time.monotonic() - at, 1)
            resumed = [self._arrivals.first(at, place) for place in self._arrivals.places]
            normal = self._arrivals.normal(at, self._age_s)
            heartbeat = self._arrivals.first(at, (HEARTBEATS, 0))
            times = [one for one in resumed if one is not None]
            waits = len(times) < len(resumed) or (new_topic and new_topic_s is None)
            if normal is not None and heartbeat is not None and not waits:
                return Outcome(
                    event,
                    round(statistics.median(times), 2),
                    round(max(times), 2),
                    round(normal, 2),
                    round(heartbeat, 2),
                    new_topic_s,
                )
            time.sleep(0.2)


def create(world: World, *names: str) -> None:
    """Create topics of the load on the source."""
    compact = {"cleanup.policy": "compact", "segment.ms": "5000", "min.cleanable.dirty.ratio": "0.01"}
    wanted = [
        NewTopic(name, PARTITIONS.get(name, 1), _BROKERS, config=compact if name == COMPACTED else {}) for name in names
    ]
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    for future in admin.create_topics(wanted).values():
        future.result()


@contextmanager
def started(far: str, folder: Path, *, namespaces: bool) -> Iterator[_Place]:
    """Start two clusters with a link before each broker of one, and write the flow's configuration."""
    with ExitStack() as stack:
        router = stack.enter_context(Router()) if namespaces else None
        here, there = (_LOOPBACK, _LOOPBACK) if router is None else (NEAR, FAR)
        links = [Link(LinkTerms(round_trip_s=ROUND_TRIP_S), host=there) for _ in range(_BROKERS)]
        for link in links:
            stack.callback(link.close)
        ports = tuple(link.port for link in links)
        door = SecureListener(name=_DOOR, protocol="PLAINTEXT", settings={}, advertised=ports, advertised_host=there)
        clusters = stack.enter_context(
            start_clusters(
                [
                    ClusterSpec(
                        name=name,
                        brokers=_BROKERS,
                        settings=_SETTINGS | (_FORGETFUL if name == "target" else {}),
                        secure=(door,) if name == far else (),
                    )
                    for name in ("source", "target")
                ]
            )
        )
        for link, port in zip(links, clusters[far].secure_ports(_DOOR), strict=True):
            link.connect(port, host=here)
        servers = ",".join(f"{there}:{port}" for port in ports)
        yield _Place(configured(clusters, servers, far, folder), links, router)


def configured(clusters: dict[str, EmbeddedCluster], servers: str, far: str, folder: Path) -> World:
    """Create the topics, and a configuration in which the far cluster has the links' addresses."""
    world = World(clusters["source"], clusters["target"], folder, replicas=_BROKERS)
    create(world, PLAIN, TRANSACTIONS, COMPACTED)
    world.topics += [PLAIN, TRANSACTIONS, COMPACTED, _LATE]
    alias = world.source_alias if far == "source" else world.target_alias
    world.write_settings(
        **{f"{alias}.bootstrap.servers": servers},
        **{"emit.heartbeats.enabled": "true", "refresh.topics.interval.seconds": "5"},
    )
    return world


def measured(far: str, given: argparse.Namespace) -> dict[str, Any]:
    """Measure one placement, and compare both sides."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        started(far, Path(folder), namespaces=given.namespaces) as place,
    ):
        world = place.world
        prefix = () if place.router is None else place.router.prefix
        world.discover()
        load = Load(world.source, per_second=given.per_second)
        load.start()
        try:
            with Mirrorless(world.file, "--engine", given.engine, prefix=prefix) as run:
                arrivals = Arrivals(world)
                arrivals.start()
                trial = Trial(place, run, arrivals)
                trial.settle()
                outcomes = []
                for seconds in given.cuts:
                    outcomes.append(trial.cut(seconds, new_topic=seconds == max(given.cuts)))
                    print(f"  {far} far: {outcomes[-1]}", flush=True)
                    time.sleep(_BETWEEN_S)
                resets = trial.resets()
                print(f"  {far} far: {resets}", flush=True)
                time.sleep(_BETWEEN_S)
                outcomes.append(trial.reset())
                print(f"  {far} far: {outcomes[-1]}", flush=True)
                time.sleep(_BETWEEN_S)
                load.stop()
                run.process.send_signal(signal.SIGTERM)
                status = run.wait(60)
                arrivals.end()
                again = sum(map(int, re.findall(r"cleaned in between; (\d+) records are copied again", run.text())))
                troubles = [line for line in run.text().splitlines() if '"error"' in line or not line.startswith("{")]
        finally:
            load.stop()  # a second time does nothing
            if given.log is not None:
                given.log.with_suffix(f".{far}.log").write_text(run.text())
        world.write_settings(
            **{
                f"{world.source_alias}.bootstrap.servers": world.source.bootstrap_servers,
                f"{world.target_alias}.bootstrap.servers": world.target.bootstrap_servers,
            }
        )
        world.copy_to_the_end()
        verdict, compacted = Verdict(), Verdict()
        judge_whole(world, verdict)
        judge_compacted(world, load, compacted)
        world.assert_equal(_LATE)
        for error in load.errors:
            print(f"the load itself failed: {error}", flush=True)
    return {
        "far": far,
        "engine": given.engine,
        "cut": "router" if given.namespaces else "relay",
        "outcomes": [asdict(one) for one in outcomes],
        "resets": asdict(resets),
        "records": verdict.records,
        "lost": verdict.losses,
        "repeated": verdict.duplicates,
        "strangers": verdict.strangers,
        "disordered": verdict.disordered,
        "compacted": asdict(compacted),
        "copied_again": again,
        "exit_status": status,
        "error_lines": len(troubles),
    }


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    """Return the lines of a table of Markdown."""
    yield "| far side | event | resumed, median | longest | normal again | heartbeat | new topic |"
    yield "|---|---|---|---|---|---|---|"
    for one in found:
        for line in one["outcomes"]:
            new = "" if line["new_topic_s"] is None else f"{line['new_topic_s']:.1f} s"
            times = (line[name] for name in ("resumed_median_s", "resumed_longest_s", "normal_s", "heartbeat_s"))
            yield f"| {one['far']} | {line['event']} | {' | '.join(f'{time:.1f} s' for time in times)} | {new} |"
        resets = one["resets"]
        pauses = f"{resets['pause_median_s']:.1f} s | {resets['pause_longest_s']:.1f} s"
        yield f"| {one['far']} | 1 % reset, {resets['connections']} opened again | {pauses} | | | |"
    yield ""
    for one in found:
        yield (
            f"{one['far']} far: {one['records']:,} records, lost {one['lost']}, repeated {one['repeated']}, "
            f"not from the source {one['strangers']}, partitions out of order {one['disordered']}, "
            f"exit status {one['exit_status']}"
        )
        if one["copied_again"]:
            yield (
                f"the compacted topic was cleaned during cuts: {one['copied_again']} of its records were copied again, "
                f"lost {one['compacted']['losses']}"
            )


def main() -> None:
    """Measure both placements, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=["functions", "spark"], default="functions")
    parser.add_argument("--far", nargs="*", choices=["source", "target"], default=["source", "target"])
    parser.add_argument("--cuts", nargs="*", type=float, default=[1.0, 10.0, 120.0], help="seconds")
    parser.add_argument("--namespaces", action="store_true", help="cut a router, as root")
    parser.add_argument("--per-second", type=int, default=3_000, help="records a second, all topics together")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", type=Path, help="keep what the run prints, in a file for each placement")
    given = parser.parse_args()
    if given.namespaces:
        run_inside("bench.link_cuts", sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = [measured(far, given) for far in given.far]
    print("\n".join(table(found)), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
