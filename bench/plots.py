"""Plots of what was measured, from JSON in docs/bench to PNG and SVG beside it: `make plots`."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.engines import DEFAULT, ENGINES, FUNCTIONS, LINK_ENGINES, LINK_TUNED, OURS, SPARK, TUNED

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER: Final = Path(__file__).parents[1] / "docs" / "bench"
_COLOURS: Final = dict(zip(ENGINES, ("#9aa5b1", "#52606d", "#cbd2d9", "#0b69a3"), strict=True))
_LINK_COLOURS: Final = {DEFAULT: "#9aa5b1", LINK_TUNED: "#52606d", FUNCTIONS: "#de911d", SPARK: "#0b69a3"}
_LINK_LINES: Final = {"target": "o-", "source": "s--"}
_LIMIT: Final = "#d64545"
_PASSES: Final = ("everything new", "nothing to do")


def throughput(found: dict[str, Any]) -> Figure:
    """Records a second and CPU a record of every workload and engine, medians; the brokers' own limit as a line."""
    workloads = list(dict.fromkeys(one["workload"] for one in found["samples"]))
    engines = [engine for engine in ENGINES if any(one["engine"] == engine for one in found["samples"])]
    figure, (rates, cpu) = plt.subplots(1, 2, figsize=(13, 0.75 * len(workloads) + 1.5), sharey=True)
    height = 0.8 / len(engines)
    for number, engine in enumerate(engines):
        mine = [
            [one for one in found["samples"] if (one["workload"], one["engine"]) == (workload, engine)]
            for workload in workloads
        ]
        at = [row + (number - (len(engines) - 1) / 2) * height for row in range(len(workloads))]
        rate = [_median(many, lambda one: one["records"] / one["seconds"]) for many in mine]
        spent = [_median(many, lambda one: one["cpu_s"] * 1e6 / one["records"]) for many in mine]
        rates.barh(at, rate, height, color=_COLOURS[engine], label=engine)
        cpu.barh(at, spent, height, color=_COLOURS[engine])
    for row, workload in enumerate(workloads):
        if (limit := found["limits"].get(workload)) is not None:
            records = next(one["records"] for one in found["samples"] if one["workload"] == workload)
            most = records / max(limit["fetch_s"], limit["append_s"])
            rates.plot([most, most], [row - 0.45, row + 0.45], color=_LIMIT, label=None if row else "brokers alone")
    rates.set_yticks(range(len(workloads)), workloads)
    rates.invert_yaxis()
    rates.set_xlabel("records/s")
    rates.locator_params(axis="x", nbins=5)
    rates.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    cpu.set_xlabel("CPU of the engine, µs a record")
    _finish(figure, rates, cpu)
    return figure


def latency(rows: list[dict[str, Any]]) -> Figure:
    """p50 and p99 by rate and engine."""
    rates = sorted({row["rate"] for row in rows})
    figure, both = plt.subplots(1, 2, figsize=(11, 3.6))
    for axes, cut in zip(both, ("p50", "p99"), strict=True):
        for number, engine in enumerate(ENGINES):
            mine = {row["rate"]: row[cut] for row in rows if row["engine"] == engine}
            at = [place + (number - 1.5) * 0.2 for place in range(len(rates))]
            axes.bar(at, [mine.get(rate, 0) for rate in rates], 0.2, color=_COLOURS[engine], label=engine)
        axes.set_xticks(range(len(rates)), [f"{rate:,}/s" for rate in rates])
        axes.set_ylabel(f"latency {cut}, ms")
        axes.set_yscale("log")
    _finish(figure, both[0], both[1])
    return figure


def growth(found: dict[str, list[dict[str, Any]]]) -> Figure:
    """Throughput by slots, partitions and topics; seconds of a pass by topics."""
    kinds = [kind for kind in ("slots", "partitions", "topics", "passes") if kind in found]
    figure, many = plt.subplots(1, len(kinds), figsize=(4 * len(kinds), 3.4), squeeze=False)
    for axes, kind in zip(many[0], kinds, strict=True):
        if kind == "passes":
            for what in _PASSES:
                axes.plot([row["topics"] for row in found[kind]], [row[what] for row in found[kind]], "o-", label=what)
            axes.set_xlabel("topics")
            axes.set_ylabel("seconds of a metadata pass")
            axes.legend(frameon=False)
            continue
        for engine in (TUNED, OURS):
            mine = [row for row in found[kind] if row["engine"] == engine]
            if mine:
                sizes, rates = [row[kind] for row in mine], [row["per_second"] for row in mine]
                axes.plot(sizes, rates, "o-", color=_COLOURS[engine], label=engine)
        axes.set_xlabel(kind)
        axes.set_ylabel("records/s")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        if kind == "slots":
            axes.set_xticks([row[kind] for row in found[kind]])
        else:
            axes.set_xscale("log")
    _finish(figure, *many[0])
    return figure


def wan(found: dict[str, Any]) -> Figure:
    """Records a second by round trip, engine and placement, medians, of the workloads that have all round trips."""
    samples = [one for one in found["samples"] if one["link"] == "no limit"]
    delays = sorted({one["delay_ms"] for one in samples})
    workloads = [
        name
        for name in dict.fromkeys(one["workload"] for one in samples)
        if {one["delay_ms"] for one in samples if one["workload"] == name} == set(delays)
    ]
    figure, many = plt.subplots(1, max(1, len(workloads)), figsize=(13, 4.6), squeeze=False, sharey=True)
    for axes, workload in zip(many[0], workloads, strict=False):
        for engine in LINK_ENGINES:
            for placement, line in _LINK_LINES.items():
                points = []
                for delay_ms in delays:
                    # Without a delay the placements are the same, and one is measured.
                    mine = [
                        one
                        for one in samples
                        if (one["workload"], one["engine"], one["delay_ms"]) == (workload, engine, delay_ms)
                        and (not delay_ms or one["placement"] == placement)
                    ]
                    if mine:
                        points.append((delay_ms, _median(mine, lambda one: one["records"] / one["seconds"])))
                if points:
                    label = engine if placement == "target" else None
                    axes.plot(*zip(*points, strict=True), line, color=_LINK_COLOURS[engine], label=label)
        axes.set_title(workload, fontsize="medium")
        axes.set_xticks(delays)
        axes.set_xlabel("round trip, ms (dashed: engine beside the source)")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    many[0][0].set_ylabel("records/s, 1 KB")
    _finish(figure, *many[0])
    return figure


def _median(samples: list[dict[str, Any]], of: Any) -> float:  # noqa: ANN401
    return statistics.median(map(of, samples)) if samples else 0.0


def _finish(figure: Figure, *axes: Axes) -> None:
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[-1 if len(axes) == 1 else 0].get_legend_handles_labels()
    for one in axes[1:]:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            if label not in labels and one.get_legend() is None:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.93))


def main() -> None:
    """Draw whatever was measured."""
    plots: dict[str, Callable[[Any], Figure]] = {
        "throughput": throughput,
        "latency": latency,
        "growth": growth,
        "wan": wan,
    }
    mpl.use("Agg")  # no display is needed
    # Without the date of drawing, so that a plot changes only where a figure did.
    mpl.rcParams["svg.hashsalt"] = "mirrorless"
    for name, draw in plots.items():
        measured = FOLDER / f"{name}.json"
        if not measured.exists():
            continue
        figure = draw(json.loads(measured.read_text()))
        figure.savefig(measured.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(measured.with_suffix(".png"), dpi=110, metadata={"Software": "mirrorless"})
        plt.close(figure)
        print(measured.with_suffix(".svg").name, measured.with_suffix(".png").name)


if __name__ == "__main__":
    main()
