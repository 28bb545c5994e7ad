"""`mirrorless demo`: three million records replicated by Spark, then a steady flow by functions; all are compared."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from mirrorless.cli.options import config_file_option, renamed
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.copy.api import Report, summary
from mirrorless.errors import ConfigurationError
from mirrorless.local.demo.comparison import DemoComparison, compare
from mirrorless.local.demo.steady import STEADY_TOPIC, SteadyFlow
from mirrorless.local.demo.workload import DEMO_TOPICS, DemoTopic, fill
from mirrorless.local.display import ProgressBar
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.local.listing import Listing, output_console
from mirrorless.local.ready_settings import ready_settings
from mirrorless.local.runner import StopRequest, run_flows
from mirrorless.local.spark_host import check_spark
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

ALL_TOPICS = (*DEMO_TOPICS, STEADY_TOPIC)
_SMALL_BYTES = 100
_NUMBERS = ("partitions", "value bytes", "records", "MB stored", "copied in s", "equal records")
_COLUMNS = ("topic", *_NUMBERS[:1], "codec", *_NUMBERS[1:], "identical")


@click.command
@config_file_option
@click.option("--settings", "former", hidden=True)
def demo(config: str | None, former: str | None) -> None:
    """Replicate between two Kafka clusters on this machine.

    Starts both clusters, fills one, replicates it into the other with the Spark engine, replicates a steady flow with
    the functions engine, and compares every record.

    Exit status 0: both sides are identical; 1: they differ.
    """
    keep = renamed("--settings", "--config", before=former, now=config)
    if keep is not None and not Path(keep).parent.is_dir():
        raise ConfigurationError("the folder does not exist; create it", key="--config", value=keep)
    check_spark()  # fails early, before anything is started
    console = output_console()
    stop = StopRequest()
    with (
        stop.on_signals(),
        tempfile.TemporaryDirectory(prefix="mirrorless-demo-") as folder,
        start_clusters([ClusterSpec(name="primary"), ClusterSpec(name="backup")], say=console.print) as clusters,
    ):
        file = Path(folder) / "mm2.properties"
        file.write_text(_settings(clusters, DEMO_TOPICS, engine="spark"))
        if keep is not None:
            Path(keep).write_text(file.read_text())
        for name, cluster in clusters.items():
            console.print(f"{name}: Kafka 4.3.0 at {cluster.bootstrap_servers}", highlight=False)
        _fill(console, clusters["primary"], stop)
        reports = _replicate(console, file, stop)
        steady_file = Path(folder) / "steady.properties"
        steady_file.write_text(_settings(clusters, (STEADY_TOPIC,), engine="functions"))
        steady = _replicate_steadily(steady_file, clusters["primary"], stop)
        comparisons = _compare(console, clusters, stop)
    if stop.event.is_set():
        console.print("stopped")
        sys.exit(FINE)
    _print_table(console, comparisons, reports)
    _print_steady(console, steady)
    sys.exit(FINE if _is_identical(console, comparisons, reports) else FOUND)


def _settings(clusters: Mapping[str, EmbeddedCluster], topics: Sequence[DemoTopic], *, engine: str) -> str:
    servers = {name: cluster.bootstrap_servers for name, cluster in clusters.items()}
    ready = ready_settings(servers, topics=", ".join(topic.name for topic in topics), soon=False)
    return f"{ready}\nmirrorless.engine = {engine}\n"


def _counting(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", table_column=Column(overflow="fold")),
        BarColumn(),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(),
        console=console,
    )


def _fill(console: Console, primary: EmbeddedCluster, stop: StopRequest) -> None:
    with _counting(console) as progress:
        bar = progress.add_task("filling primary", total=sum(topic.records for topic in DEMO_TOPICS))
        for topic in DEMO_TOPICS:
            if not stop.event.is_set():
                fill(primary.bootstrap_servers, topic, advanced=lambda count: progress.advance(bar, count))


class _DemoDisplay(ProgressBar):
    """The progress bar of `mirrorless run`, which keeps the reports of all leases."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.reports: list[Report] = []

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        """Keep the reports."""
        super().leased(flow, reports, faulty=faulty)
        self.reports += reports


def _replicate(console: Console, file: Path, stop: StopRequest) -> list[Report]:
    display = _DemoDisplay(console)
    if not stop.event.is_set():
        with display:
            run_flows(load(file), bounded=True, display=display, stop=stop)
    return display.reports


def _replicate_steadily(file: Path, primary: EmbeddedCluster, stop: StopRequest) -> SteadyFlow:
    steady = SteadyFlow(primary.bootstrap_servers, stop)
    if not stop.event.is_set():
        steady.make()
        steady.run(load(file))
    return steady


def _compare(console: Console, clusters: Mapping[str, EmbeddedCluster], stop: StopRequest) -> list[DemoComparison]:
    with _counting(console) as progress:
        bar = progress.add_task("comparing every record", total=sum(topic.records for topic in ALL_TOPICS))
        return [
            compare(
                source=clusters["primary"].bootstrap_servers,
                target=clusters["backup"].bootstrap_servers,
                topic=topic.name,
                remote_topic=f"primary.{topic.name}",
                partitions=topic.partitions,
                advanced=lambda count: progress.advance(bar, count),
            )
            for topic in ALL_TOPICS
            if not stop.event.is_set()
        ]


def _print_table(console: Console, comparisons: Sequence[DemoComparison], reports: Sequence[Report]) -> None:
    by_topic: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        by_topic[report.topic].append(report)
    listing = Listing(*_COLUMNS, numbers=_NUMBERS, title="primary -> backup")
    for topic, comparison in zip(DEMO_TOPICS, comparisons, strict=False):
        totals = summary(by_topic[topic.name])
        listing.add(
            topic.name,
            f"{topic.partitions:,}",
            topic.codec,
            f"{topic.value_bytes:,}",
            f"{totals.records:,}",
            f"{totals.copied_bytes / 1e6:,.1f}",
            f"{totals.seconds:.2f}",
            f"{comparison.records:,}",
            "yes" if comparison.identical else Text("no", style="bold red"),
        )
    listing.print(console)


def _print_steady(console: Console, steady: SteadyFlow) -> None:
    if steady.seconds is None:
        return
    latency_ms = statistics.median(steady.latencies_ms) if steady.latencies_ms else 0
    console.print(
        f"{STEADY_TOPIC.name}, by functions while it was written: {STEADY_TOPIC.records:,} records, the first after "
        f"{steady.seconds:.1f} s, median latency {latency_ms:.0f} ms",
        highlight=False,
    )


def _is_identical(console: Console, comparisons: Sequence[DemoComparison], reports: Sequence[Report]) -> bool:
    small = {topic.name for topic in DEMO_TOPICS if topic.value_bytes == _SMALL_BYTES}
    fast = summary(report for report in reports if report.topic in small)
    everything = summary(reports)
    for text, totals in ((f"the {len(small)} topics of 100-byte records", fast), ("all topics, by Spark", everything)):
        console.print(
            f"{text}: {totals.records:,} records in {totals.seconds:.2f} s, {totals.records_per_s:,.0f} records/s, "
            f"{totals.copied_bytes / 1e6 / (totals.seconds or 1):,.1f} MB/s",
            highlight=False,
        )
    for comparison in comparisons:
        for line in comparison.differences:
            console.print(Text(line, style="red"))
    expected = sum(topic.records for topic in ALL_TOPICS)
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
