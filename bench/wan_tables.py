"""Tables of what was measured across links: part of docs/bench/tables.md, and printed by `bench.wan`."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any, Final

from bench.engines import LINK_ENGINES, LINK_TUNED, OUR_LINK_ENGINES
from bench.wan_cells import BESIDE_TARGET, LINKS, PLACEMENTS, PLAIN, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GROUP: Final = ("workload", "link", "delay_ms", "placement")


def link_limits(found: dict[str, Any]) -> Iterator[str]:
    """What the relay carries to clients that do nothing with it."""
    yield from _table("round trip", "connections", "MB/s")
    for one in sorted(found["limits"], key=lambda one: (one["delay_ms"], one["connections"])):
        yield _row((f"{one['delay_ms']} ms", one["connections"], f"{one['bytes_per_second'] / 1e6:,.0f}"))


def link_ratios(found: dict[str, Any]) -> Iterator[str]:
    """This project beside MirrorMaker 2 that is tuned for links, and beside itself without a delay."""
    yield from _table(
        "workload", "link", "round trip", "engine beside", LINK_TUNED, "Mirrorless", "records/s", "ratio", "of 0 ms"
    )
    for group in _groups(found):
        peer = _rate(_samples(found, group, LINK_TUNED))
        for engine in OUR_LINK_ENGINES:
            ours = _rate(_samples(found, group, engine))
            if ours is None:
                continue
            workload, _, delay_ms, _ = group
            near = _rate(_samples(found, (workload, PLAIN, 0, BESIDE_TARGET), engine))
            yield _row(
                (
                    *_named(group),
                    "" if peer is None else f"{peer:,.0f}/s",
                    engine.rpartition(", ")[2],
                    f"{ours:,.0f}/s",
                    f"{ours / peer:.1f}x" if peer else "",
                    "" if near is None or not delay_ms else f"{ours / near:.0%}",
                )
            )


def link_throughput(found: dict[str, Any]) -> Iterator[str]:
    """Every cell, medians of the rounds."""
    yield from _table(
        "workload",
        "link",
        "round trip",
        "engine beside",
        "engine",
        "records/s",
        "lowest to highest",
        "MB/s",
        "CPU µs/record",
        "peak MB",
        "first record after, s",
        "relay, cores",
    )
    for group in _groups(found):
        for engine in LINK_ENGINES:
            many = _samples(found, group, engine)
            rate = _rate(many)
            if rate is None:
                continue
            rates = _rates(many)
            yield _row(
                (
                    *_named(group),
                    engine,
                    f"{rate:,.0f}",
                    f"{min(rates):,.0f} to {max(rates):,.0f}",
                    f"{statistics.median(one['bytes'] / one['seconds'] for one in many) / 1e6:.1f}",
                    f"{statistics.median(one['cpu_s'] * 1e6 / max(1, one['records']) for one in many):.2f}",
                    f"{statistics.median(one['peak_bytes'] for one in many) / 1e6:,.0f}",
                    f"{statistics.median(one['start_s'] for one in many):.1f}",
                    f"{statistics.median(one['relay_cpu_s'] / one['seconds'] for one in many):.2f}",
                )
            )


def link_latency(found: dict[str, Any]) -> Iterator[str]:
    """Latency at a steady rate, one round."""
    yield from _table("workload", "round trip", "engine beside", "engine", "records/s", "p50 ms", "p99 ms", "max ms")
    order = _order(found["latencies"], ("workload", "delay_ms", "placement"))
    for group in order:
        for engine in LINK_ENGINES:
            for one in found["latencies"]:
                if (*(one[part] for part in ("workload", "delay_ms", "placement")), one["engine"]) == (*group, engine):
                    name = engine if one["keeps_up"] else f"{engine}, falling behind"
                    figures = (f"{one[cut]:,.0f}" for cut in ("p50_ms", "p99_ms", "max_ms"))
                    workload, delay_ms, placement = group
                    yield _row((workload, f"{delay_ms} ms", placement, name, f"{one['rate']:,}", *figures))


def all_tables(found: dict[str, Any]) -> Iterator[str]:
    """Every table that has rows."""
    for kind, title, write in (
        ("limits", "The link alone", link_limits),
        ("samples", "Throughput beside MirrorMaker 2", link_ratios),
        ("samples", "Throughput", link_throughput),
        ("latencies", "Latency", link_latency),
    ):
        if found[kind]:
            yield from ("", f"{title}:", "", *write(found))


def _groups(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return _order(found["samples"], _GROUP)


def _order(rows: Sequence[dict[str, Any]], parts: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the different values of some fields: workloads and links as they are listed, delays from short to long."""
    places = {name: number for number, name in enumerate((*WORKLOADS, *LINKS, *PLACEMENTS))}
    groups = {tuple(row[part] for part in parts) for row in rows}
    return sorted(groups, key=lambda group: [(places.get(one, 0), 0 if isinstance(one, str) else one) for one in group])


def _named(group: Sequence[Any]) -> tuple[str, ...]:
    workload, link, delay_ms, placement = group
    return workload, link, f"{delay_ms} ms", placement


def _samples(found: dict[str, Any], group: Sequence[Any], engine: str) -> list[dict[str, Any]]:
    wanted = (*group, engine)
    return [one for one in found["samples"] if tuple(one[part] for part in (*_GROUP, "engine")) == wanted]


def _rates(many: Sequence[dict[str, Any]]) -> list[float]:
    return [one["records"] / one["seconds"] for one in many]


def _rate(many: Sequence[dict[str, Any]]) -> float | None:
    return statistics.median(_rates(many)) if many else None


def _table(*headings: str) -> Iterator[str]:
    yield from (_row(headings), _row("---" for _ in headings))


def _row(cells: Any) -> str:  # noqa: ANN401
    return f"| {' | '.join(map(str, cells))} |"
