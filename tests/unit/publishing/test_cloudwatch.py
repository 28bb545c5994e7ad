"""CloudWatch's thread outlives whatever boto3 raises, and tells of it once."""

from __future__ import annotations

import queue
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from mirrorless.publishing import cloudwatch
from mirrorless.publishing.cloudwatch import CloudWatch

if TYPE_CHECKING:
    import pytest


class Service:
    """CloudWatch, which answers or fails as is next in line."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = iter(outcomes)
        self.sent: queue.SimpleQueue[float] = queue.SimpleQueue()

    def put_metric_data(self, *, Namespace: str, MetricData: list[dict[str, Any]]) -> None:  # noqa: N803 -- boto3's
        assert Namespace == "Mirrorless"
        if (error := next(self._outcomes)) is not None:
            raise error
        self.sent.put(MetricData[0]["Value"])


def test_credentials_that_are_still_expired_cost_some_values_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expired = RuntimeError("Credentials were refreshed, but the refreshed credentials are still expired.")
    service = Service(expired, expired, None, ValueError("cloudwatch answered Throttling"), None)
    monkeypatch.setattr(cloudwatch, "client", lambda _service, region: nullcontext(service))  # noqa: ARG005
    monkeypatch.setattr(cloudwatch, "_WAITING", 5)
    with CloudWatch("a->b") as metrics:
        for number in range(5):
            metrics.put({"lag-seconds": number})
    assert [service.sent.get_nowait() for _ in range(service.sent.qsize())] == [2, 4]
    assert [record.getMessage() for record in caplog.records] == [
        f"a->b: publishing metrics failed: {expired}",
        "a->b: publishing metrics failed: cloudwatch answered Throttling",
    ]


def test_zeros_of_what_is_mostly_zero_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(None, None)
    monkeypatch.setattr(cloudwatch, "client", lambda _service, region: nullcontext(service))  # noqa: ARG005
    with CloudWatch("a->b") as metrics:
        metrics.put({"gap-count": 0, "partitions-unreachable": 0, "partitions-halted": 0})
        metrics.put({"gap-count": 2})
    assert [service.sent.get_nowait() for _ in range(service.sent.qsize())] == [0, 2]
