"""Compares all kinds of a flow's clusters, and sorts what differs: to be changed by the flow, or reported only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.clusters.msk import is_serverless
from mirrorless.clusters.side_by_side import each
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.metadata.actions import Plan, Problem
from mirrorless.metadata.kind import SETTING
from mirrorless.metadata.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mirrorless.metadata.actions import ClusterDifference
    from mirrorless.metadata.kind import BothEnds, Found, Kind
    from mirrorless.settings import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class KindResult:
    """One kind after the comparison; `is_synced` says that the flow changes the target, `failed` why there is none."""

    kind: Kind
    is_synced: bool
    found: Found
    failed: str | None = None

    @property
    def differences(self) -> Sequence[ClusterDifference]:
        """What differs; of a kind that is not synced, each has as its reason why the flow does not change it."""
        if isinstance(self.found, NotThere):
            return ()
        return [
            one if self.is_synced or one.change is None else replace(one, change=None, reason=self.kind.why_not)
            for one in self.found
        ]

    @property
    def absent(self) -> NotThere | None:
        """Why there is nothing to compare; None if there is."""
        return self.found if isinstance(self.found, NotThere) else None

    @property
    def unread(self) -> str | None:
        """Why a kind that should be synced is not known, which is a fault; else None."""
        if self.failed is not None:
            return self.failed
        absent = self.absent
        return absent.reason if absent is not None and absent.lacks_right and self.is_synced else None


def synced_kinds(flow: Flow) -> list[Kind]:
    """Return the kinds that the flow changes on its target; raises `ConfigurationError` for a name of none."""
    movable = {one.name: one for one in KINDS if one.apply is not None and not one.deletes}
    for name in flow.sync_kinds:
        if name not in movable:
            raise ConfigurationError(f"must be a list of {', '.join(movable)}", key=SETTING, value=name)
    return [one for one in KINDS if one.is_synced(flow)]


def compare_kinds(ends: BothEnds, *, every: bool) -> list[KindResult]:
    """Compare the kinds that are synced, or `every` one; what cannot be read of one does not stop the others."""
    synced = synced_kinds(ends.flow)
    kinds = KINDS if every else synced
    return each([partial(_compared, ends, one, is_synced=one in synced) for one in kinds])


def _compared(ends: BothEnds, kind: Kind, *, is_synced: bool) -> KindResult:
    for cluster in (ends.flow.source, ends.flow.target):
        if is_serverless(cluster) and not kind.on_serverless:
            absent = NotThere(f"cluster {cluster.alias} is MSK Serverless, which has no {kind.about}")
            return KindResult(kind=kind, is_synced=is_synced, found=absent)
    try:
        found = kind.compare(ends)
    except ClusterError as error:
        return KindResult(kind=kind, is_synced=is_synced, found=[], failed=str(error))
    return KindResult(kind=kind, is_synced=is_synced, found=found)


def plan_kinds(results: Iterable[KindResult]) -> Plan:
    """Return the actions of kinds that are synced, and what differs and is not moved."""
    results = list(results)
    differences = [one for result in results for one in result.differences]
    synced = [one for one in results if one.is_synced]
    return Plan(
        actions=tuple(one for one in differences if one.change is not None),
        not_moved=tuple(one for one in differences if one.change is None),
        problems=tuple(
            Problem(topic="*", reason=f"{one.kind.name} are not synced: {one.unread}")
            for one in synced
            if one.unread is not None
        ),
        notes=(
            *(
                f"{one.kind.name} are not synced: {one.absent.reason}"
                for one in synced
                if one.absent is not None and one.unread is None
            ),
            *(
                f"{one.kind.name} are not compared: {one.failed}"
                for one in results
                if not one.is_synced and one.failed is not None
            ),
        ),
    )


def apply_differences(ends: BothEnds, some: Sequence[ClusterDifference]) -> list[str | None]:
    """Change the target; returns for each difference None, or the error."""
    kinds = {one.name: one for one in KINDS}
    errors: dict[int, str | None] = {}
    for name in dict.fromkeys(one.kind for one in some):
        numbered = [(number, one) for number, one in enumerate(some) if one.kind == name]
        apply = kinds[name].apply
        assert apply is not None
        try:
            done = apply(ends, [one for _, one in numbered])
        except ClusterError as error:
            done = [str(error)] * len(numbered)
        errors |= {number: one for (number, _), one in zip(numbered, done, strict=True)}
    return [errors[number] for number in range(len(some))]
