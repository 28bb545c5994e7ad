"""What a flow costs a month on AWS, beside MSK Replicator and MirrorMaker 2 on MSK Connect: the tables of docs/cost.md.

Run as `python -m bench.cost`. Prices are dollars in us-east-1; where each comes from is in docs/cost.md. The first
table has what depends on the engine, the second what comes with it: traffic between zones, verification, tracing,
endpoints. Brokers, and traffic between regions, are the same for all and left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.metrics import FLOW, METRICS, TOPIC, Emitter

if TYPE_CHECKING:
    from collections.abc import Sequence

HOURS: Final = 730
"""Hours of a month, as AWS reckons."""
RATES: Final = (1, 50, 500)
"""MB/s of a flow, as they are on the wire."""
TOPICS: Final = 20
"""Topics of the flow, for the metrics by topic."""
LAGGING_H: Final = 1.0
"""Hours a day in which each topic lags or fails, and therefore has metrics."""
BEFORE: Final = {1: "$244", 50: "$725", 500: "$1,689 to $2,653"}
"""What the first table came to when every metric of 20 topics was sent all the time."""

# Prices.
DPU_HOUR: Final = 0.44
GB_SECOND: Final = 0.0000133334
REQUEST: Final = 0.20 / 1e6
METRIC_MONTH: Final = 0.30
ALARM_MONTH: Final = 0.10
DASHBOARD_MONTH: Final = 3.0
PUT_METRIC_DATA: Final = 0.01 / 1000
LOG_GB: Final = 0.50
REPLICATOR_HOUR: Final = 0.30
REPLICATOR_GB: Final = 0.08
MCU_HOUR: Final = 0.11
COMPOSITE_ALARM_MONTH: Final = 0.50
TRACE: Final = 5.0 / 1e6
ZONE_GB: Final = 0.02
"""A gigabyte from one zone to another: 0.01 at each end."""
ENDPOINT_MONTH: Final = 7.30
NAT_MONTH: Final = 0.045 * 730

# Assumptions.
CAUTIOUS_MB_S: Final = 20.0
"""Of a slot. Measured were 400 MB/s for each second of CPU; on Glue nothing was measured, so this is a twentieth."""
MEASURED_MB_S: Final = 200.0
"""Of a slot: half of what was measured."""
CONNECT_MB_S: Final = 13.0
"""Of an MCU, half of what was measured of a tuned MirrorMaker 2: 900 MB in 35 s of CPU."""
LOGS_GB: Final = 2.0
LEASE_S: Final = 120
ZONES: Final = 3
"""Of the brokers: two of three partitions have their leader in another zone than the job."""
VERIFY_MB_S: Final = 4 * 40.0
"""Of a comparison with two G.1X, both sides together: four cores at the design target."""
ENDPOINTS: Final = 6
"""Glue, CloudWatch, its logs, SQS, STS and Secrets Manager, in one zone; S3's is free."""
ALARM_METRICS: Final = 5 + 2 + 2 + 3 + 7
"""Five alarms of one metric each, and four that are made of several."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A type of Glue's workers.

    `mb_s` is how much it takes in and gives out at once, `flow_mb_s` up to which flow it is used; both are assumed.
    """

    name: str
    dpu: float
    cores: int
    mb_s: float
    flow_mb_s: float


STANDARD: Final = (Worker("G.1X", 1.0, 4, 150, math.inf),)
WORKERS: Final = (Worker("G.025X", 0.25, 2, 20, 10), *STANDARD)


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its memory in the template, how often an hour and for how long it runs, which is assumed."""

    name: str
    memory_mb: int
    an_hour: float
    seconds: float

    @property
    def dollars(self) -> float:
        """What it costs a month."""
        times = self.an_hour * HOURS
        return times * REQUEST + times * self.seconds * self.memory_mb / 1024 * GB_SECOND


FUNCTIONS: Final = (
    Function("topic_discovery", 512, 6, 5),
    Function("config_sync", 512, 6, 5),
    Function("acl_sync", 512, 6, 5),
    Function("heartbeat", 256, 60, 60),
    Function("checkpoint, by schedule", 1024, 60, 2),
    Function("checkpoint, by trigger", 1024, 240, 2),
    Function("heartbeat_monitor, by schedule", 256, 60, 1),
    Function("heartbeat_monitor, by trigger", 256, 3600, 0.1),
    Function("job_supervisor", 256, 60, 1),
)


@dataclass(frozen=True, slots=True)
class Job:
    """The workers of a copy, its driver among them."""

    worker: Worker
    number: int

    @property
    def dollars(self) -> float:
        """What it costs a month, always running."""
        return self.number * self.worker.dpu * HOURS * DPU_HOUR


def job(mb_s: float, *, slot_mb_s: float, workers: Sequence[Worker] = WORKERS) -> Job:
    """Return the cheapest workers for a flow: cores for its slots, network for its bytes, and a driver."""
    slots = math.ceil(mb_s / slot_mb_s)
    jobs = [
        Job(worker, 1 + max(math.ceil(slots / worker.cores), math.ceil(mb_s / worker.mb_s)))
        for worker in workers
        if mb_s <= worker.flow_mb_s
    ]
    return min(jobs, key=lambda one: one.dollars)


def functions() -> float:
    """Return what all functions cost a month."""
    return sum(one.dollars for one in FUNCTIONS)


def watching(topics: int = TOPICS, lagging_h: float = LAGGING_H) -> float:
    """Return what metrics, alarms, dashboard and logs cost a month.

    A metric is paid by the hours in which it is sent: of the flow always, unless it is mostly zero; of a topic while it
    lags; of `verify_copy` one hour a day.
    """
    sent = [metric for metric in METRICS if metric.cloudwatch and not metric.sparse]
    hours = sum(1.0 if metric.emitter is Emitter.VERIFY_COPY else 24 for metric in sent if FLOW in metric.dimensions)
    hours += topics * lagging_h * sum(TOPIC in metric.dimensions for metric in sent)
    return (
        hours / 24 * METRIC_MONTH
        + ALARM_METRICS * ALARM_MONTH
        + COMPOSITE_ALARM_MONTH
        + DASHBOARD_MONTH
        + HOURS * 3600 / LEASE_S * PUT_METRIC_DATA
        + LOGS_GB * LOG_GB
    )


def tracing() -> float:
    """Return what it would cost a month to trace every invocation; the templates have `PassThrough`."""
    return sum(one.an_hour for one in FUNCTIONS) * HOURS * TRACE


def between_zones(mb_s: float) -> float:
    """Return the traffic of one direction, from or to brokers in three zones, if leaders are spread over them."""
    return gigabytes(mb_s) * ZONE_GB * (ZONES - 1) / ZONES


def verification(mb_s: float) -> float:
    """Return what it costs a month to compare, each night, the records of one day on both sides."""
    hours = 2 * gigabytes(mb_s) * 1000 / VERIFY_MB_S / 3600
    return hours * 2 * DPU_HOUR


def gigabytes(mb_s: float) -> float:
    """Return how much a flow moves a month."""
    return mb_s * 3600 * HOURS / 1000


def replicator(mb_s: float) -> float:
    """Return what MSK Replicator costs a month."""
    return HOURS * REPLICATOR_HOUR + gigabytes(mb_s) * REPLICATOR_GB


def connect_units(mb_s: float) -> int:
    """Return how many MCUs MirrorMaker 2 needs on MSK Connect."""
    return math.ceil(mb_s / CONNECT_MB_S)


def connect(mb_s: float) -> float:
    """Return what MirrorMaker 2 on MSK Connect costs a month."""
    return connect_units(mb_s) * HOURS * MCU_HOUR


def main() -> None:
    """Print the tables in Markdown."""
    ours = "job, cautious | job, as measured | functions | watching | together | without G.025X | before"
    print(f"| MB/s | GB a month | {ours} | MSK Replicator | MSK Connect |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    beside = functions() + watching()
    for mb_s in RATES:
        cautious, measured = (job(mb_s, slot_mb_s=slot) for slot in (CAUTIOUS_MB_S, MEASURED_MB_S))
        standard = [job(mb_s, slot_mb_s=slot, workers=STANDARD) for slot in (MEASURED_MB_S, CAUTIOUS_MB_S)]
        print(
            f"| {mb_s} | {gigabytes(mb_s):,.0f} "
            f"| ${cautious.dollars:,.0f} ({cautious.number} {cautious.worker.name}) "
            f"| ${measured.dollars:,.0f} ({measured.number} {measured.worker.name}) "
            f"| ${functions():,.0f} | ${watching():,.0f} "
            f"| {_range(measured.dollars + beside, cautious.dollars + beside)} "
            f"| {_range(*(one.dollars + beside for one in standard))} | {BEFORE[mb_s]} "
            f"| ${replicator(mb_s):,.0f} | ${connect(mb_s):,.0f} ({connect_units(mb_s)} MCU) |"
        )
    print(
        "\n| MB/s | from the source's zones | with `client.rack` | to the target's zones | verification every night |"
    )
    print("|---|---|---|---|---|")
    for mb_s in RATES:
        traffic = f"${between_zones(mb_s):,.0f}"
        print(f"| {mb_s} | {traffic} | $0 | {traffic} | ${verification(mb_s):,.0f} |")
    print("\n| for all flows of a VPC | $ a month |")
    print("|---|---|")
    print(f"| {ENDPOINTS} interface endpoints in one zone | {ENDPOINTS * ENDPOINT_MONTH:.2f} |")
    print(f"| or a NAT gateway, without traffic | {NAT_MONTH:.2f} |")
    print(f"| tracing, `PassThrough` (every invocation of a flow: {tracing():.2f}) | 0.00 |")
    print("\n| function | MB | times an hour | seconds each | $ a month |")
    print("|---|---|---|---|---|")
    for one in FUNCTIONS:
        print(f"| {one.name} | {one.memory_mb} | {one.an_hour:g} | {one.seconds:g} | {one.dollars:.2f} |")


def _range(least: float, most: float) -> str:
    return f"${least:,.0f}" if least == most else f"${least:,.0f} to ${most:,.0f}"


if __name__ == "__main__":
    main()
