"""Check of the scheduled comparison: whether it can end within the time limit of its job, by the bytes of the last day.

The job reads both sides. Its limit and its rate: `VerifyCopy` in infra/pipeline.yaml, and docs/cost.md.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from mirrorless.doctor.findings import Finding, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.doctor.aws.api import Api
    from mirrorless.doctor.aws.deployment import Deployment, VerifyParameters

COMPARISON: Final = "comparison"
LIMIT_H: Final = 12
CORE_BYTES_S: Final = 40e6
"""What a core compares each second, both sides together."""
_CORES: Final = {"G.1X": 4, "G.2X": 8, "G.4X": 16, "G.8X": 32}
_DAY_S: Final = 86_400


def check_comparison(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Estimate how long the comparison of each flow takes; nothing without `VerifySchedule`."""
    verify = deployment.verify
    if not verify.schedule or not deployment.is_deployed:
        return
    namespace = f"Mirrorless/{deployment.environment}"
    listed = api.every("cloudwatch:ListMetrics", "Metrics", Namespace=namespace, MetricName="byte-count")
    flows = [
        one["Dimensions"] for one in listed if {part["Name"] for part in one["Dimensions"]} == {"source", "target"}
    ]
    if not flows:
        text = f"VerifySchedule={verify.schedule}: nothing was copied yet, so its duration is not known"
        yield Finding(check=COMPARISON, status=Status.OK, text=text)
    for dimensions in flows:
        day = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
        sums = api.ask(
            "cloudwatch:GetMetricStatistics",
            Namespace=namespace,
            MetricName="byte-count",
            Dimensions=dimensions,
            StartTime=day.isoformat(),
            EndTime=(day + timedelta(days=1)).isoformat(),
            Period=_DAY_S,
            Statistics=["Sum"],
        )
        yield _estimate("->".join(part["Value"] for part in dimensions), _copied(sums.get("Datapoints", [])), verify)


def hours(bytes_a_day: float, verify: VerifyParameters) -> float:
    """Return how long a comparison takes of a flow that copies so many bytes a day."""
    days = int(verify.since[:-1]) / (24 if verify.since.endswith("h") else 1)
    cores = _CORES.get(verify.worker_type, 4) * max(1, verify.workers - 1)  # one worker is the driver
    return 2 * bytes_a_day * days * verify.sample / 100 / (cores * CORE_BYTES_S) / 3600


def _copied(points: list[dict[str, float]]) -> float:
    return sum(one["Sum"] for one in points)


def _estimate(flow: str, bytes_a_day: float, verify: VerifyParameters) -> Finding:
    needed = hours(bytes_a_day, verify)
    text = (
        f"{flow}: {bytes_a_day / 1e9:.1f} GB copied in a day; comparing {verify.since} takes about {needed:.1f} hours"
    )
    if needed <= LIMIT_H:
        return Finding(check=COMPARISON, status=Status.OK, text=text)
    fix = "raise VerifyWorkers, lower VerifySample, or run verify with --topics by hand"
    text += f", and the job {verify.worker_type} x {verify.workers} is ended after {LIMIT_H}"
    return Finding(check=COMPARISON, status=Status.WARNING, text=text, fix=fix)
