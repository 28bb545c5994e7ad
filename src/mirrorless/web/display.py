"""Passes on what a run displays, and shows it on the page too."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mirrorless.web.server import served
from mirrorless.web.snapshot import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mirrorless.copy.api import Report
    from mirrorless.local.displays import Display
    from mirrorless.local.progress_view import TopicView
    from mirrorless.metadata.actions import Action
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Settings
    from mirrorless.web.server import ServerTerms, WebServer

_DONE: Final = {
    "CreateTopic": "created",
    "GrowTopic": "added partitions to",
    "AlterConfigs": "set configs of",
    "AddAcl": "added ACLs on",
    "RemoveAcl": "removed ACLs on",
    "ForgetAcl": "no longer keeps ACLs on",
}
_MOST_NAMES: Final = 5
_GROUPS_AGE: Final = "group-offset-age-ms"


@contextmanager
def on_page(settings: Settings, display: Display, terms: ServerTerms) -> Iterator[Display]:
    """Serve the page of a run while the context lasts; yields the display to use.

    Raises `PrerequisiteError` as `served`.
    """
    with served(settings, terms, copies_here=True) as server:
        for flow in settings.flows[:1]:
            display.note(flow.name, f"the page is at {server.url}")
        yield _OnPage(display, server)


class _OnPage:
    def __init__(self, display: Display, server: WebServer) -> None:
        self._display = display
        self._feed, self._gatherer = server.feed, server.gatherer

    def discovered(self, flow: str, found: SyncPass) -> None:
        self._display.discovered(flow, found)
        if done := [one.action for one in found.applied if one.error is None]:
            self._feed.note(Level.INFO, flow, "metadata", _changed(done))
        for one in found.failures:
            self._feed.note(Level.ERROR, flow, "metadata", f"{one.action.topic}: {one.error}")

    def note(self, flow: str, text: str) -> None:
        self._display.note(flow, text)
        self._feed.note(Level.INFO, flow, "note", text)

    def warning(self, flow: str, text: str) -> None:
        self._display.warning(flow, text)
        self._feed.note(Level.WARNING, flow, "warning", text)

    def waiting(self, flow: str, text: str) -> None:
        self._display.waiting(flow, text)
        self._gatherer.set_waiting(flow, text)

    def trouble(self, flow: str, text: str) -> None:
        self._display.trouble(flow, text)
        self._feed.note(Level.ERROR, flow, "error", text)

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        self._display.show(flow, topics)
        self._gatherer.set_live(flow, topics)

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        self._display.leased(flow, reports, faulty=faulty)
        for report in reports:
            for line in report.events.splitlines():
                self._feed.note(Level.WARNING, flow, "skipped", line)

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        self._display.checkpointed(flow, fields)

    def measured(self, flow: str, metric: str, values: Sequence[float]) -> None:
        self._display.measured(flow, metric, values)
        if metric == _GROUPS_AGE and values:
            self._gatherer.set_groups_age(flow, values[-1])

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        self._display.finished(flow, records=records, copied_bytes=copied_bytes, complete=complete)
        self._feed.note(Level.INFO, flow, "finished", f"the flow ended; {records:,} records were copied")


def _changed(actions: Iterable[Action]) -> str:
    """Return what was done on the target to which topics, in one line."""
    topics: dict[str, dict[str, None]] = defaultdict(dict)
    for one in actions:
        topics[_DONE.get(type(one).__name__, type(one).__name__)][one.topic] = None
    return "on the target: " + "; ".join(f"{done} {_names(list(names))}" for done, names in topics.items())


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
