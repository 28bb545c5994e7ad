"""`mirrorless demo`: two clusters, a million records, replicated and compared."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from mirrorless.copy.partition.lease_rows import Report, summary
from mirrorless.local.demo.comparison import DemoComparison, compare
from mirrorless.local.demo.workload import DEMO_TOPICS, fill
from mirrorless.local.display import ProgressBar
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.local.ready_settings import ready_settings
from mirrorless.local.runner import StopRequest, run_flows
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SMALL_BYTES = 100


@click.command
@click.option("--settings", "keep", type=click.Path(dir_okay=False), help="Write the demo's mm2.properties here too.")
def demo(keep: str | None) -> None:
    """Fill one Kafka cluster, replicate it into another, and compare every record.

    Exit status 0 if both sides are identical.
    """
    console = Console()
    stop = StopRequest()
    with (
        stop.on_signals(),
        tempfile.TemporaryDirectory(prefix="mirrorless-demo-") as folder,
        start_clusters([ClusterSpec(name="primary"), ClusterSpec(name="backup")], say=console.print) as clusters,
    ):
        file = Path(folder) / "mm2.properties"
        file.write_text(_settings(clusters))
        if keep is not None:
            Path(keep).write_text(file.read_text())
        for name, cluster in clusters.items():
            console.print(f"{name}: Kafka 4.3.0 at {cluster.bootstrap_servers}", highlight=False)
        _fill(console, clusters["primary"], stop)
        reports = _replicate(console, file, stop)
        comparisons = _compare(console, clusters, stop)
    if stop.event.is_set():
        console.print("stopped")
        sys.exit(0)
    _print_table(console, comparisons, reports)
    sys.exit(0 if _verdict(console, comparisons, reports) else 1)


def _settings(clusters: Mapping[str, EmbeddedCluster]) -> str:
    servers = {name: cluster.bootstrap_servers for name, cluster in clusters.items()}
    return ready_settings(servers, topics=", ".join(topic.name for topic in DEMO_TOPICS), soon=False)


def _counting(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
    )


def _fill(console: Console, primary: EmbeddedCluster, stop: StopRequest) -> None:
    with _counting(console) as progress:
        bar = progress.add_task("filling primary", total=sum(topic.records for topic in DEMO_TOPICS))
        for topic in DEMO_TOPICS:
            if not stop.event.is_set():
                fill(primary.bootstrap_servers, topic, advanced=lambda count: progress.advance(bar, count))


class _DemoDisplay(ProgressBar):
    """The progress bar of `mirrorless run`, and a memory for what every lease reported."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.reports: list[Report] = []

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        """Keep them."""
        super().leased(flow, reports, faulty=faulty)
        self.reports += reports


def _replicate(console: Console, file: Path, stop: StopRequest) -> list[Report]:
    display = _DemoDisplay(console)
    if not stop.event.is_set():
        with display:
            run_flows(load(file), bounded=True, display=display, stop=stop)
    return display.reports


def _compare(console: Console, clusters: Mapping[str, EmbeddedCluster], stop: StopRequest) -> list[DemoComparison]:
    with _counting(console) as progress:
        bar = progress.add_task("comparing every record", total=sum(topic.records for topic in DEMO_TOPICS))
        return [
            compare(
                source=clusters["primary"].bootstrap_servers,
                target=clusters["backup"].bootstrap_servers,
                topic=topic.name,
                remote_topic=f"primary.{topic.name}",
                partitions=topic.partitions,
                advanced=lambda count: progress.advance(bar, count),
            )
            for topic in DEMO_TOPICS
            if not stop.event.is_set()
        ]


def _print_table(console: Console, comparisons: Sequence[DemoComparison], reports: Sequence[Report]) -> None:
    by_topic: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        by_topic[report.topic].append(report)
    table = Table(title="primary -> backup", title_justify="left")
    for column, justify in (
        ("topic", "left"),
        ("partitions", "right"),
        ("codec", "left"),
        ("value bytes", "right"),
        ("records", "right"),
        ("MB stored", "right"),
        ("copied in s", "right"),
        ("equal records", "right"),
        ("identical", "left"),
    ):
        table.add_column(column, justify="right" if justify == "right" else "left")
    for topic, comparison in zip(DEMO_TOPICS, comparisons, strict=True):
        totals = summary(by_topic[topic.name])
        table.add_row(
            topic.name,
            f"{topic.partitions}",
            topic.codec,
            f"{topic.value_bytes:,}",
            f"{totals.records:,}",
            f"{totals.copied_bytes / 1e6:,.1f}",
            f"{totals.seconds:.2f}",
            f"{comparison.records:,}",
            "yes" if comparison.identical else "[bold red]no[/]",
        )
    console.print(table)


def _verdict(console: Console, comparisons: Sequence[DemoComparison], reports: Sequence[Report]) -> bool:
    small = {topic.name for topic in DEMO_TOPICS if topic.value_bytes == _SMALL_BYTES}
    fast = summary(report for report in reports if report.topic in small)
    everything = summary(reports)
    for text, totals in ((f"the {len(small)} topics of 100-byte records", fast), ("everything", everything)):
        console.print(
            f"{text}: {totals.records:,} records in {totals.seconds:.2f} s, {totals.records_per_s:,.0f} records/s, "
            f"{totals.copied_bytes / 1e6 / (totals.seconds or 1):,.1f} MB/s",
            highlight=False,
        )
    for comparison in comparisons:
        for line in comparison.differences:
            console.print(f"[red]{line}[/]", highlight=False)
    expected = sum(topic.records for topic in DEMO_TOPICS)
    compared = sum(comparison.records for comparison in comparisons)
    differences = sum(comparison.difference_count for comparison in comparisons)
    if differences == 0 and compared == expected:
        console.print(f"identical: {compared:,} records, no difference", style="bold green", highlight=False)
        return True
    console.print(
        f"NOT identical: {differences:,} differences, {compared:,} of {expected:,} records equal",
        style="bold red",
        highlight=False,
    )
    return False
