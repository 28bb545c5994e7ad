"""Derives from the log of operations on which cluster of a pair applications are. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.operation_log.records import OperationOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.operation_log.records import Operations, OperationState


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationsPlace:
    """Where the applications of a pair of clusters are: on `cluster`, moved there by `last`.

    `cluster` is None if that is unknown, which `reason` explains: an operation is open, or two have completed, each
    while the other's cluster was down. It is None without a reason if no operation has moved applications.
    """

    pair: frozenset[str]
    cluster: str | None = None
    last: OperationState | None = None
    reason: str = ""

    @property
    def since_ms(self) -> int | None:
        """When the last completed operation ended."""
        return None if self.last is None else self.last.ended_ms or self.last.created_ms


def place_of(pair: frozenset[str], operations: Operations) -> ApplicationsPlace:
    """Return where the applications of one pair of clusters are."""
    last, under_way = operations.last_completed(pair), operations.open(pair)
    if under_way is not None:
        one = under_way.request
        reason = f"{one.kind.value} {under_way.id} from {one.source} to {one.target} is not finished"
        return ApplicationsPlace(pair=pair, last=last, reason=reason)
    if last is not None:
        return ApplicationsPlace(pair=pair, cluster=last.request.target, last=last)
    if any(one.outcome is OperationOutcome.COMPLETED for one in operations.of(pair)):
        reason = "two operations have completed, each while the cluster of the other one was down"
        return ApplicationsPlace(pair=pair, reason=reason)
    return ApplicationsPlace(pair=pair)


def places(operations: Operations) -> Iterator[ApplicationsPlace]:
    """Yield the place of each pair of clusters between which an operation has moved applications, or moves them."""
    for pair in dict.fromkeys(one.request.pair for one in operations.by_id.values()):
        found = place_of(pair, operations)
        if found.cluster is not None or found.reason:
            yield found
