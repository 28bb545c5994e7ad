"""What a flow costs a month on AWS, beside MSK Replicator and MirrorMaker 2 on MSK Connect: the tables of docs/cost.md.

Run as `python -m bench.cost`. Prices are dollars in us-east-1; where each comes from is in docs/cost.md. Costs that are
the same for all (brokers, traffic between zones and regions, NAT and endpoints) are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from mirrorless.metrics import FLOW, METRICS, TOPIC

HOURS: Final = 730
"""Hours of a month, as AWS reckons."""
RATES: Final = (1, 50, 500)
"""MB/s of a flow, as they are on the wire."""
TOPICS: Final = 20
"""Topics of the flow, for the metrics by topic."""

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

# Assumptions.
CAUTIOUS_MB_S: Final = 20.0
"""Of a slot. Measured were 400 MB/s for each second of CPU; on Glue nothing was measured, so this is a twentieth."""
MEASURED_MB_S: Final = 200.0
"""Of a slot: half of what was measured."""
CONNECT_MB_S: Final = 13.0
"""Of an MCU, half of what was measured of a tuned MirrorMaker 2: 900 MB in 35 s of CPU."""
LOGS_GB: Final = 2.0
LEASE_S: Final = 30
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


WORKERS: Final = (Worker("G.025X", 0.25, 2, 20, 10), Worker("G.1X", 1.0, 4, 150, math.inf))


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


def job(mb_s: float, *, slot_mb_s: float) -> Job:
    """Return the cheapest workers for a flow: cores for its slots, network for its bytes, and a driver."""
    slots = math.ceil(mb_s / slot_mb_s)
    jobs = [
        Job(worker, 1 + max(math.ceil(slots / worker.cores), math.ceil(mb_s / worker.mb_s)))
        for worker in WORKERS
        if mb_s <= worker.flow_mb_s
    ]
    return min(jobs, key=lambda one: one.dollars)


def functions() -> float:
    """Return what all functions cost a month."""
    return sum(one.dollars for one in FUNCTIONS)


def watching(topics: int = TOPICS) -> float:
    """Return what metrics, alarms, dashboard and logs cost a month."""
    emitted = [metric for metric in METRICS if metric.cloudwatch]
    series = sum(FLOW in metric.dimensions for metric in emitted)
    series += topics * sum(TOPIC in metric.dimensions for metric in emitted)
    requests = HOURS * 3600 / LEASE_S
    return (
        series * METRIC_MONTH
        + ALARM_METRICS * ALARM_MONTH
        + DASHBOARD_MONTH
        + requests * PUT_METRIC_DATA
        + LOGS_GB * LOG_GB
    )


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
    ours = "job, cautious | job, as measured | functions | watching | together"
    print(f"| MB/s | GB a month | {ours} | MSK Replicator | MSK Connect |")
    print("|---|---|---|---|---|---|---|---|---|")
    for mb_s in RATES:
        cautious, measured = (job(mb_s, slot_mb_s=slot) for slot in (CAUTIOUS_MB_S, MEASURED_MB_S))
        beside = functions() + watching()
        print(
            f"| {mb_s} | {gigabytes(mb_s):,.0f} "
            f"| ${cautious.dollars:,.0f} ({cautious.number} {cautious.worker.name}) "
            f"| ${measured.dollars:,.0f} ({measured.number} {measured.worker.name}) "
            f"| ${functions():,.0f} | ${watching():,.0f} "
            f"| ${measured.dollars + beside:,.0f} to ${cautious.dollars + beside:,.0f} "
            f"| ${replicator(mb_s):,.0f} | ${connect(mb_s):,.0f} ({connect_units(mb_s)} MCU) |"
        )
    print("\n| function | MB | times an hour | seconds each | $ a month |")
    print("|---|---|---|---|---|")
    for one in FUNCTIONS:
        print(f"| {one.name} | {one.memory_mb} | {one.an_hour:g} | {one.seconds:g} | {one.dollars:.2f} |")


if __name__ == "__main__":
    main()
