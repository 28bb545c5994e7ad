"""The output of functions on Lambda: JSON for the log, metrics in CloudWatch's embedded metric format."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from mirrorless.metrics import BY_NAME, NAMESPACE
from mirrorless.publishing.lease_meter import Sample, Values

_VALUES: Final = 100

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.errors import MirrorlessError
    from mirrorless.functions.runtime_context import Level
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Flow


class Powertools:
    """A sink to the process's standard output, with aws-lambda-powertools."""

    def __init__(self) -> None:
        self._log = Logger(service=os.environ.get("POWERTOOLS_SERVICE_NAME", "mirrorless"))

    def begin(self, *, flow: str, request: str) -> None:
        """Add the flow and the request to every following line."""
        self._log.append_keys(flow=flow, request=request)

    def tell(self, level: Level, text: str, **fields: object) -> None:
        """Write a line."""
        write = {"info": self._log.info, "warning": self._log.warning, "error": self._log.error}[level]
        write(text, extra=fields)

    def discovered(self, found: SyncPass) -> None:
        """Write a line for each action, problem and note."""
        for what, fields in found.lines():
            self.tell("error" if "error" in fields else "info", what, **fields)
        for warning in found.warnings:
            self.tell("warning", warning)
        for note in found.notes:
            self.tell("info", "Note", note=note)

    def measured(self, flow: Flow, values: Mapping[str, Sequence[float]]) -> None:
        """Write the metrics as one object of the embedded metric format."""
        self._emit(flow, [(name, value) for name, some in values.items() for value in some])

    def leased(self, flow: Flow, samples: Sequence[Sample]) -> None:
        """Write the metrics of a lease: an object for the flow, and one for each topic that has samples."""
        by_topic: dict[str | None, list[tuple[str, float]]] = {}
        for sample in samples:
            some = by_topic.setdefault(sample.topic, [])
            some += [(sample.metric, value) for value in _values(sample.value)]
        for topic, values in by_topic.items():
            self._emit(flow, values, topic=topic)

    def _emit(self, flow: Flow, values: Sequence[tuple[str, float]], *, topic: str | None = None) -> None:
        of_topic = topic is not None
        sent = [(name, value) for name, value in values if BY_NAME[name].is_sent(value, of_topic=of_topic)]
        if not sent:
            return
        # The service is empty: otherwise it would become a dimension of every metric.
        provider = AmazonCloudWatchEMFProvider(
            namespace=os.environ.get("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE), service=""
        )
        provider.add_dimension("source", flow.source.alias)
        provider.add_dimension("target", flow.target.alias)
        if topic is not None:
            provider.add_dimension("topic", topic)
        for name, value in sent:
            provider.add_metric(name=name, unit=BY_NAME[name].unit, value=value)
        if provider.metric_set:  # a metric with a hundred values was written when it had them
            provider.flush_metrics()

    def done(self, function: str, answer: Mapping[str, Any]) -> None:
        """Write the answer as a line."""
        self.tell("info", function, **{key: value for key, value in answer.items() if key != "flow"})

    def failed(self, error: MirrorlessError) -> None:
        """Write the error as a line."""
        self.tell("error", str(error), error=type(error).__name__, retriable=error.retriable)


def _values(value: float | Values) -> list[float]:
    """Return values with the minimum, maximum and average of several; the format has at most a hundred of a metric."""
    if not isinstance(value, Values):
        return [value]
    if value.count < 3:
        return [value.least, value.greatest][: value.count]
    count = min(value.count, _VALUES)
    between = (value.total / value.count * count - value.least - value.greatest) / (count - 2)
    # With fewer values than were measured, one extreme may weigh too much: then the average is as near as it can be.
    return [value.least, value.greatest, *[min(max(between, value.least), value.greatest)] * (count - 2)]


@cache
def powertools() -> Powertools:
    """Return the process's sink."""
    return Powertools()
