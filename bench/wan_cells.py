"""What is measured across a link: workloads, links, placements of the engine, and the list of all cells."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bench.engines import LINK_ENGINES, LINK_TUNED, OUR_LINK_ENGINES
from bench.limits import repeat
from bench.workloads import MANY_PARTITIONS, Workload, dense
from tests.support.link import LinkTerms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mirrorless.local.embedded_kafka import EmbeddedCluster

BESIDE_TARGET: Final = "target"
BESIDE_SOURCE: Final = "source"
PLACEMENTS: Final[Mapping[str, str]] = {BESIDE_TARGET: "source", BESIDE_SOURCE: "target"}
"""Which cluster the engine is beside, and the one that is far then: the link is before its broker."""
DELAYS_MS: Final = (0, 50, 100, 150)
_ENDS_MS: Final = (0, 100)
_LONG_MS: Final = (100,)
_OLD_MS: Final = 3 * 86_400_000

PLAIN: Final = "no limit"
BANDWIDTH: Final = "20 MB/s"
WINDOW: Final = "100 KiB a connection"
_LINKS: Final[Mapping[str, Callable[[float], LinkTerms]]] = {
    PLAIN: lambda seconds: LinkTerms(round_trip_s=seconds),
    # A sender's window is twice bandwidth times round trip: with the usual one the relay would hold seconds of data.
    BANDWIDTH: lambda seconds: LinkTerms(round_trip_s=seconds, bytes_per_second=20e6, window_bytes=4 << 20),
    # Kafka's default of socket.send.buffer.bytes and socket.receive.buffer.bytes.
    WINDOW: lambda seconds: LinkTerms(round_trip_s=seconds, window_bytes=100 << 10),
}
LINKS: Final = tuple(_LINKS)


def terms(link: str, delay_ms: int) -> LinkTerms:
    """What one of `LINKS` is like with a round trip of so many milliseconds."""
    return _LINKS[link](delay_ms / 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """A topic of so many partitions: `records` that a producer writes, all of which are there `times` times.

    Their batches are appended again as they are, which is faster. `age_ms` is how old their timestamps are.
    """

    partitions: int
    records: int
    times: int = 10
    size: int = 1_000
    codec: str = "lz4"
    batch_bytes: int = 256 << 10
    age_ms: int = 0
    config: Mapping[str, str] = field(default_factory=dict)

    def make(self, cluster: EmbeddedCluster, topic: str, times: int | None = None) -> int:
        """Create the topic and fill it; returns how many records it has."""
        times = self.times if times is None else min(times, self.times)
        filled = Workload(fill=self._once, partitions=self.partitions, config=self.config).make(cluster, topic)
        if times > 1:
            repeat(cluster, topic, self.partitions, times - 1)
        return filled * times

    def _once(self, cluster: EmbeddedCluster, topic: str) -> int:
        return dense(
            cluster,
            topic,
            records=self.records,
            size=self.size,
            codec=self.codec,
            batch_bytes=self.batch_bytes,
            partitions=self.partitions,
            timestamp_ms=int(time.time() * 1000) - self.age_ms if self.age_ms else 0,
        )


HOT: Final = "one hot partition"
SIX: Final = "6 partitions"
MANY: Final = "1,000 partitions"
SINGLE: Final = "one-record batches"
OLD: Final = "6 partitions, three days old"
WORKLOADS: Final[Mapping[str, Filling]] = {
    HOT: Filling(partitions=1, records=300_000),
    SIX: Filling(partitions=6, records=300_000),
    MANY: Filling(partitions=1_000, records=200_000, size=500, batch_bytes=16 << 10, config=MANY_PARTITIONS),
    # Appended one by one, which is no faster than a producer.
    SINGLE: Filling(partitions=6, records=1_000_000, times=1, size=100, codec="none", batch_bytes=1),
    OLD: Filling(partitions=6, records=300_000, age_ms=_OLD_MS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One place in the table: what is copied, by what, from where, over which link."""

    workload: str
    engine: str
    placement: str
    delay_ms: int
    link: str = PLAIN

    @property
    def has_all_delays(self) -> bool:
        """Whether it is one of those that are measured with all round trips."""
        return (self.workload, self.link) in _AT_ALL_DELAYS

    def __str__(self) -> str:
        return f"{self.workload}, {self.link}, {self.delay_ms} ms, beside the {self.placement}, {self.engine}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for; empty means all."""

    workloads: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    delays_ms: tuple[int, ...] = ()
    links: tuple[str, ...] = ()

    def has(self, cell: Cell) -> bool:
        """Whether the cell was asked for."""
        return all(
            not chosen or one in chosen
            for chosen, one in (
                (self.workloads, cell.workload),
                (self.engines, cell.engine),
                (self.placements, cell.placement),
                (self.delays_ms, cell.delay_ms),
                (self.links, cell.link),
            )
        )


_PLAN: Final = (
    (HOT, PLAIN, DELAYS_MS, LINK_ENGINES),
    (HOT, WINDOW, _LONG_MS, LINK_ENGINES),
    (SIX, PLAIN, DELAYS_MS, LINK_ENGINES),
    (SIX, WINDOW, _LONG_MS, LINK_ENGINES),
    (SIX, BANDWIDTH, _LONG_MS, (LINK_TUNED, *OUR_LINK_ENGINES)),
    (MANY, PLAIN, _ENDS_MS, LINK_ENGINES),
    (SINGLE, PLAIN, _ENDS_MS, LINK_ENGINES),
    (OLD, PLAIN, _LONG_MS, (LINK_TUNED, *OUR_LINK_ENGINES)),
)
_AT_ALL_DELAYS: Final = {(workload, link) for workload, link, delays_ms, _ in _PLAN if delays_ms == DELAYS_MS}
_LATENCY_PLAN: Final = ((SIX, _ENDS_MS), (MANY, _LONG_MS))


def throughput_cells(wanted: Wanted) -> Iterator[tuple[str, list[list[Cell]]]]:
    """Yield every workload with its groups of cells: those of a group differ in the engine only."""
    groups: dict[str, dict[tuple[object, ...], list[Cell]]] = {}
    for workload, link, delays_ms, engines in _PLAN:
        for cell in _cells(workload, link, delays_ms, engines):
            if wanted.has(cell):
                of_workload = groups.setdefault(workload, {})
                of_workload.setdefault((link, cell.delay_ms, cell.placement), []).append(cell)
    yield from ((workload, list(many.values())) for workload, many in groups.items())


def latency_cells(wanted: Wanted) -> Iterator[Cell]:
    """Yield the cells whose latency is measured."""
    for workload, delays_ms in _LATENCY_PLAN:
        yield from filter(wanted.has, _cells(workload, PLAIN, delays_ms, LINK_ENGINES))


def _cells(workload: str, link: str, delays_ms: Sequence[int], engines: Sequence[str]) -> Iterator[Cell]:
    for delay_ms in delays_ms:
        for placement in PLACEMENTS:
            # Without a delay both placements are the same: the relay is before the other broker.
            if delay_ms or placement == BESIDE_TARGET:
                for engine in engines:
                    yield Cell(workload=workload, engine=engine, placement=placement, delay_ms=delay_ms, link=link)
