"""Compares the clock of a cluster with this machine's.

Only one of Kafka's responses has the time: the controller that leads the metadata quorum reports when it last fetched
from itself, which is now (DescribeQuorum, KIP-836, `LeaderState.describeQuorum`). This needs DESCRIBE on the cluster,
KRaft and Kafka 3.3.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.findings import Finding, Status
from mirrorless.doctor.probes import NotSaid
from mirrorless.kafka_python.messages import DescribeQuorumRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.doctor.probes import Probes

_CHECK: Final = "clock"
_SUSPICIOUS_MS: Final = 2_000
_WRONG_MS: Final = 60_000


def clock_agrees(probes: Probes, alias: str, *, now_ms: Callable[[], float] = lambda: time.time() * 1000) -> Finding:
    """Compare the clock of a cluster's controller with this machine's, within the time that the response took."""
    try:
        difference_ms, doubt_ms = _difference(probes, now_ms)
    except NotSaid as error:
        return Finding(check=_CHECK, status=Status.NOT_CHECKED, text=str(error), cluster=alias)
    off_ms = max(0.0, abs(difference_ms) - doubt_ms)
    told = f"the controller's clock is {abs(difference_ms):.0f} ms {'ahead' if difference_ms > 0 else 'behind'}"
    told += f" (± {doubt_ms:.0f} ms)"
    if off_ms <= _SUSPICIOUS_MS:
        return Finding(check=_CHECK, status=Status.OK, text=told, cluster=alias)
    return Finding(
        check=_CHECK,
        status=Status.FAILED if off_ms > _WRONG_MS else Status.WARNING,
        text=f"{told}: latencies are wrong by this, and logins by token or MSK IAM fail if it is minutes",
        cluster=alias,
        fix="synchronize the clocks by NTP, here and on the brokers",
    )


def _difference(probes: Probes, now_ms: Callable[[], float]) -> tuple[float, float]:
    partition = DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])
    before_ms = now_ms()
    response = probes.ask(request)
    after_ms = now_ms()
    if response.error_code:
        raise NotSaid("the controller's time is visible only with DESCRIBE on the cluster (DescribeQuorum)")
    for one in (voter for topic in response.topics for part in topic.partitions for voter in _leaders(part)):
        if one.last_caught_up_timestamp > 0:
            return one.last_caught_up_timestamp - (before_ms + after_ms) / 2, (after_ms - before_ms) / 2
    raise NotSaid("the controller does not report its time (DescribeQuorum)")


def _leaders(part: Any) -> list[Any]:  # noqa: ANN401 -- the library's messages
    return [one for one in part.current_voters if one.replica_id == part.leader_id]
