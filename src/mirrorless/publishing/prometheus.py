"""Publishes the same metrics as Prometheus text: prefix `mirrorless_`, `_` for `-`, suffix `_total` on running totals.

Metrics per topic exist per topic only: `sum by (source, target)` is the flow's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, start_http_server

from mirrorless.errors import PrerequisiteError
from mirrorless.metrics import BY_NAME, METRICS, TOPIC, Metric
from mirrorless.publishing.lease_meter import LeaseMeter, Values

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from mirrorless.copy.api import Report

_SUFFIXES: Final = {"-min": "least", "-max": "greatest"}


def prometheus_name(metric: Metric) -> str:
    """Name of a metric in the text, without the `_total` of a running total."""
    return "mirrorless_" + metric.name.replace("-", "_")


class Prometheus:
    """Serves `/metrics` on `port` while the context lasts; raises `PrerequisiteError` if the port is in use."""

    def __init__(self, port: int, *, address: str = "0.0.0.0") -> None:  # noqa: S104 -- scrapers run on other hosts
        disable_created_metrics()
        self._registry = CollectorRegistry()
        self._series = {metric.name: self._make(metric) for metric in METRICS}
        self._meters: dict[tuple[str, str], LeaseMeter] = {}
        try:
            self._server, self._thread = start_http_server(port, addr=address, registry=self._registry)
        except OSError as error:
            reason = f"cannot listen on port {port} for metrics: {error.strerror}; use another port"
            raise PrerequisiteError(reason) from None
        self.port = int(self._server.server_port)

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def lease_ended(self, flow: str, reports: Sequence[Report]) -> None:
        """Add the values of a lease of `A->B`."""
        source, _, target = flow.partition("->")
        meter = self._meters.setdefault((source, target), LeaseMeter())
        for sample in meter.lease(reports, now_ms=int(time.time() * 1000)):
            by_topic = TOPIC in BY_NAME[sample.metric].dimensions
            if by_topic == (sample.topic is not None):
                labels = (source, target, *(() if sample.topic is None else (sample.topic,)))
                self._set(sample.metric, sample.value, labels)

    def measure(self, flow: str, name: str, value: float | Values) -> None:
        """Set one value of a flow's metric."""
        source, _, target = flow.partition("->")
        self._set(name, value, (source, target))

    def _make(self, metric: Metric) -> Counter | Gauge:
        labels = max(metric.dimensions, key=len)
        made = Counter if metric.counts else Gauge
        return made(prometheus_name(metric), metric.meaning, labels, registry=self._registry)

    def _set(self, name: str, value: float | Values, labels: tuple[str, ...]) -> None:
        if isinstance(value, Values):
            for suffix, field in _SUFFIXES.items():
                self._set(name + suffix, getattr(value, field), labels)
            self._set(f"{name}-avg", value.total / value.count, labels)
            value = value.last
        series = self._series[name]
        if isinstance(series, Counter):
            series.labels(*labels).inc(value)
        else:
            series.labels(*labels).set(value)
