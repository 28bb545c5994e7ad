"""Serves metrics of a run for Prometheus: from leases, and from the functions."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mirrorless.metrics import BY_NAME
from mirrorless.publishing.lease_meter import Values
from mirrorless.publishing.prometheus import Prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.copy.api import Report
    from mirrorless.local.displays import Display
    from mirrorless.local.progress_view import TopicView
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Settings


@contextmanager
def measured(settings: Settings, display: Display, *, port: int) -> Iterator[Display]:
    """Serve the metrics of all flows on `port` while the context lasts; yields the display to use.

    Raises `PrerequisiteError` if the port is in use.
    """
    with Prometheus(port) as prometheus:
        for flow in settings.flows:
            display.note(flow.name, f"metrics are served on port {prometheus.port} at /metrics")
        yield _Measured(display, prometheus)


class _Measured:
    """Passes everything on to the display, and the values to Prometheus."""

    def __init__(self, display: Display, prometheus: Prometheus) -> None:
        self._display = display
        self._prometheus = prometheus

    def discovered(self, flow: str, found: SyncPass) -> None:
        self._display.discovered(flow, found)

    def note(self, flow: str, text: str) -> None:
        self._display.note(flow, text)

    def warning(self, flow: str, text: str) -> None:
        self._display.warning(flow, text)

    def waiting(self, flow: str, text: str) -> None:
        self._display.waiting(flow, text)

    def trouble(self, flow: str, text: str) -> None:
        self._display.trouble(flow, text)

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        self._display.show(flow, topics)

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        self._display.leased(flow, reports, faulty=faulty)
        self._prometheus.lease_ended(flow, reports)

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        self._display.checkpointed(flow, fields)

    def measured(self, flow: str, metric: str, values: Sequence[float]) -> None:
        if values and f"{metric}-min" in BY_NAME:
            spread = Values(
                last=values[-1], least=min(values), greatest=max(values), total=sum(values), count=len(values)
            )
            self._prometheus.measure(flow, metric, spread)
        else:
            for value in values:
                self._prometheus.measure(flow, metric, value)

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        self._display.finished(flow, records=records, copied_bytes=copied_bytes, complete=complete)
