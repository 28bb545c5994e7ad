"""Tables of what was measured, from JSON in docs/bench to docs/bench/tables.md: part of `make plots`."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any, Final

from bench import wan_tables
from bench.engines import ENGINES, OURS, TUNED
from bench.plots import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADINGS: Final = (
    "workload",
    "engine",
    "records/s",
    "lowest to highest",
    "MB/s",
    "of the brokers' limit",
    "of both at once",
    "CPU µs/record",
    "CPU with start, s",
    "peak MB",
    "stored, of the source's",
)


def throughput(found: dict[str, Any]) -> Iterator[str]:
    """Every workload and engine, medians of the rounds."""
    yield from (_row(_HEADINGS), _row("---" for _ in _HEADINGS))
    for workload in _workloads(found):
        for engine in ENGINES:
            many = _of(found, workload, engine)
            if not many:
                continue
            one = many[0]
            rates = [each["records"] / each["seconds"] for each in many]
            rate = statistics.median(rates)
            yield _row(
                (
                    workload,
                    engine,
                    f"{rate:,.0f}",
                    f"{min(rates):,.0f} to {max(rates):,.0f}",
                    f"{rate * one['source_bytes'] / one['records'] / 1e6:.1f}",
                    _share(found, workload, rate, "fetch_s", "append_s"),
                    _share(found, workload, rate, "both_s"),
                    f"{_cpu_us(many):.2f}",
                    f"{statistics.median(each['cpu_with_start_s'] for each in many):.1f}",
                    f"{statistics.median(each['peak_bytes'] for each in many) / 1e6:,.0f}",
                    f"{statistics.median(each['stored_bytes'] for each in many) / one['source_bytes']:.0%}",
                )
            )


def ratios(found: dict[str, Any]) -> Iterator[str]:
    """This project beside tuned MirrorMaker 2, medians of the rounds."""
    shares = "of the brokers' limit", "of both at once"
    yield _row(("workload", TUNED, OURS, "ratio", "less CPU a record", *shares, "bytes stored"))
    yield _row("---" for _ in range(8))
    for workload in _workloads(found):
        peer, ours = _of(found, workload, TUNED), _of(found, workload, OURS)
        if not peer or not ours:
            continue
        theirs, mine = (statistics.median(each["records"] / each["seconds"] for each in many) for many in (peer, ours))
        stored = statistics.median(each["stored_bytes"] for each in ours) / ours[0]["source_bytes"]
        yield _row(
            (
                workload,
                f"{theirs:,.0f}/s",
                f"{mine:,.0f}/s",
                f"{mine / theirs:.1f}x",
                f"{_cpu_us(peer) / _cpu_us(ours):.1f}x",
                _share(found, workload, mine, "fetch_s", "append_s"),
                _share(found, workload, mine, "both_s"),
                f"{stored:.0%}",
            )
        )


def limits(found: dict[str, Any]) -> Iterator[str]:
    """What the brokers do alone, and how near this project comes to that."""
    yield _row(
        (
            "workload",
            "fetch alone",
            "append alone",
            "both at once",
            "of the limit",
            f"{OURS}, of the limit",
            "of both at once",
            "of the fastest limit",
        )
    )
    yield _row("---" for _ in range(8))
    for workload, one in found["limits"].items():
        ours = _of(found, workload, OURS)
        if not ours:
            continue
        rate = statistics.median(each["records"] / each["seconds"] for each in ours)
        times = (f"{one[which]:.2f} s" for which in ("fetch_s", "append_s", "both_s"))
        shares = (
            _share(found, workload, ours[0]["records"] / one["both_s"], "fetch_s", "append_s"),
            _share(found, workload, rate, "fetch_s", "append_s"),
            _share(found, workload, rate, "both_s"),
            _share(found, workload, rate, "fetch_s", "append_s", of="fastest"),
        )
        yield _row((workload, *times, *shares))


def latency(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Milliseconds by rate and engine."""
    yield from (_row(("records/s", "engine", "p50 ms", "p99 ms", "max ms")), _row("---" for _ in range(5)))
    for row in rows:
        figures = (f"{row[cut]:.0f}" for cut in ("p50", "p99", "max"))
        engine = row["engine"] if row["keeps_up"] else f"{row['engine']}, falling behind"
        yield _row((f"{row['rate']:,}", engine, *figures))


def _workloads(found: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(one["workload"] for one in found["samples"]))


def _of(found: dict[str, Any], workload: str, engine: str) -> list[dict[str, Any]]:
    return [one for one in found["samples"] if (one["workload"], one["engine"]) == (workload, engine)]


def _cpu_us(many: list[dict[str, Any]]) -> float:
    spent: float = statistics.median(each["cpu_s"] * 1e6 / each["records"] for each in many)
    return spent


def _share(found: dict[str, Any], workload: str, rate: float, *limits: str, of: str = "limits") -> str:
    """A rate as a share of that of the slowest of `limits`; empty where they were not measured."""
    measured = found.get(of, {}).get(workload, {})
    if any(limit not in measured for limit in limits):
        return ""
    records = next(one["records"] for one in found["samples"] if one["workload"] == workload)
    return f"{rate * max(measured[limit] for limit in limits) / records:.0%}"


def _row(cells: Any) -> str:  # noqa: ANN401
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Write whatever was measured."""
    lines = ["# What was measured", "", "Written by `make plots` from the JSON beside it."]
    parts = (
        ("Throughput beside tuned MirrorMaker 2", "throughput", ratios),
        ("Throughput", "throughput", throughput),
        ("The brokers alone", "throughput", limits),
        ("Latency", "latency", latency),
        ("Across a link: what it carries", "wan", wan_tables.link_limits),
        ("Across a link: throughput beside MirrorMaker 2", "wan", wan_tables.link_ratios),
        ("Across a link: throughput", "wan", wan_tables.link_throughput),
        ("Across a link: latency", "wan", wan_tables.link_latency),
    )
    for title, name, write in parts:
        measured = FOLDER / f"{name}.json"
        if measured.exists():
            lines += ["", f"## {title}", "", *write(json.loads(measured.read_text()))]
    (FOLDER / "tables.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
