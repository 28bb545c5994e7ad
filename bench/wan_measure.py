"""One cell across a link: how fast an engine copies a backlog, and how soon records of a steady load arrive."""

from __future__ import annotations

import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka.admin import AdminClient, NewTopic

from bench.engines import Family, running
from bench.latency import Stream, latencies_ms
from bench.logs import stored_bytes
from bench.throughput import Ends, tidy
from bench.wan_cells import WORKLOADS, Cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.wan_regions import Regions
    from tests.support.world import World

_PATIENCE_S: Final = 180.0
_LAST_WORDS: Final = 3_000
_FIRST_LOOKS_S: Final = 0.1
_LOOK_S: Final = 0.25
_MANY_LOOK_S: Final = 1.0
"""To ask a broker for the ends of a thousand partitions costs it and this process 35 ms."""
_SETTLED_SHARE: Final = 1 / 6
_ENDED_SHARE: Final = 0.95
_CATCHING_UP_S: Final = 60.0
_CAUGHT_UP_S: Final = 1.5
"""So many seconds of records may be on their way."""


class NothingCopied(Exception):
    """No record arrived within three minutes; has the end of what the engine printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSample:
    """Steady copying of a backlog: what arrived in a time, and what that took.

    `seconds` and all other figures are of the time in which it was watched; `start_s` is from the engine's start to the
    first record. `bytes` are those of the source's batches; `relay_cpu_s` is what the link's relay used.
    """

    workload: str
    engine: str
    placement: str
    delay_ms: int
    link: str
    records: int
    bytes: int
    seconds: float
    start_s: float
    cpu_s: float
    relay_cpu_s: float
    peak_bytes: int

    def __str__(self) -> str:
        rate, bytes_rate = self.records / self.seconds, self.bytes / self.seconds
        return (
            f"{rate:,.0f} records/s, {bytes_rate / 1e6:.1f} MB/s in {self.seconds:.1f} s, "
            f"{self.cpu_s * 1e6 / max(1, self.records):.1f} us CPU a record, peak {self.peak_bytes / 1e6:,.0f} MB, "
            f"first record after {self.start_s:.1f} s, relay {self.relay_cpu_s / self.seconds:.0%} of a core"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A topic of the source that was filled once, for all engines."""

    topic: str
    records: int
    bytes: int


def filled(regions: Regions, workload: str, times: int | None) -> Backlog:
    """Create and fill a topic, not through a link; `times` is for a smaller one than usual."""
    topic = f"wan-{time.monotonic_ns()}"
    source = regions.clusters["source"]
    records = WORKLOADS[workload].make(source, topic, times)
    return Backlog(topic=topic, records=records, bytes=stored_bytes(source, topic))


def throughput(regions: Regions, cell: Cell, backlog: Backlog, *, settle_s: float, window_s: float) -> LinkSample:
    """Let an engine copy a backlog for a while, and count what arrives.

    Counting begins `settle_s` after the first record, or when a sixth of the backlog is there; it ends after
    `window_s`, or when all but a twentieth is there.
    """
    with regions.world(cell, [backlog.topic]) as world:
        with _engine(cell, world) as (family, ends, began):
            few = WORKLOADS[cell.workload].partitions < 100
            first = _first_record(ends, world, look_s=_FIRST_LOOKS_S if few else _MANY_LOOK_S)
            look_s = _LOOK_S if few else _MANY_LOOK_S
            begin_records = _until(
                ends, family, until=first + settle_s, records=_SETTLED_SHARE * backlog.records, look_s=look_s
            )
            begins, cpu, relay = time.monotonic(), family.look(), regions.relay_cpu_s(cell)
            end_records = _until(
                ends, family, until=begins + window_s, records=_ENDED_SHARE * backlog.records, look_s=look_s
            )
            seconds = time.monotonic() - begins
            records = end_records - begin_records
            sample = LinkSample(
                workload=cell.workload,
                engine=cell.engine,
                placement=cell.placement,
                delay_ms=cell.delay_ms,
                link=cell.link,
                records=records,
                bytes=round(records * backlog.bytes / backlog.records),
                seconds=seconds,
                start_s=first - began,
                cpu_s=family.look() - cpu,
                relay_cpu_s=regions.relay_cpu_s(cell) - relay,
                peak_bytes=family.peak_bytes,
            )
        tidy(world.target, [world.remote(backlog.topic)])
    return sample


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLatency:
    """Milliseconds from a record's timestamp to a consumer beside the target, at a steady rate."""

    workload: str
    engine: str
    placement: str
    delay_ms: int
    rate: int
    seen: int
    keeps_up: bool
    p50_ms: float
    p99_ms: float
    max_ms: float

    def __str__(self) -> str:
        return (
            f"{self.rate:,} records/s: p50 {self.p50_ms:.0f} ms, p99 {self.p99_ms:.0f} ms, "
            f"maximum {self.max_ms:.0f} ms{'' if self.keeps_up else ', falling behind'}"
        )


def latency(regions: Regions, cell: Cell, *, rate: int, settle_s: float, window_s: float) -> LinkLatency:
    """Write at a steady rate to the source's plain listener and read at the target's."""
    partitions = WORKLOADS[cell.workload].partitions
    topic = f"wan-{time.monotonic_ns()}"
    source = regions.clusters["source"]
    admin = AdminClient({"bootstrap.servers": source.bootstrap_servers})
    config = dict(WORKLOADS[cell.workload].config)
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result()
    with regions.world(cell, [topic]) as world:
        with Stream(source, topic, rate, partitions=partitions), _engine(cell, world) as (_, ends, _):
            _first_record(ends, world, look_s=_MANY_LOOK_S)
            there = Ends(source, {topic: partitions})
            until = time.monotonic() + _CATCHING_UP_S
            while not (keeps_up := there.total() - ends.total() < rate * _CAUGHT_UP_S) and time.monotonic() < until:
                time.sleep(_MANY_LOOK_S)
            time.sleep(settle_s)
            found = latencies_ms(world.target, world.remote(topic), window_s, partitions=partitions)
        tidy(world.target, [world.remote(topic)])
    tidy(source, [topic])
    cuts = statistics.quantiles(found, n=100)
    return LinkLatency(
        workload=cell.workload,
        engine=cell.engine,
        placement=cell.placement,
        delay_ms=cell.delay_ms,
        rate=rate,
        seen=len(found),
        keeps_up=keeps_up,
        p50_ms=cuts[49],
        p99_ms=cuts[98],
        max_ms=max(found),
    )


@contextmanager
def _engine(cell: Cell, world: World) -> Iterator[tuple[Family, Ends, float]]:
    """Start an engine: its processes, the ends of the only topic's copy, and when that was."""
    (topic,) = world.topics
    ends = Ends(world.target, {world.remote(topic): WORKLOADS[cell.workload].partitions})
    began = time.monotonic()
    with running(cell.engine, world) as now:
        yield now.family, ends, began


def _first_record(ends: Ends, world: World, *, look_s: float) -> float:
    until = time.monotonic() + _PATIENCE_S
    while not ends.total():
        if time.monotonic() > until:
            said = [
                file.read_text()[-_LAST_WORDS:] for kind in ("*.out", "peer-*.log") for file in world.folder.glob(kind)
            ]
            raise NothingCopied("\n".join(said))
        time.sleep(look_s)
    return time.monotonic()


def _until(ends: Ends, family: Family, *, until: float, records: float, look_s: float) -> int:
    """Look until a time, or until so many records are there; returns how many are."""
    while (there := ends.total()) < records and (left := until - time.monotonic()) > 0:
        family.look()
        time.sleep(min(look_s, left))
    return there
