"""The report of a drill as one HTML page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from mirrorless.doctor.findings import Status
from mirrorless.operations.drill.report import RTO_EXCLUDES
from mirrorless.operations.results import count_of
from mirrorless.report_html import badge, bullets, document, figure, grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mirrorless.operations.drill.report import DrillReport
    from mirrorless.operations.results import CheckResult

MOST_GROUPS: Final = 500
_RESULTS: Final = {
    Status.OK: "passed",
    Status.WARNING: "passed, with warnings",
    Status.FAILED: "failed",
    Status.NOT_CHECKED: "not all could be checked",
}


def page(reports: Sequence[DrillReport], errors: Mapping[str, str]) -> str:
    """Return the page; `errors` are flows that could not be drilled."""
    failures = [
        f"<h2>{escape(flow)} {badge(Status.FAILED, 'could not be done')}</h2><p>{escape(text)}</p>"
        for flow, text in errors.items()
    ]
    return document("mirrorless drill", [*(part for one in reports for part in _flow(one)), *failures])


def _flow(report: DrillReport) -> Iterator[str]:
    seconds = (report.ended_ms - report.began_ms) / 1000
    yield f"<h2>{escape(report.flow)} {badge(report.status, _RESULTS[report.status])}</h2>"
    yield f'<p class="small">{report.began}, took {seconds:,.1f} s. Nothing was written to a cluster.</p>'
    records = "unknown" if report.rpo_records is None else f"{report.rpo_records:,}"
    yield '<div class="figures">'
    yield figure("RPO now, records", records if report.rpo_exact else f"up to {records}", report.rpo_partition or "")
    rpo_s = "0 s" if report.rpo_records == 0 else "unknown"
    rpo_s = rpo_s if report.rpo_seconds is None else f"{report.rpo_seconds:,.1f} s"
    yield figure("RPO now, age", rpo_s, _limit(report.rpo_limit_s))
    yield figure("RTO at least", f"{report.rto_seconds:,.1f} s", _limit(report.rto_limit_s))
    yield "</div>"
    excluded = escape("; ".join(RTO_EXCLUDES))
    yield f'<p class="small">The RTO is the measured reading; it does not include {excluded}.</p>'
    yield "<h3>Checks</h3><table><thead><tr><th>status</th><th>check</th><th>result</th></tr></thead><tbody>"
    yield from (_row(one) for one in report.results)
    yield "</tbody></table>"
    if report.groups:
        yield "<h3>Groups</h3>"
        yield grid(
            (
                "group",
                "#partitions",
                "#without translation",
                "#read again, at most",
                "#skipped, at most",
                "#not copied",
            ),
            (
                (
                    *(one.group, f"{one.partitions:,}", f"{one.untranslated:,}", f"{one.read_again:,}"),
                    f"{one.skipped:,}",
                    "unknown" if one.not_copied is None else f"{one.not_copied:,}",
                )
                for one in report.groups[:MOST_GROUPS]
            ),
        )
        left = len(report.groups) - MOST_GROUPS
        yield f"<p>{count_of(left, 'group')} more are in the JSON report.</p>" if left > 0 else ""
    if report.notes:
        yield f"<h3>Notes</h3>{bullets(report.notes)}"
    yield "<h3>Durations</h3>"
    yield grid(
        ("step", "#seconds", "part of the RTO"),
        ((one.name, f"{one.seconds:,.2f}", "yes" if one.in_rto else "") for one in report.steps),
    )
    yield "<h3>Versions</h3>"
    yield grid(("of", "version"), [*report.versions, ("configuration (SHA-256)", report.configuration)])


def _row(one: CheckResult) -> str:
    cells: Iterable[str] = (badge(one.status), escape(one.check), f"{escape(one.text)}{_details(one)}")
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _details(one: CheckResult) -> str:
    fix = "" if one.fix is None else f'<div class="fix">&rarr; {escape(one.fix)}</div>'
    return f"{bullets(one.shown)}{fix}"


def _limit(seconds: float | None) -> str:
    return "no limit is set" if seconds is None else f"limit {seconds:g} s"
