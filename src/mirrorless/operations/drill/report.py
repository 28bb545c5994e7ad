"""The report of a drill: results, current RPO, estimated RTO, versions and the hash of the configuration."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.findings import Status
from mirrorless.operations.drill.checks import check_all
from mirrorless.operations.results import UnreadPart, count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.operations.drill.facts import DrillFacts
    from mirrorless.operations.results import CheckResult, MeasuredStep
    from mirrorless.settings import Flow

RTO_EXCLUDES: Final = (
    "detecting the outage and deciding",
    "committing the offsets and adding ACLs",
    "switching and restarting clients, and their first read",
)
"""What the estimated RTO does not include."""
_PACKAGES: Final = ("mirrorless", "confluent-kafka", "kafka-python")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupForecast:
    """The sum of a group's forecasts: partitions, records to read again or skip at most, and those not copied yet.

    None is unknown; `untranslated` are partitions without an offset on the target.
    """

    group: str
    partitions: int
    untranslated: int
    read_again: int
    skipped: int
    not_copied: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillReport:
    """The report of one flow. Times are ms since 1970.

    `notes` are about what was not compared. `rpo_records` and `rpo_seconds` are what would be lost if the source was
    lost now; None is unknown.
    """

    flow: str
    source: str
    target: str
    began_ms: int
    ended_ms: int
    results: tuple[CheckResult, ...]
    groups: tuple[GroupForecast, ...] = ()
    steps: tuple[MeasuredStep, ...] = ()
    rpo_records: int | None = None
    rpo_exact: bool = True
    rpo_seconds: float | None = None
    rpo_partition: str | None = None
    rpo_limit_s: float | None = None
    rto_limit_s: float | None = None
    versions: tuple[tuple[str, str], ...] = ()
    configuration: str = ""
    notes: tuple[str, ...] = ()

    @property
    def rto_seconds(self) -> float:
        """The measured part of a failover."""
        return sum(one.seconds for one in self.steps if one.in_rto)

    @property
    def status(self) -> Status:
        """The worst status of a check."""
        found = {one.status for one in self.results}
        return next((one for one in (Status.FAILED, Status.NOT_CHECKED, Status.WARNING) if one in found), Status.OK)

    @property
    def began(self) -> str:
        """When it began, in UTC."""
        return datetime.fromtimestamp(self.began_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

    @property
    def rpo_text(self) -> str:
        """The current RPO in words."""
        if self.rpo_records is None:
            return "unknown"
        records = f"{'' if self.rpo_exact else 'up to '}{count_of(self.rpo_records, 'record')}"
        if self.rpo_seconds is None:
            return records if self.rpo_records == 0 else f"{records}, of unknown age"
        return f"{records}, {self.rpo_seconds:,.1f} s ({self.rpo_partition})"


def report_of(facts: DrillFacts, *, began_ms: int, ended_ms: int, more: Sequence[CheckResult] = ()) -> DrillReport:
    """Judge the facts and make the report, with the results of `more` checks."""
    backlog = None if isinstance(facts.backlog, UnreadPart) else facts.backlog
    worst = None if backlog is None else backlog.worst
    flow = facts.flow
    return DrillReport(
        flow=flow.name,
        source=flow.source.alias,
        target=flow.target.alias,
        began_ms=began_ms,
        ended_ms=ended_ms,
        results=(*check_all(facts), *more),
        groups=tuple(_groups(facts)),
        steps=facts.steps,
        rpo_records=None if backlog is None else backlog.records,
        rpo_exact=backlog is None or backlog.exact,
        rpo_seconds=None if worst is None else worst[1],
        rpo_partition=None if worst is None else f"{worst[0][0]}-{worst[0][1]}",
        rpo_limit_s=flow.rpo_seconds,
        rto_limit_s=flow.rto_seconds,
        versions=tuple((name, _version(name)) for name in _PACKAGES),
        configuration=configuration_hash(flow),
        notes=() if isinstance(facts.metadata, UnreadPart) else tuple(facts.metadata.notes),
    )


def configuration_hash(flow: Flow) -> str:
    """Return the SHA-256 of the flow's settings with its secrets masked: it does not change with a password."""
    settings = json.dumps(flow.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(settings.encode()).hexdigest()


def _version(package: str) -> str:
    """Return the version of a package; the layer of the functions has the files of Mirrorless without its metadata."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def as_fields(report: DrillReport) -> dict[str, Any]:
    """Return a report as JSON values."""
    return {
        "flow": report.flow,
        "source": report.source,
        "target": report.target,
        "began": datetime.fromtimestamp(report.began_ms / 1000, UTC).isoformat(),
        "began_ms": report.began_ms,
        "ended_ms": report.ended_ms,
        "status": report.status,
        "rpo": {
            "records": report.rpo_records,
            "exact": report.rpo_exact,
            "seconds": report.rpo_seconds,
            "partition": report.rpo_partition,
            "limit_seconds": report.rpo_limit_s,
        },
        "rto": {
            "seconds": report.rto_seconds,
            "limit_seconds": report.rto_limit_s,
            "does_not_include": list(RTO_EXCLUDES),
        },
        "checks": [asdict(one) for one in report.results],
        "groups": [asdict(one) for one in report.groups],
        "steps": [asdict(one) for one in report.steps],
        "notes": list(report.notes),
        "versions": dict(report.versions),
        "configuration_sha256": report.configuration,
    }


def as_text(report: DrillReport) -> str:
    """Return a report as lines of text."""
    return "\n".join(_lines(report)) + "\n"


def to_json(reports: Sequence[DrillReport], errors: dict[str, str]) -> str:
    """Return all reports as one JSON document; `errors` are flows that could not be drilled."""
    flows = {one.flow: as_fields(one) for one in reports}
    return json.dumps({"flows": flows | {flow: {"error": text} for flow, text in errors.items()}}, indent=2) + "\n"


def _lines(report: DrillReport) -> Iterator[str]:
    yield f"{report.flow}: drill of {report.began}"
    for one in report.results:
        yield f"  {one.status:11}  {one.check}: {one.text}"
        yield from (f"  {'':11}    {line}" for line in one.shown)
        if one.fix is not None:
            yield f"  {'':11}  -> {one.fix}"
    yield f"  RPO now: {report.rpo_text}{_limit(report.rpo_limit_s)}"
    yield f"  RTO at least: {report.rto_seconds:,.1f} s{_limit(report.rto_limit_s)}; without {'; '.join(RTO_EXCLUDES)}"
    yield from (f"  note: {note}" for note in report.notes)
    versions = ", ".join(f"{name} {number}" for name, number in report.versions)
    yield f"  {versions}; configuration {report.configuration[:16]}"


def _limit(seconds: float | None) -> str:
    return "" if seconds is None else f", limit {seconds:g} s"


def _groups(facts: DrillFacts) -> Iterator[GroupForecast]:
    for group in sorted({one.group for one in facts.plan.forecasts}):
        some = [one for one in facts.plan.forecasts if one.group == group]
        not_copied = [one.not_copied for one in some]
        yield GroupForecast(
            group=group,
            partitions=len(some),
            untranslated=sum(one.target_offset is None for one in some),
            read_again=sum(one.read_again or 0 for one in some),
            skipped=sum(one.skipped for one in some),
            not_copied=None if None in not_copied else sum(one or 0 for one in not_copied),
        )
