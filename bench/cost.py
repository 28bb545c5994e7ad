"""What a flow costs a month on AWS, beside MSK Replicator and MirrorMaker 2 on MSK Connect: the tables of docs/cost.md.

Run as `python -m bench.cost`. Prices are dollars in us-east-1; where each comes from is in docs/cost.md. The first
table has what each engine costs, the second a flow with either, the third what comes with it: traffic between zones,
verification, tracing, endpoints. Brokers, and traffic between regions, are the same for all and left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.copy.planning.dealing import QUARTER
from mirrorless.functions.engine_decision import CARRIED
from mirrorless.metrics import FLOW, METRICS, TOPIC, Emitter

if TYPE_CHECKING:
    from collections.abc import Sequence

HOURS: Final = 730
"""Hours of a month, as AWS reckons."""
HOURS_OF_A_WEEK: Final = 7 * 24
RATES: Final = (1, 50, 500)
"""MB/s of a flow, as they are on the wire."""
SIZES: Final = (1, 5, 10, 20, 50, 100, 200)
"""MB/s of the table of sizes in docs/deployment.md."""
TOPICS: Final = 20
"""Topics of the flow, for the metrics by topic."""
LAGGING_H: Final = 1.0
"""Hours a day in which each topic lags or fails, and therefore has metrics."""
BEFORE: Final = {1: "$244", 50: "$725", 500: "$1,689 to $2,653"}
"""What a flow came to when Spark copied it always and every metric of 20 topics was sent all the time."""
GOALS: Final = {1: 30, 50: 200, 500: 1_700}
"""What a flow of these MB/s has to cost less than, with functions and monitoring."""

# Of the function `copy`, measured with TLS on one machine (docs/benchmarks.md), not on AWS.
COPY_MB_S: Final = 10.0
"""Of a function with `COPY_MB`, which comes with 0.29 of a core; in proportion to memory above that."""
COPY_MB: Final = 512
SMALL_COPY_MB_S: Final = 2.0
"""Of a function with `SMALL_COPY_MB`."""
SMALL_COPY_MB: Final = 256
COPY_PEAK_MB: Final = 140
"""The most memory that a function uses at `SMALL_COPY_MB_S`."""
COPY_SKEW: Final = 1 + QUARTER
"""Of several functions the largest share, in means: shares that differ by no more are not dealt again."""
COPY_LOAD: Final = CARRIED
"""The share of its rate that a function is planned with; the supervisor leaves a flow to functions below it."""
COPY_NETWORK_MB_S: Final = 40.0
"""What a function takes in and gives out at once, whatever its memory."""
OVERLAP_S: Final = 3.0
"""How long two invocations run at each hand-over, while the successor connects and plans."""
RETURNS_S: Final = 0.2
"""How long an invocation takes that finds that the other engine does its work."""

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
FARGATE_VCPU_HOUR: Final = 0.03238
FARGATE_GB_HOUR: Final = 0.00356
"""Of ARM."""

# Assumptions.
CAUTIOUS_MB_S: Final = 20.0
"""Of a slot. Measured were 400 MB/s for each second of CPU; on Glue nothing was measured, so this is a twentieth."""
MEASURED_MB_S: Final = 200.0
"""Of a slot: half of what was measured."""
CONNECT_MB_S: Final = 13.0
"""Of an MCU, half of what was measured of a tuned MirrorMaker 2: 900 MB in 35 s of CPU."""
LOG_BYTES: Final = 1_500
"""Of an invocation: Lambda's three lines, one of the function, and its metrics."""
LEASE_S: Final = 120
ZONES: Final = 3
"""Of the brokers: two of three partitions have their leader in another zone than the job."""
VERIFY_MB_S: Final = 4 * 40.0
"""Of a comparison with two G.1X, both sides together: four cores at the design target."""
VERIFY_WORKERS: Final = 2
VERIFY_SINCE_H: Final = 26
"""The template's `VerifySince`: what a nightly comparison compares."""
VERIFY_LIMIT_H: Final = 12
"""After so many hours the template's job is ended."""
RETENTION_DAYS: Final = 7
"""Of the topics, for a comparison of everything."""
NIGHTS: Final = HOURS / 24
ENDPOINTS: Final = 5
"""Glue, CloudWatch, its logs, SQS and Secrets Manager, in one zone; S3's is free."""
TRIGGER_ENDPOINTS: Final = 3
"""Lambda, STS and SQS, in the subnets of a cluster with a trigger."""
ALARM_METRICS: Final = 6 + 2 + 2 + 3 + 3 + 3 + 5 + 5
"""Six alarms of one metric each, and seven that are made of several."""
CORE_MB_S: Final = COPY_MB_S * 1769 / COPY_MB
"""Of a core, by the measured rate of a function."""
TASKS: Final = ((0.25, 0.5), (0.5, 1), (1, 2))
"""vCPU and GB of tasks of Fargate; one process uses a core at most."""
MOST_FUNCTIONS: Final = 16
"""The most that the template's `CopyFunctions` takes."""
LARGER_COPY_MB: Final = (1024, 1769)
"""Memory that is tried if functions of `COPY_MB` would be too many."""


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
    """A function: its memory in the template, how often an hour and for how long it runs, which is assumed.

    `beside_copy_s` is how long it runs while `copy` copies, if that is another time.
    """

    name: str
    memory_mb: int
    an_hour: float
    seconds: float
    beside_copy_s: float | None = None

    @property
    def dollars(self) -> float:
        """What it costs a month, while the job copies."""
        return self._dollars(self.seconds)

    @property
    def dollars_beside_copy(self) -> float:
        """What it costs a month, while functions copy."""
        return self._dollars(self.seconds if self.beside_copy_s is None else self.beside_copy_s)

    def _dollars(self, seconds: float) -> float:
        times = self.an_hour * HOURS
        return times * REQUEST + times * seconds * self.memory_mb / 1024 * GB_SECOND


FUNCTIONS: Final = (
    Function("topic_discovery", 512, 6, 5),
    Function("config_sync", 512, 6, 5),
    Function("acl_sync", 512, 6, 5),
    Function("heartbeat", 256, 60, 60, RETURNS_S),
    Function("checkpoint, by schedule", 1024, 60, 2, RETURNS_S),
    Function("checkpoint, by trigger", 1024, 240, 2, RETURNS_S),
    Function("heartbeat_monitor, by schedule", 256, 60, 1),
    Function("heartbeat_monitor, by trigger", 256, 240, 0.1),
    Function("job_supervisor", 256, 60, 1),
    Function("drill", 512, 1 / HOURS_OF_A_WEEK, 60),
)
COPY_AT_REST: Final = Function("copy, while the job copies", SMALL_COPY_MB, 60, RETURNS_S)


@dataclass(frozen=True, slots=True)
class Copies:
    """The functions that copy a flow."""

    number: int
    memory_mb: int

    @property
    def dollars(self) -> float:
        """What they cost a month, always running, one invocation a minute."""
        requests = self.number * 60 * HOURS
        seconds = requests * (60 + OVERLAP_S)
        return requests * REQUEST + seconds * self.memory_mb / 1024 * GB_SECOND


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


def copy_mb_s(memory_mb: int) -> float:
    """Return how much a function with so much memory copies, 0 if it does not fit."""
    if memory_mb < COPY_PEAK_MB:
        return 0.0
    if memory_mb < COPY_MB:
        return SMALL_COPY_MB_S
    return min(COPY_MB_S * memory_mb / COPY_MB, COPY_NETWORK_MB_S)


def copies_of(mb_s: float, rate: float) -> int:
    """Return how many functions of a rate copy a flow, with reserve: each is loaded, and shares differ."""
    carried = rate * COPY_LOAD
    return 1 if mb_s <= carried else math.ceil(round(mb_s * COPY_SKEW / carried, 6))


def copies(mb_s: float) -> Copies | None:
    """Return the cheapest functions that copy a flow, None if the template does not take as many."""
    found = [
        Copies(copies_of(mb_s, rate), memory_mb)
        for memory_mb in (SMALL_COPY_MB, COPY_MB, *LARGER_COPY_MB)
        if (rate := copy_mb_s(memory_mb))
    ]
    return min((one for one in found if one.number <= MOST_FUNCTIONS), key=lambda one: one.dollars, default=None)


def functions() -> float:
    """Return what all functions cost a month while the job copies."""
    return sum(one.dollars for one in (*FUNCTIONS, COPY_AT_REST))


def functions_beside_copy() -> float:
    """Return what the other functions cost a month while `copy` copies."""
    return sum(one.dollars_beside_copy for one in FUNCTIONS)


def by_functions(mb_s: float) -> float:
    """Return what a flow costs a month that functions copy; infinity if they cannot."""
    found = copies(mb_s)
    return math.inf if found is None else found.dollars + functions_beside_copy() + watching()


def by_spark(mb_s: float, *, slot_mb_s: float, workers: Sequence[Worker] = WORKERS) -> float:
    """Return what a flow costs a month that the job copies."""
    return job(mb_s, slot_mb_s=slot_mb_s, workers=workers).dollars + functions() + watching(by_job=True)


def automatic(mb_s: float) -> float:
    """Return what a flow costs a month with `mirrorless.engine=auto`, caught up: the cheaper of both."""
    return min(by_functions(mb_s), by_spark(mb_s, slot_mb_s=MEASURED_MB_S))


def watching(topics: int = TOPICS, lagging_h: float = LAGGING_H, *, by_job: bool = False) -> float:
    """Return what metrics, alarms, dashboard and logs cost a month.

    A metric is paid by the hours in which it is sent: of the flow always, unless it is mostly zero; of a topic while it
    lags; of `verify_copy` one hour a day, of `drill` one hour a week; `job-running` while the job copies.
    """
    sent = [metric for metric in METRICS if metric.cloudwatch and not metric.sparse]
    hours_a_day = {Emitter.VERIFY_COPY: 1.0, Emitter.DRILL: 1 / 7}
    hours = sum(hours_a_day.get(metric.emitter, 24.0) for metric in sent if FLOW in metric.dimensions)
    hours += topics * lagging_h * sum(TOPIC in metric.dimensions and metric.cloudwatch_topic for metric in sent)
    hours += 24.0 * by_job
    return (
        hours / 24 * METRIC_MONTH
        + ALARM_METRICS * ALARM_MONTH
        + COMPOSITE_ALARM_MONTH
        + DASHBOARD_MONTH
        + HOURS * 3600 / LEASE_S * PUT_METRIC_DATA
        + logs_gb() * LOG_GB
    )


def logs_gb() -> float:
    """Return how much the functions log a month."""
    return sum(one.an_hour for one in (*FUNCTIONS, COPY_AT_REST)) * HOURS * LOG_BYTES / 1e9


def fargate(vcpu: float, memory_gb: float) -> float:
    """Return what a task costs a month."""
    return HOURS * (vcpu * FARGATE_VCPU_HOUR + memory_gb * FARGATE_GB_HOUR)


def tracing() -> float:
    """Return what it would cost a month to trace every invocation; the templates have `PassThrough`."""
    return sum(one.an_hour for one in (*FUNCTIONS, COPY_AT_REST)) * HOURS * TRACE


def between_zones(mb_s: float) -> float:
    """Return the traffic of one direction, from or to brokers in three zones, if leaders are spread over them."""
    return gigabytes(mb_s) * ZONE_GB * (ZONES - 1) / ZONES


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of the records of so many hours on both sides, with two G.1X."""

    mb_s: float
    compared_h: float

    @property
    def hours(self) -> float:
        """How long it takes."""
        return 2 * self.mb_s * self.compared_h / VERIFY_MB_S

    @property
    def dollars(self) -> float:
        """What the job costs."""
        return self.hours * VERIFY_WORKERS * DPU_HOUR

    @property
    def between_zones(self) -> float:
        """What it costs to read both sides, whose leaders are spread over three zones."""
        return 2 * self.mb_s * self.compared_h * 3.6 * ZONE_GB * (ZONES - 1) / ZONES


def nightly(mb_s: float) -> Comparison:
    """Return the comparison that `VerifySchedule` starts every night."""
    return Comparison(mb_s, VERIFY_SINCE_H)


def complete(mb_s: float) -> Comparison:
    """Return the comparison of everything retained, which is started by hand."""
    return Comparison(mb_s, RETENTION_DAYS * 24)


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


def sizes() -> str:
    """Return the table of docs/deployment.md: memory and number of the functions for a rate."""
    lines = ["| MB/s of the flow | `CopyMemory` | `CopyFunctions` | $ a month, all included |", "|---|---|---|---|"]
    for mb_s in SIZES:
        found = copies(mb_s)
        if found is None:
            lines.append(f"| {mb_s} | the job | | {by_spark(mb_s, slot_mb_s=MEASURED_MB_S):,.0f} |")
        else:
            lines.append(f"| {mb_s} | {found.memory_mb} | {found.number} | {by_functions(mb_s):,.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables in Markdown."""
    print(
        "| MB/s | GB a month | functions engine | Spark engine, as measured | Spark engine, cautious | without G.025X |"
    )
    print("|---|---|---|---|---|---|")
    for mb_s in RATES:
        found = copies(mb_s)
        engine = "too many" if found is None else f"${found.dollars:,.0f} ({found.number} x {found.memory_mb} MB)"
        measured, cautious = (job(mb_s, slot_mb_s=slot) for slot in (MEASURED_MB_S, CAUTIOUS_MB_S))
        standard = [job(mb_s, slot_mb_s=slot, workers=STANDARD).dollars for slot in (MEASURED_MB_S, CAUTIOUS_MB_S)]
        print(
            f"| {mb_s} | {gigabytes(mb_s):,.0f} | {engine} "
            f"| ${measured.dollars:,.0f} ({measured.number} {measured.worker.name}) "
            f"| ${cautious.dollars:,.0f} ({cautious.number} {cautious.worker.name}) | {_range(*standard)} |"
        )
    print("\n| MB/s | by functions | by Spark | `auto` | goal | before | MSK Replicator | MSK Connect |")
    print("|---|---|---|---|---|---|---|---|")
    for mb_s in RATES:
        functions_only = "too many" if copies(mb_s) is None else f"${by_functions(mb_s):,.0f}"
        spark = _range(*(by_spark(mb_s, slot_mb_s=slot) for slot in (MEASURED_MB_S, CAUTIOUS_MB_S)))
        print(
            f"| {mb_s} | {functions_only} | {spark} | **${automatic(mb_s):,.0f}** | under ${GOALS[mb_s]:,} "
            f"| {BEFORE[mb_s]} | ${replicator(mb_s):,.0f} | ${connect(mb_s):,.0f} ({connect_units(mb_s)} MCU) |"
        )
    print("\n| beside the engine | functions copy | the job copies |")
    print("|---|---|---|")
    print(f"| other functions | ${functions_beside_copy():.2f} | ${functions():.2f} |")
    print(f"| watching | ${watching():.2f} | ${watching(by_job=True):.2f} |")
    print("\n| MB/s | from the source's zones | with `client.rack` | to the target's zones |")
    print("|---|---|---|---|")
    for mb_s in RATES:
        traffic = f"${between_zones(mb_s):,.0f}"
        print(f"| {mb_s} | {traffic} | $0 | {traffic} |")
    print(
        "\n| MB/s | every night: hours each | Glue, a month | between zones, a month "
        "| everything, once: hours | Glue | between zones |"
    )
    print("|---|---|---|---|---|---|---|")
    for mb_s in RATES:
        night, whole = nightly(mb_s), complete(mb_s)
        print(
            f"| {mb_s} | {_hours(night)} | ${night.dollars * NIGHTS:,.0f} | ${night.between_zones * NIGHTS:,.0f} "
            f"| {_hours(whole)} | ${whole.dollars:,.0f} | ${whole.between_zones:,.0f} |"
        )
    print("\n| for all flows of a VPC | $ a month |")
    print("|---|---|")
    for zones in (1, 2):
        where = "one zone" if zones == 1 else "two zones"
        print(f"| {ENDPOINTS} interface endpoints in {where} | {ENDPOINTS * ENDPOINT_MONTH * zones:.2f} |")
    trigger = TRIGGER_ENDPOINTS * ENDPOINT_MONTH
    print(f"| {TRIGGER_ENDPOINTS} for triggers, in one zone of a cluster's subnets | {trigger:.2f} |")
    print(f"| one more, for Lambda, if several functions copy a flow | {ENDPOINT_MONTH:.2f} |")
    print(f"| or a NAT gateway, without traffic | {NAT_MONTH:.2f} |")
    print(f"| tracing, `PassThrough` (every invocation of a flow: {tracing():.2f}) | 0.00 |")
    print("\n| task of Fargate | $ a month | MB/s by CPU, at 80 % |")
    print("|---|---|---|")
    for vcpu, memory_gb in TASKS:
        rate = vcpu * CORE_MB_S * COPY_LOAD
        print(f"| {vcpu:g} vCPU, {memory_gb:g} GB | {fargate(vcpu, memory_gb):.2f} | {rate:.0f} |")
    print("\n| function | MB | times an hour | seconds each | $ a month | seconds beside `copy` | $ a month |")
    print("|---|---|---|---|---|---|---|")
    for one in FUNCTIONS:
        beside_s = one.seconds if one.beside_copy_s is None else one.beside_copy_s
        print(
            f"| {one.name} | {one.memory_mb} | {round(one.an_hour, 3):g} | {one.seconds:g} | {one.dollars:.2f} "
            f"| {beside_s:g} | {one.dollars_beside_copy:.2f} |"
        )
    rest = COPY_AT_REST
    print(f"| {rest.name} | {rest.memory_mb} | {rest.an_hour:g} | {rest.seconds:g} | {rest.dollars:.2f} | | |")


def _hours(comparison: Comparison) -> str:
    text = f"{comparison.hours:,.1f}"
    return text if comparison.hours <= VERIFY_LIMIT_H else f"{text}, ended after {VERIFY_LIMIT_H}"


def _range(least: float, most: float) -> str:
    return f"${least:,.0f}" if least == most else f"${least:,.0f} to ${most:,.0f}"


if __name__ == "__main__":
    main()
