"""Reads the operations of a configuration's clusters: switchovers, failovers and failbacks, with their steps."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mirrorless.errors import MirrorlessError
from mirrorless.operations.cluster_pair import ClusterPair
from mirrorless.operations.report import as_fields, blocked_s
from mirrorless.operations.run import Ended
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import OperationRow, OperationStepRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.operation_log.records import OperationState
    from mirrorless.settings import Settings


class OperationsReader(RepeatingReader):
    """The operations of all pairs of clusters of `settings`."""

    def __init__(self, settings: Settings, *, after: Sequence[RepeatingReader], every_s: float) -> None:
        super().__init__("web: operations", every_s=every_s, after=after)
        self._settings = settings
        self._pairs: dict[str, ClusterPair] = {}
        self._found: dict[str, OperationState] = {}

    @property
    def rows(self) -> tuple[OperationRow, ...]:
        """A row for each operation, the newest first."""
        newest_first = sorted(self._found.values(), key=lambda one: -one.number)
        return tuple(_row(one, self._settings.file) for one in newest_first)

    def find(self, number: str) -> Ended | None:
        """Return an operation as its report is made of; None if there is none of this id."""
        operation = self._found.get(number)
        return None if operation is None else Ended(operation=operation)

    def read(self) -> None:
        """Read what is new in both logs of each pair; raises the first error after all were read."""
        errors: list[MirrorlessError] = []
        found: dict[str, OperationState] = {}
        for flow in self._settings.flows:
            try:
                pair = self._pairs.get(flow.name) or ClusterPair.of(self._settings, flow)
                self._pairs[flow.name] = pair
                pair.failures.clear()  # a cluster that did not answer once is asked again
                operations, _ = pair.read()
                found |= operations.by_id
            except MirrorlessError as error:
                errors.append(error)
        self._found = self._found | found if errors else found
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Close the connections."""
        for pair in self._pairs.values():
            pair.close()


def _row(operation: OperationState, location: str) -> OperationRow:
    fields = as_fields(Ended(operation=operation))
    command = f"mirrorless operation {shlex.quote(location)} continue" if operation.is_open else None
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
        next_command=command,
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
