"""How many round trips a start, and each command, needs when one cluster is far away: by partitions and topics.

    python -m bench.round_trips [--shape 1x1000 ...] [--step start ...] [--round-trip-ms 150] [--json FILE]

Everything is measured three times: with both clusters near, with the source far, and with the target far. What the
distance adds, divided by the round trip, is the length of the chain of requests that wait for each other. A start
lasts from the command to a record of every partition on the target.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bench.throughput import tidy
from mirrorless.copy.engines import lease_run
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.local.broker import SHIPPED_JVM, SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.offsets.checkpoint_pass import Checkpoints
from tests.support.link import Link, LinkTerms
from tests.support.offsets import commit
from tests.support.processes import Mirrorless
from tests.support.world import World, producer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mirrorless.local.embedded_kafka import EmbeddedCluster

SHAPES: Final = {"1x10": (1, 10), "1x1000": (1, 1_000), "500x2": (500, 2)}
"""Topics and partitions of each."""
_GROUPS: Final = 50
_GROUP_PARTITIONS: Final = 10
_DOOR: Final = "DOOR"
_ENDS: Final = ("source", "target")
_LOOK_S: Final = 0.05
_PATIENCE_S: Final = 300.0
_SETTINGS: Final = {"log.index.size.max.bytes": "4096", "log.segment.delete.delay.ms": "1000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement: `far` names the end that is `round_trip_ms` away, or neither."""

    shape: str
    far: str
    round_trip_ms: float
    step: str
    seconds: float


class Case:
    """A flow of one shape, whose far end is reached through its link."""

    def __init__(
        self, clusters: Mapping[str, EmbeddedCluster], links: Mapping[str, Link], far: str, folder: Path
    ) -> None:
        self.world = World(clusters["source"], clusters["target"], folder)
        self.counts: dict[str, int] = {}
        self.records = 0
        self._admin = AdminClient({"bootstrap.servers": clusters["target"].bootstrap_servers, "log_level": 0})
        aliases = dict(zip(_ENDS, (self.world.source_alias, self.world.target_alias), strict=True))
        self._extra = {"groups": "group-.*", "offset.storage.partitions": "25"}
        if far in links:
            self._extra[f"{aliases[far]}.bootstrap.servers"] = f"127.0.0.1:{links[far].port}"

    def fill(self, topics: int, partitions: int) -> None:
        """Create the topics."""
        stem = f"trips-{time.monotonic_ns()}"
        self.counts = {f"{stem}-{number}": partitions for number in range(topics)}
        admin = AdminClient({"bootstrap.servers": self.world.source.bootstrap_servers})
        for future in admin.create_topics([NewTopic(topic, partitions, 1) for topic in self.counts]).values():
            future.result()
        while sum(one in admin.list_topics().topics for one in self.counts) < topics:
            time.sleep(_LOOK_S)
        self.world.topics += self.counts
        self.world.write_settings(**self._extra)

    def produce(self) -> None:
        """Produce one more record to every partition."""
        client = producer(self.world.source, linger_ms=100)
        for topic, partitions in self.counts.items():
            for partition in range(partitions):
                client.produce(topic, value=b"value", partition=partition)
            client.poll(0)
        assert client.flush(60) == 0
        self.records += 1

    def start(self) -> float:
        """Run until every partition has all its records on the target; returns after how long that was."""
        began = time.monotonic()
        with Mirrorless(self.world.file, "--engine", "functions") as run:
            while not self._copied():
                assert run.process.poll() is None, run.text()
                assert time.monotonic() < began + _PATIENCE_S, f"still not copied\n{run.text()}"
                time.sleep(_LOOK_S)
            seconds = time.monotonic() - began
            run.process.send_signal(signal.SIGTERM)
            run.wait(60)
        return seconds

    def commit(self) -> None:
        """Commit offsets of fifty groups on the source."""
        places = [(topic, number) for topic, count in self.counts.items() for number in range(count)]
        for number in range(_GROUPS):
            some = (places * 2)[number % len(places) :][:_GROUP_PARTITIONS]
            commit(self.world.source, f"group-{number:04}", dict.fromkeys(some, self.records))

    def plan_lease(self) -> float:
        """Plan a lease with new clients."""
        place = self.world.place()
        began = time.monotonic()
        planner = LeasePlanner(place.load(), bounded=True)
        rows = [row for pile in planner.plan(place.load()) for row in pile]
        seconds = time.monotonic() - began
        planner.close()
        assert len(rows) == sum(self.counts.values())
        self._rows = rows
        return seconds

    def lease(self) -> float:
        """Connect, resume and copy the planned lease."""
        began = time.monotonic()
        run_lease(self.world.place(), self._rows, control=Control(), lease=1, slot=0)
        seconds = time.monotonic() - began
        lease_run._slots.pop(self.world.flow).close()
        assert self._copied()
        return seconds

    def discovery(self) -> float:
        """Compare the topics of both ends, which are in step, with new clients."""
        began = time.monotonic()
        found = self.world.discover()
        assert found.went_well
        assert not found.applied
        return time.monotonic() - began

    def checkpoints(self) -> float:
        """Emit checkpoints of fifty groups, with new clients."""
        began = time.monotonic()
        passes = Checkpoints(self.world.place().load())
        report = passes.emit()
        seconds = time.monotonic() - began
        passes.close()
        assert report.groups == _GROUPS, report
        assert report.emitted == report.offsets, report
        return seconds

    def command(self, *words: str) -> float:
        """Run another command of the command line."""
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "mirrorless", words[0], str(self.world.file), *words[1:]],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | {"TMPDIR": str(self.world.folder)},
        )
        seconds = time.monotonic() - began
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return seconds

    def tidy(self) -> None:
        """Delete the topics of both ends, and the flow's own."""
        own = [name for name in self._admin.list_topics().topics if self.world.source_alias in name.split(".")]
        tidy(self.world.target, own)
        tidy(self.world.source, list(self.counts))

    def _copied(self) -> bool:
        try:
            there = self._admin.list_topics(timeout=10).topics
            if any(self.world.remote(topic) not in there for topic in self.counts):
                return False
            asked = {
                TopicPartition(self.world.remote(topic), number): OffsetSpec.latest()
                for topic, count in self.counts.items()
                for number in range(count)
            }
            answers = self._admin.list_offsets(asked, request_timeout=10).values()
            return all(future.result().offset >= self.records for future in answers)
        except Exception:  # noqa: BLE001 -- partitions that are being created
            return False


def measure(case: Case, steps: list[str]) -> dict[str, float]:
    """Every step, in an order in which each finds what it needs."""
    case.produce()
    found = {"start": case.start()}
    case.commit()
    ways: dict[str, Callable[[], float]] = {
        "restart": case.start,
        "discovery": case.discovery,
        "plan of a lease": case.plan_lease,
        "lease": case.lease,
        "checkpoints": case.checkpoints,
        "doctor": lambda: case.command("doctor"),
        "plan": lambda: case.command("plan"),
        "verify": lambda: case.command("verify", "--sample", "1"),
    }
    for step, way in ways.items():
        if steps and step not in steps:
            continue
        if step in ("restart", "plan of a lease"):
            case.produce()
        found[step] = way()
    return found


def trips(rows: list[Row]) -> list[dict[str, Any]]:
    """What the distance adds to each step, in seconds and in round trips."""
    near = {(row.shape, row.step): row.seconds for row in rows if row.far == "neither"}
    return [
        asdict(row)
        | {
            "near_seconds": near[row.shape, row.step],
            "round_trips": round((row.seconds - near[row.shape, row.step]) / row.round_trip_ms * 1000, 1),
        }
        for row in rows
        if row.far != "neither"
    ]


def main() -> None:
    """Measure and print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--step", action="append", help="only these besides the start")
    parser.add_argument("--far", action="append", choices=["neither", *_ENDS])
    parser.add_argument("--round-trip-ms", type=float, default=150.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[Row] = []
    with ExitStack() as stack:
        links = {name: Link(LinkTerms(round_trip_s=given.round_trip_ms / 1000)) for name in _ENDS}
        for link in links.values():
            stack.callback(link.close)
        specs = [
            ClusterSpec(
                name=name,
                settings=_SETTINGS,
                jvm=SHIPPED_JVM,
                secure=(SecureListener(name=_DOOR, protocol="PLAINTEXT", settings={}, advertised=(link.port,)),),
            )
            for name, link in links.items()
        ]
        clusters = stack.enter_context(start_clusters(specs))
        for name, link in links.items():
            link.connect(clusters[name].secure_ports(_DOOR)[0])
        for shape in given.shape or SHAPES:
            for far in given.far or ("neither", *_ENDS):
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    case = Case(clusters, links, far, Path(folder))
                    case.fill(*SHAPES[shape])
                    for step, seconds in measure(case, given.step or []).items():
                        distance = given.round_trip_ms if far in links else 0.0
                        rows.append(Row(shape=shape, far=far, round_trip_ms=distance, step=step, seconds=seconds))
                        print(f"{shape}, far: {far}, {step}: {seconds:.2f} s", flush=True)
                    case.tidy()
    near = Counter(row.far for row in rows)["neither"]
    found = trips(rows) if near else []
    for one in found:
        print("{shape}, far: {far}, {step}: {seconds:.2f} s, {round_trips} round trips".format(**one), flush=True)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
