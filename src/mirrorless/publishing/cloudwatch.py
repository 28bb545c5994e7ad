"""Publishes metrics of the jobs to CloudWatch, in a separate thread that never blocks the copy."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.metrics import BY_NAME, NAMESPACE, TOPIC
from mirrorless.publishing.lease_meter import LeaseMeter, Sample, Values
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from mirrorless.copy.api import Report

_A_REQUEST: Final = 500  # 1,000 are allowed, in 1 MB
_WAITING: Final = 3
"""Leases: with thousands of topics each is tens of megabytes, and old values are worth little."""
_LANDING_S: Final = 10.0
_log = logging.getLogger(__name__)


class CloudWatch:
    """Publishes every lease of a flow, `A->B`, and other values of it; `topics` are those with metrics per topic.

    `lease_ended` and `put` return at once. Close it, or use it as a context manager, to send the last values. A topic
    has metrics only while it lags or fails: CloudWatch charges for each metric that is sent.
    """

    def __init__(self, flow: str, *, topics: Iterable[str] = (".*",), namespace: str = NAMESPACE) -> None:
        source, _, target = flow.partition("->")
        self._source, self._target = source.strip(), target.strip()
        self._namespace = namespace
        self._meter = LeaseMeter(topics, only_troubled=True)
        self._waiting: queue.Queue[list[dict[str, Any]] | None] = queue.Queue(_WAITING)
        self._told = ""
        self._thread = threading.Thread(target=self._send_all, daemon=True)
        self._thread.start()

    def __enter__(self) -> CloudWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def lease_ended(self, reports: Sequence[Report]) -> None:
        """Publish the metrics of a lease; for `start_copy`'s `on_reports`."""
        now_ms = int(time.time() * 1000)
        self._put(self._meter.lease(reports, now_ms=now_ms), now_ms)

    def put(self, values: Mapping[str, float]) -> None:
        """Publish values of the flow, by the names of their metrics."""
        samples = [Sample(metric=name, value=value) for name, value in values.items()]
        self._put(samples, int(time.time() * 1000))

    def _put(self, samples: Iterable[Sample], now_ms: int) -> None:
        data = [
            self._datum(sample, now_ms)
            for sample in samples
            if BY_NAME[sample.metric].is_sent(sample.value, of_topic=sample.topic is not None)
        ]
        try:
            self._waiting.put_nowait(data)
        except queue.Full:
            self._tell(f"publishing to CloudWatch is too slow; {len(data)} values are dropped")

    def close(self) -> None:
        """Send the queued values, for ten seconds at most."""
        try:
            self._waiting.put(None, timeout=_LANDING_S)
        except queue.Full:
            return
        self._thread.join(_LANDING_S)

    def _datum(self, sample: Sample, now_ms: int) -> dict[str, Any]:
        names = {"source": self._source, "target": self._target}
        if sample.topic is not None:
            names["topic"] = sample.topic
            assert TOPIC in BY_NAME[sample.metric].dimensions
        value = sample.value
        measured: dict[str, Any] = {"Value": value}
        if isinstance(value, Values):
            measured = {
                "StatisticValues": {
                    "SampleCount": value.count,
                    "Sum": value.total,
                    "Minimum": value.least,
                    "Maximum": value.greatest,
                }
            }
        return {
            "MetricName": sample.metric,
            "Dimensions": [{"Name": name, "Value": each} for name, each in names.items()],
            "Timestamp": now_ms / 1000,
            "Unit": BY_NAME[sample.metric].unit.value,
            **measured,
        }

    def _send_all(self) -> None:
        while (data := self._waiting.get()) is not None:
            try:
                self._send(data)
                self._told = ""
            except Exception as error:  # noqa: BLE001 -- without this thread alarms would have no data
                self._tell(f"publishing metrics failed: {str(error) or type(error).__name__}")

    def _send(self, data: Sequence[dict[str, Any]]) -> None:
        with client("cloudwatch", region=None) as cloudwatch:
            for some in _chunks(data):
                cloudwatch.put_metric_data(Namespace=self._namespace, MetricData=some)

    def _tell(self, text: str) -> None:
        """Log it once, until publishing works again."""
        if text != self._told:
            self._told = text
            _log.warning("%s->%s: %s", self._source, self._target, text)


def _chunks(data: Sequence[dict[str, Any]]) -> Iterable[Sequence[dict[str, Any]]]:
    return (data[at : at + _A_REQUEST] for at in range(0, len(data), _A_REQUEST))
