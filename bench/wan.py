"""Copying between regions beside MirrorMaker 2: throughput, latency, CPU and memory by round trip: `make bench-wan`.

    python -m bench.wan [--workload NAME …] [--engine NAME …] [--placement target] [--delay 100] [--link NAME]
                        [--rounds 2] [--window 10] [--cold] [--times 3] [--only throughput] [--json FILE]

One broker is far: a relay is before it (`tests.support.link`), through which the engine alone goes. Whatever fills,
counts and reads goes to the plain listener. Without a delay the relay is there too, so that nothing but the delay
changes. What the relay carries is measured first, by plain sockets.

Throughput is that of steady copying: a backlog is there when the engine starts, and what arrives in a time is counted,
from some seconds after the first record (or a sixth of the backlog) on. Engines take turns in every round, each into a
remote topic of its own, and each starts again; medians count. Workloads and links that are not measured with all round
trips have one round less. CPU is that of the engine's whole process tree in that
time. Latency is that of 1,000 records a second, one round.

Before the first cell brokers are warmed as for `bench.throughput`, and before each workload by copies without Spark and
without a link; `--cold` leaves that out, for a look at one cell. With `--json`, figures of cells that are not measured
now are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import wan_tables
from bench.engines import LINK_ENGINES
from bench.throughput import copy_without_spark, tidy, warm
from bench.wan_cells import (
    DELAYS_MS,
    LINKS,
    PLACEMENTS,
    WORKLOADS,
    Cell,
    Wanted,
    latency_cells,
    throughput_cells,
)
from bench.wan_measure import NothingCopied, filled, latency, throughput
from bench.wan_regions import Regions, link_limit, regions

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY: Final = ("workload", "engine", "placement", "delay_ms", "link")
_WARM_COPIES: Final = 2
_RATE: Final = 1_000
_CONNECTIONS: Final = (1, 4)


class Figures:
    """What was measured so far, written to a file after each cell."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._fresh: set[tuple[object, ...]] = set()
        self.found: dict[str, Any] = {"limits": [], "samples": [], "latencies": []}
        if file is not None and file.exists():
            self.found |= json.loads(file.read_text())
        # One that was built with a profile runs small loops in two thirds of the time.
        self.found["python"] = sys.version

    def add(self, kind: str, one: dict[str, Any]) -> None:
        """Add one; the first of a cell replaces what an earlier run found for it."""
        key = (kind, *(one.get(part) for part in (*_KEY, "connections")))
        if key not in self._fresh:
            self._fresh.add(key)
            self.found[kind] = [
                other
                for other in self.found[kind]
                if (kind, *(other.get(part) for part in (*_KEY, "connections"))) != key
            ]
        self.found[kind].append(one)
        if self._file is not None:
            self._file.write_text(json.dumps(self.found, indent=1) + "\n")


def measure_limits(figures: Figures, wanted: Wanted) -> None:
    """Print and keep what a link carries, at each round trip."""
    for delay_ms in wanted.delays_ms or DELAYS_MS:
        for connections in _CONNECTIONS:
            rate = link_limit(delay_ms, connections)
            _say(f"link alone, {delay_ms} ms, connections: {connections}: {rate / 1e6:,.0f} MB/s")
            one = {"delay_ms": delay_ms, "connections": connections, "bytes_per_second": rate}
            figures.add("limits", one)


def measure_throughput(there: Regions, figures: Figures, wanted: Wanted, given: argparse.Namespace) -> None:
    """Fill each workload's topic once, and measure its cells in every round."""
    for workload, groups in throughput_cells(wanted):
        backlog = filled(there, workload, given.times)
        _say(f"{workload}: {backlog.records:,} records, {backlog.bytes / 1e6:,.0f} MB")
        if not given.cold:
            for _ in range(_WARM_COPIES):
                copy_without_spark(there.clusters, backlog.topic, WORKLOADS[workload].partitions)
        for group in groups:
            for number in range(given.rounds if group[0].has_all_delays else max(1, given.rounds - 1)):
                for cell in _turned(group, number):
                    with _failure_told(cell):
                        sample = throughput(there, cell, backlog, settle_s=given.settle, window_s=given.window)
                        _say(f"{cell}: {sample}")
                        figures.add("samples", asdict(sample))
        tidy(there.clusters["source"], [backlog.topic])


def measure_latency(there: Regions, figures: Figures, wanted: Wanted, given: argparse.Namespace) -> None:
    """Measure every cell once."""
    for cell in latency_cells(wanted):
        with _failure_told(cell):
            found = latency(there, cell, rate=_RATE, settle_s=given.settle, window_s=2 * given.window)
            _say(f"{cell}: {found}")
            figures.add("latencies", asdict(found))


@contextmanager
def _failure_told(cell: Cell) -> Iterator[None]:
    """Print that an engine copied nothing, and let the other cells be measured."""
    try:
        yield
    except NothingCopied as failure:
        _say(f"{cell}: nothing was copied\n{failure}")


def _turned(group: list[Cell], number: int) -> list[Cell]:
    begins = number % len(group)
    return [*group[begins:], *group[:begins]]


_began = time.monotonic()


def _say(text: str) -> None:
    print(f"{time.monotonic() - _began:6.0f} s  {text}", flush=True)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS))
    parser.add_argument("--engine", action="append", choices=LINK_ENGINES)
    parser.add_argument("--placement", action="append", choices=list(PLACEMENTS), help="what the engine is beside")
    parser.add_argument("--delay", action="append", type=int, choices=DELAYS_MS, help="round trip, ms")
    parser.add_argument("--link", action="append", choices=LINKS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--settle", type=float, default=5.0, help="seconds before counting")
    parser.add_argument("--window", type=float, default=10.0, help="seconds of counting")
    parser.add_argument("--times", type=int, help="a smaller backlog: so many tenths of the usual one")
    parser.add_argument("--only", choices=("limits", "throughput", "latency"))
    parser.add_argument("--cold", action="store_true", help="without warming the brokers")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    wanted = Wanted(
        workloads=tuple(given.workload or ()),
        engines=tuple(given.engine or ()),
        placements=tuple(given.placement or ()),
        delays_ms=tuple(given.delay or ()),
        links=tuple(given.link or ()),
    )
    figures = Figures(given.json)
    if given.only in (None, "limits"):
        measure_limits(figures, wanted)
    if given.only != "limits":
        with regions() as there:
            if not given.cold:
                warm(there.clusters)
            if given.only in (None, "throughput"):
                measure_throughput(there, figures, wanted, given)
            if given.only in (None, "latency"):
                measure_latency(there, figures, wanted, given)
    print(*wan_tables.all_tables(figures.found), sep="\n")


if __name__ == "__main__":
    main()
