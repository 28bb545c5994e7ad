"""Displays of a run: a live table or a progress bar on a terminal, lines of JSON elsewhere."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from mirrorless.copy.api import summary
from mirrorless.local.listing import Listing
from mirrorless.metadata.actions import AddAcl, AlterConfigs, CreateTopic, GrowTopic, RemoveAcl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mirrorless.copy.api import Report, Summary
    from mirrorless.local.progress_view import TopicView
    from mirrorless.metadata.sync_pass import SyncPass

_LOG_EVERY_S = 10.0
_DRAWN_PER_S = 4
_MEGA = 1_000_000
_NOTEWORTHY_MS = 1_000
_COUNTS = ("partitions", "records", "records/s", "MB/s", "lag", "latency ms")
_DISPENSABLE = ("partitions", "latency ms", "records/s", "records", "MB/s")
"""Columns that a narrow window does not show, in the order in which they are left out."""
_NARROW = 80
"""Window in characters below which a progress bar has no bar."""
_STATE_STYLES = {
    "halted": "bold red",
    "unreachable": "red",
    "resuming": "yellow",
    "waiting": "yellow",
    "caught up": "green",
}


class LogLines:
    """Writes one JSON object a line: each event, and every ten seconds the progress of each topic."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._due: dict[str, float] = {}
        self._waiting: dict[str, str] = {}
        self._checkpoints: dict[str, dict[str, Any]] = {}

    def discovered(self, flow: str, found: SyncPass) -> None:
        """Log each change on the target, and each that failed."""
        for what, fields in found.lines():
            self._line("error" if "error" in fields else "info", flow, what, **fields)

    def note(self, flow: str, text: str) -> None:
        """Log a note."""
        self._line("info", flow, "Note", note=text)

    def warning(self, flow: str, text: str) -> None:
        """Log a warning."""
        self._line("warning", flow, "Warning", warning=text)

    def waiting(self, flow: str, text: str) -> None:
        """Log what the flow waits for whenever that changes."""
        if text and text != self._waiting.get(flow):
            self._line("info", flow, "Waiting", waiting=text)
        self._waiting[flow] = text

    def trouble(self, flow: str, text: str) -> None:
        """Log an error."""
        self._line("error", flow, "Trouble", error=text)

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        """Log the progress of every topic, at most every ten seconds."""
        now = time.monotonic()
        if now >= self._due.get(flow, now + _LOG_EVERY_S):
            for topic in topics:
                self._topic(flow, topic)
            self._due[flow] = now + _LOG_EVERY_S
        self._due.setdefault(flow, now + _LOG_EVERY_S)

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        """Log the totals of the lease, and each skipped gap."""
        totals = summary(reports).as_fields()
        totals.pop("errors")
        self._line("error" if faulty else "info", flow, "Lease", **totals)
        for line in _events(reports):
            self._line("warning", flow, "PassedOver", reason=line)

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        """Log the totals of a checkpoint run, unless it found no group again."""
        if fields.get("groups") or self._checkpoints.get(flow) != fields:
            self._line("info", flow, "Checkpoints", **fields)
        self._checkpoints[flow] = fields

    def measured(self, flow: str, metric: str, values: Sequence[float]) -> None:
        """Print nothing: metrics are for `--metrics-port`."""

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        """Report the totals of the flow."""
        self._line("info", flow, "Finished", records=records, bytes=copied_bytes, complete=complete)

    def _topic(self, flow: str, topic: TopicView) -> None:
        self._line(
            "error" if topic.error else "info",
            flow,
            "Topic",
            topic=topic.topic,
            partitions=topic.partitions,
            records=topic.records,
            bytes=topic.copied_bytes,
            records_per_s=round(topic.records_per_s),
            bytes_per_s=round(topic.bytes_per_s),
            lag_records=topic.lag_records,
            latency_ms=topic.latency_ms,
            state=topic.state,
            error=topic.error,
        )

    def _line(self, level: str, flow: str, event: str, **fields: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        kept = {key: value for key, value in fields.items() if value is not None}
        line = json.dumps({"time": now, "level": level, "flow": flow, "event": event} | kept)
        with suppress(OSError):  # a full disk or a closed pipe is no reason to stop replication
            self._out.write(f"{line}\n")  # one write: several threads log
            self._out.flush()


def _events(reports: Iterable[Report]) -> list[str]:
    return [line for report in reports for line in report.events.splitlines()]


def _held_up(totals: Summary) -> Iterator[str]:
    waits = ("source", totals.fetch_throttle_ms), ("target", totals.produce_throttle_ms)
    for end, waited_ms in waits:
        if waited_ms >= _NOTEWORTHY_MS:
            yield f"a quota on the {end} delayed this lease by {waited_ms / 1000:,.0f} s"


class _Terminal:
    """The part that both displays for terminals share."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def discovered(self, flow: str, found: SyncPass) -> None:
        """Print the number of changes, and each that failed."""
        done = [one.action for one in found.applied if one.error is None]
        for kinds, one, what in (
            ((CreateTopic, GrowTopic), "topic created or grown", "topics created or grown"),
            ((AlterConfigs,), "topic set to the source's configs", "topics set to the source's configs"),
            ((AddAcl, RemoveAcl), "ACL added or removed", "ACLs added or removed"),
        ):
            if count := sum(isinstance(action, kinds) for action in done):
                self.console.print(f"{flow}: {count} {what if count > 1 else one} on the target")
        for applied in found.reported():
            if text := applied.error or applied.note:
                self.console.print(Text(f"{flow}: {applied.action.topic}: {text}", style="red"))
        for problem in found.problems:
            self.console.print(Text(f"{flow}: {problem.topic}: {problem.reason}", style="red"))

    def note(self, flow: str, text: str) -> None:
        """Print it."""
        self.console.print(Text(f"{flow}: {text}", style="dim"))

    def warning(self, flow: str, text: str) -> None:
        """Print it."""
        self.console.print(Text(f"{flow}: warning: {text}", style="yellow"))

    def trouble(self, flow: str, text: str) -> None:
        """Print it."""
        self.console.print(Text(f"{flow}: {text}", style="red"))

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:  # noqa: ARG002
        """Print skipped gaps and delays by quotas; the table and the bar show the rest."""
        for line in [*_events(reports), *_held_up(summary(reports))]:
            self.console.print(Text(f"{flow}: {line}", style="yellow"))

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        """Print nothing: `mirrorless offsets show` lists offsets."""

    def measured(self, flow: str, metric: str, values: Sequence[float]) -> None:
        """Print nothing: metrics are for `--metrics-port`."""

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        """Report the totals of the flow."""
        end = "; every record that existed at the start is on the target" if complete else ""
        self.console.print(f"{flow}: {records:,} records, {copied_bytes / _MEGA:,.1f} MB copied{end}", highlight=False)


class _WaitingFlow:
    """What a flow waits for, and since when; the time is computed when it is drawn."""

    def __init__(self, flow: str, text: str) -> None:
        self.text = text
        self._flow = flow
        self._since = time.monotonic()

    def __rich__(self) -> Text:
        return Text(f"{self._flow}: {self.text} ({time.monotonic() - self._since:.0f} s)", style="cyan")


class LiveTable(_Terminal):
    """A table of all topics, redrawn in place, and below it what flows wait for."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._views: dict[str, Sequence[TopicView]] = {}
        self._waiting: dict[str, _WaitingFlow] = {}
        self._live = Live(console=console, refresh_per_second=_DRAWN_PER_S)

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        """Redraw."""
        self._views[flow] = topics
        self._draw()

    def waiting(self, flow: str, text: str) -> None:
        """Redraw if the reason to wait changes."""
        before = self._waiting.get(flow)
        if text == (before.text if before else ""):
            return
        if text:
            self._waiting[flow] = _WaitingFlow(flow, text)
        else:
            del self._waiting[flow]
        self._draw()

    def _draw(self) -> None:
        tables = (self._table(name, views) for name, views in self._views.items() if views)
        self._live.update(Group(*tables, *self._errors(), *self._waiting.values()), refresh=True)

    def _errors(self) -> Iterator[Text]:
        """Yield a line for each reason why topics are halted or unreachable, with the first of them."""
        for flow, views in self._views.items():
            alike: dict[str, list[str]] = {}
            for view in views:
                if view.error:
                    alike.setdefault(view.error, []).append(view.topic)
            for error, topics in alike.items():
                more = f" and {len(topics) - 1:,} more" if len(topics) > 1 else ""
                yield Text(f"{flow}: {topics[0]}{more}: {error}", style="red")

    def _table(self, flow: str, topics: Sequence[TopicView]) -> Table:
        listing = Listing("topic", *_COUNTS, "state", numbers=_COUNTS, title=flow)
        room = max(3, self.console.height - 6)
        # Those that move or have errors first, as many as the window has lines for.
        busy = sorted(topics, key=lambda topic: (topic.error is None, -topic.bytes_per_s, -topic.lag_records))[:room]
        for topic in sorted(busy, key=lambda topic: topic.topic):
            listing.add(
                topic.topic,
                f"{topic.partitions:,}",
                f"{topic.records:,}",
                f"{topic.records_per_s:,.0f}",
                f"{topic.bytes_per_s / _MEGA:,.1f}",
                f"{topic.lag_records:,}",
                "" if topic.latency_ms is None else f"{topic.latency_ms:,}",
                Text(topic.state, style=_STATE_STYLES.get(topic.state, "")),
            )
        if len(topics) > room:
            listing.caption = f"and {len(topics) - room:,} more topics"
        for column in _DISPENSABLE:
            if listing.fits(self.console.width):
                break
            listing = listing.without(column)
        return listing.table(self.console.width)


class _Speed(ProgressColumn):
    """Records, MB/s and lag; below each other in a narrow window."""

    def __init__(self, *, narrow: bool) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._between = "\n" if narrow else " "

    def render(self, task: Task) -> Text:
        speed, lag = task.fields["megabytes_per_s"], task.fields["lag"]
        return Text(self._between.join((f"{int(task.completed):,} records", f"{speed:,.1f} MB/s", f"lag {lag:,}")))


class ProgressBar(_Terminal):
    """A bar for each flow, for runs with an end."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        narrow = console.width < _NARROW
        columns = (
            *(() if narrow else (SpinnerColumn(),)),
            TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
            *(() if narrow else (BarColumn(),)),
            _Speed(narrow=narrow),
            *(() if narrow else (TimeRemainingColumn(),)),
        )
        self._progress = Progress(*columns, console=console)
        self._tasks: dict[str, TaskID] = {}
        self._began: dict[str, float] = {}

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        """Move the bar: records copied, and those still to copy."""
        task = self._task(flow)
        records = sum(topic.records for topic in topics)
        size = sum(topic.copied_bytes for topic in topics)
        lag = sum(topic.lag_records for topic in topics)
        now = time.monotonic()
        if records:
            self._began.setdefault(flow, now)
        if topics:
            self._progress.update(
                task,
                total=records + lag,
                completed=records,
                megabytes_per_s=size / _MEGA / max(now - self._began.get(flow, now), 0.25),
                lag=lag,
            )

    def waiting(self, flow: str, text: str) -> None:
        """Show beside the flow's name what it waits for."""
        self._progress.update(self._task(flow), description=f"{flow}: {text}" if text else flow, refresh=True)

    def _task(self, flow: str) -> TaskID:
        if flow not in self._tasks:
            self._tasks[flow] = self._progress.add_task(flow, total=None, megabytes_per_s=0.0, lag=0)
        return self._tasks[flow]
