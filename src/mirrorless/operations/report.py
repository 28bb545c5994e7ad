"""The report of an operation: text, JSON and one HTML page with a timeline."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.findings import Status
from mirrorless.operation_log.records import OperationKind, OperationOutcome, StepState
from mirrorless.operations.kinds import steps_of
from mirrorless.operations.results import SHOWN_LINES, count_of
from mirrorless.report_html import badge, bullets, document, figure, grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.operation_log.records import OperationState
    from mirrorless.operations.run import Ended

_TITLES: Final = {
    OperationOutcome.COMPLETED: "completed",
    OperationOutcome.ABORTED: "undone",
    OperationOutcome.RUNNING: "interrupted",
}
_BAR_PX: Final = 600


def blocked_s(operation: OperationState) -> float | None:
    """How long writers were blocked: from the fence to the switch of clients, or until it was removed; None if not."""
    fence, switch = operation.steps.get("fence"), operation.steps.get("switch clients")
    if fence is None or operation.request.fence == "none":
        return None
    if fence.state is StepState.UNDONE and fence.ended_ms is not None:
        return (fence.ended_ms - fence.began_ms) / 1000
    if switch is None or switch.ended_ms is None:
        return None
    return (switch.ended_ms - fence.began_ms) / 1000


def as_fields(ended: Ended) -> dict[str, Any]:
    """Return a report as JSON values."""
    operation = ended.operation
    groups = operation.data("groups")
    stranded = operation.steps.get("stranded")  # also of one that was undone: it says what is to be decided
    return {
        "operation": operation.id,
        "kind": operation.request.kind,
        "from": operation.request.source,
        "to": operation.request.target,
        "outcome": operation.outcome,
        "began_ms": operation.created_ms,
        "ended_ms": operation.ended_ms,
        "error": ended.error,
        "lines": list(ended.lines),
        "warnings": list(ended.warnings),
        "next": next_step(ended),
        "writers_blocked_seconds": blocked_s(operation),
        "steps": [
            {
                "step": name,
                "state": record.state,
                "began_ms": record.began_ms,
                "seconds": record.seconds,
                "result": _result(operation, name),
            }
            for name, record in operation.steps.items()
        ],
        "groups": {
            "moved": len(groups.get("wanted", ())),
            "read_again": groups.get("read_again", {}),
            "skipped": groups.get("skipped", {}),
            "staying_on_source": groups.get("staying", {}),
            "active_on_target": groups.get("on_target", []),
            "untranslated": groups.get("untranslated", []),
            "refused": groups.get("left", []),
        },
        "newest_replicated_ms": operation.data("record").get("newest_ms", {}),
        "stranded": [] if stranded is None else stranded.data.get("partitions", []),
        "request": asdict(operation.request),
        "version": operation.request.version,
        "configuration_sha256": operation.request.configuration,
    }


def as_text(ended: Ended) -> str:
    """Return a report as lines of text."""
    return "\n".join(_lines(ended)) + "\n"


def to_json(ended: Ended) -> str:
    """Return a report as one JSON document."""
    return json.dumps(as_fields(ended), indent=2) + "\n"


def page(ended: Ended) -> str:
    """Return a report as one HTML page."""
    return document(f"mirrorless {ended.operation.request.kind}", _page(ended))


def title(operation: OperationState) -> str:
    """Return the operation in one line."""
    request = operation.request
    outcome = _TITLES[operation.outcome]
    if operation.data("groups").get("refused"):
        outcome += ", except for offsets of groups"
    return f"{request.kind} {operation.id} from {request.source} to {request.target}: {outcome}"


def _result(operation: OperationState, name: str) -> str:
    """The step's result in one line; a step that did not end has none."""
    record = operation.steps[name]
    if record.state is not StepState.DONE:
        return ""
    step = next((one for one in steps_of(operation.request.kind) if one.name == name), None)
    return "" if step is None else step.text(record.data)


def _lines(ended: Ended) -> Iterator[str]:
    operation = ended.operation
    yield title(operation)
    for name, record in operation.steps.items():
        yield f"  {record.state:7}  {record.seconds:7.1f} s  {name}: {_result(operation, name)}".rstrip(": ")
    seconds = blocked_s(operation)
    if seconds is not None:
        yield f"  writers were blocked for {seconds:,.1f} s"
    yield from (f"  {line}" for line in about_groups(operation))
    yield from (f"  warning: {line}" for line in ended.warnings[:SHOWN_LINES])
    if ended.error is not None:
        yield f"  error: {ended.error}"
        yield from (f"    {line}" for line in ended.lines[:SHOWN_LINES])
        left = len(ended.lines) - SHOWN_LINES
        if left > 0:
            yield f"    and {count_of(left, 'line')} more; the JSON report has all of them"
        yield f"  {_advice(ended)}"
    if ended.error is None:
        yield f"  next: {next_step(ended)}"


def next_step(ended: Ended) -> str:
    """Return what to do after an operation, with the command for it."""
    operation, request = ended.operation, ended.operation.request
    if operation.outcome is not OperationOutcome.COMPLETED:
        return _advice(ended)
    if request.kind is OperationKind.FAILOVER:
        return f"when {request.source} is back, return with `mirrorless failback FILE --to {request.source}`"
    if operation.standing_fence:
        return (
            f"writers of {request.source} are blocked; when no client writes there any more, run "
            "`mirrorless operation FILE close`, which removes the fence"
        )
    return "nothing is left to do; `mirrorless status FILE` shows how the flows copy"


def about_groups(operation: OperationState) -> Iterator[str]:
    """Yield a line for each group that reads records again, was left as it is, or was refused."""
    groups = operation.data("groups")
    for group, number in groups.get("read_again", {}).items():
        if number:
            yield f"group {group} reads up to {count_of(number, 'record')} again"
    for group, number in groups.get("staying", {}).items():
        yield f"group {group} still had members: it reads up to {count_of(number, 'record')} again"
    yield from (
        f"group {group} has members on the target, and was left as it is" for group in groups.get("on_target", ())
    )
    yield from groups.get("untranslated", ())
    yield from groups.get("left", ())


def _advice(ended: Ended) -> str:
    if ended.is_restored:
        return "everything is as it was before"
    if ended.operation.outcome is OperationOutcome.COMPLETED:
        return "set these offsets on the target with `kafka-consumer-groups.sh --reset-offsets`"
    return "run `mirrorless operation FILE continue`, or `abort` as long as applications have not begun to move"


def _page(ended: Ended) -> Iterator[str]:
    operation = ended.operation
    status = {
        OperationOutcome.COMPLETED: Status.OK,
        OperationOutcome.ABORTED: Status.WARNING,
        OperationOutcome.RUNNING: Status.FAILED,
    }
    request = operation.request
    mark = badge(status[operation.outcome], _TITLES[operation.outcome])
    yield f"<h2>{escape(request.source)} &rarr; {escape(request.target)} {mark}</h2>"
    began = datetime.fromtimestamp(operation.created_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f'<p class="small">{escape(operation.id)}, begun {began}.</p>'
    seconds = blocked_s(operation)
    groups = operation.data("groups")
    yield '<div class="figures">'
    yield figure("Writers blocked", "not" if seconds is None else f"{seconds:,.1f} s", f"fence {request.fence}")
    yield figure("Groups moved", f"{len(groups.get('wanted', ())):,}")
    yield figure("Read again, at most", f"{sum(groups.get('read_again', {}).values()):,}", "records")
    yield figure("Skipped, at most", f"{sum(groups.get('skipped', {}).values()):,}", "records")
    yield "</div>"
    if ended.error is not None:
        yield f"<p>{escape(ended.error)}</p>{bullets(ended.lines)}<p>{escape(_advice(ended))}</p>"
    yield "<h3>Timeline</h3>"
    yield _timeline(operation)
    yield grid(
        ("step", "state", "#seconds", "result"),
        (
            (name, record.state, f"{record.seconds:,.1f}", _result(operation, name))
            for name, record in operation.steps.items()
        ),
    )
    notes = [*about_groups(operation), *ended.warnings]
    if notes:
        yield f"<h3>Notes</h3>{bullets(notes)}"
    yield "<h3>Versions</h3>"
    yield grid(("of", "version"), [("mirrorless", request.version), ("configuration (SHA-256)", request.configuration)])


def _timeline(operation: OperationState) -> str:
    """A bar for each step, on one scale of time."""
    steps = [(name, record) for name, record in operation.steps.items() if record.ended_ms is not None]
    if not steps:
        return ""
    first = min(record.began_ms for _, record in steps)
    last = max(record.ended_ms or 0 for _, record in steps)
    scale = _BAR_PX / max(1, last - first)
    rows = "".join(
        f'<text x="0" y="{number * 22 + 15}" fill="currentColor" font-size="12">{escape(name)}</text>'
        f'<rect x="{140 + (record.began_ms - first) * scale:.1f}" y="{number * 22 + 4}" rx="2" height="14" '
        f'width="{max(2.0, ((record.ended_ms or 0) - record.began_ms) * scale):.1f}" fill="var(--ok)">'
        f"<title>{escape(name)}: {record.seconds:,.1f} s</title></rect>"
        for number, (name, record) in enumerate(steps)
    )
    width = 140 + _BAR_PX + 10
    return (
        f'<svg role="img" aria-label="duration of each step" viewBox="0 0 {width} {len(steps) * 22 + 6}" '
        f'width="100%">{rows}</svg>'
    )
