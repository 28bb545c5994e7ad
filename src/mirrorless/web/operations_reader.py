"""Reads the operations of a configuration's clusters: switchovers, failovers and failbacks, with their steps."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from mirrorless.errors import MirrorlessError
from mirrorless.operation_log.records import Operations
from mirrorless.operations.applications import place_of
from mirrorless.operations.cluster_pair import ClusterPair
from mirrorless.operations.report import about_groups, as_fields, blocked_s, next_step
from mirrorless.operations.run import Ended
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import ApplicationsRow, FenceRow, Fix, OperationRow, OperationStepRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.operation_log.records import OperationState
    from mirrorless.settings import Flow, Settings

_COMMAND: Final = re.compile(r"`(mirrorless [^`]+)`")
_NAMED: Final = 20
"""So many topics of a fence are named."""


class OperationsReader(RepeatingReader):
    """The operations of all pairs of clusters of `settings`."""

    def __init__(self, settings: Settings, *, after: Sequence[RepeatingReader], every_s: float) -> None:
        super().__init__("web: operations", every_s=every_s, after=after)
        self._settings = settings
        self._pairs: dict[str, ClusterPair] = {}
        self._found = Operations()
        self._unread: dict[frozenset[str], str] = {}

    @property
    def rows(self) -> tuple[OperationRow, ...]:
        """A row for each operation, the newest first."""
        found, rows, pairs = self._found, [], set()
        for one in sorted(found.by_id.values(), key=lambda one: -one.number):
            is_last = one.request.pair not in pairs
            pairs.add(one.request.pair)
            rows.append(_row(one, self._settings.file, is_last=is_last))
        return tuple(rows)

    @property
    def applications(self) -> tuple[ApplicationsRow, ...]:
        """A row for each pair of clusters."""
        pairs: dict[frozenset[str], Flow] = {}
        for one in self._settings.flows:
            pairs.setdefault(frozenset((one.source.alias, one.target.alias)), one)
        reason = self.error or ("not read yet" if self.read_ms is None else "")
        return tuple(
            _applications((flow.source.alias, flow.target.alias), self._found, self._unread.get(pair) or reason)
            for pair, flow in pairs.items()
        )

    @property
    def fences(self) -> tuple[FenceRow, ...]:
        """A row for each fence that an operation has left, or has put up now."""
        return tuple(_fence(one, self._settings.file) for one in self._found.by_id.values() if one.standing_fence)

    def find(self, number: str) -> Ended | None:
        """Return an operation as its report is made of; None if there is none of this id."""
        operation = self._found.by_id.get(number)
        return None if operation is None else Ended(operation=operation)

    def read(self) -> None:
        """Read what is new in both logs of each pair; raises the first error after all were read."""
        errors: list[MirrorlessError] = []
        found, unread = Operations(), {}
        for flow in self._settings.flows:
            try:
                pair = self._pairs.get(flow.name) or ClusterPair.of(self._settings, flow)
                self._pairs[flow.name] = pair
                pair.failures.clear()  # a cluster that did not answer once is asked again
                operations, _ = pair.read()
                found.by_id |= operations.by_id
            except MirrorlessError as error:
                errors.append(error)
                unread[frozenset((flow.source.alias, flow.target.alias))] = str(error)
        if errors:
            found.by_id = self._found.by_id | found.by_id
        self._found, self._unread = found, unread
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Close the connections."""
        for pair in self._pairs.values():
            pair.close()


def _applications(between: tuple[str, str], operations: Operations, unread: str) -> ApplicationsRow:
    place = place_of(frozenset(between), operations)
    text = place.reason or unread
    if place.last is None and not text:
        text = "no operation has moved applications between these clusters"
    last = place.last
    return ApplicationsRow(
        between=between,
        is_known=not (place.reason or unread),
        cluster=place.cluster,
        since_ms=place.since_ms,
        kind=None if last is None else last.request.kind.value,
        operation=None if last is None else last.id,
        text=text,
    )


def _fence(operation: OperationState, location: str) -> FenceRow:
    request, topics = operation.request, sorted(operation.standing_fence["topics"])
    verb = "continue" if operation.is_open else "close"
    when = "to finish the operation" if operation.is_open else "when no client writes there any more"
    return FenceRow(
        cluster=request.source,
        operation=operation.id,
        topics=tuple(topics[:_NAMED]),
        count=len(topics),
        text=f"{request.kind.value} {operation.id} to {request.target} blocks writers on {request.source}",
        fix=Fix(
            text=f"{'Continue' if operation.is_open else 'Remove the fence'}, {when}.",
            command=f"mirrorless operation {shlex.quote(location)} {verb}",
        ),
    )


def _row(operation: OperationState, location: str, *, is_last: bool) -> OperationRow:
    ended = Ended(operation=operation, is_restored=operation.outcome == "aborted")
    fields = as_fields(ended)
    step = next_step(ended).replace(" FILE", f" {shlex.quote(location)}") if is_last or operation.is_open else ""
    command = _COMMAND.search(step)
    return OperationRow(
        id=operation.id,
        kind=operation.request.kind.value,
        source=operation.request.source,
        target=operation.request.target,
        outcome=operation.outcome.value,
        owner=operation.owner_text,
        began_ms=operation.created_ms,
        ended_ms=operation.ended_ms,
        blocked_s=blocked_s(operation),
        reason=operation.reason,
        notes=(*about_groups(operation), *operation.warnings),
        next_step=step,
        next_command=None if command is None else command[1],
        steps=tuple(
            OperationStepRow(
                step=one["step"],
                state=str(one["state"].value),
                began_ms=one["began_ms"],
                ended_ms=operation.steps[one["step"]].ended_ms,
                result=one["result"],
            )
            for one in fields["steps"]
        ),
    )
