"""Quotas of users, client ids and addresses. Those that only the target has are unchanged: they may be others'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.clusters.quotas import QuotaEntity, quotas_of, set_quotas
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.metadata.actions import ClusterDifference
from mirrorless.metadata.kind import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.clusters.quotas import Quotas
    from mirrorless.metadata.kind import BothEnds, Found


def differences(source: Quotas, target: Quotas, *, alias: str) -> list[ClusterDifference]:
    """Return each quota of the source that the target lacks or has with another value; `alias` is the source's."""
    return [
        ClusterDifference(
            kind="quotas",
            on=str(entity),
            what=key,
            source_has=_shown(value),
            target_has="none" if now is None else _shown(now),
            text=f"set quota {key} of {entity} to {_shown(value)} (now {'none' if now is None else _shown(now)})",
            reason=f"{alias} has it",
            change={"entity": entity.parts, "key": key, "value": value},
        )
        for entity, values in sorted(source.items())
        for key, value in sorted(values.items())
        for now in [target.get(entity, {}).get(key)]
        if now != value
    ]


def _compare(ends: BothEnds) -> Found:
    flow = ends.flow
    source, target = side_by_side(lambda: quotas_of(flow.source), lambda: quotas_of(flow.target))
    if isinstance(source, NotThere):
        return source
    if isinstance(target, NotThere):
        return target
    return differences(source, target, alias=flow.source.alias)


def _apply(ends: BothEnds, some: Sequence[ClusterDifference]) -> list[str | None]:
    """Set the quotas; all of one entity are in one entry, since brokers refuse an entity twice in a request."""
    changes = [one.change or {} for one in some]
    entities = [QuotaEntity(one["entity"]) for one in changes]
    wanted: dict[QuotaEntity, dict[str, float]] = {}
    for entity, one in zip(entities, changes, strict=True):
        wanted.setdefault(entity, {})[one["key"]] = one["value"]
    errors = dict(zip(wanted, set_quotas(ends.flow.target, list(wanted.items())), strict=True))
    return [errors[entity] for entity in entities]


def _shown(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() else f"{value}"


KIND = Kind(
    name="quotas",
    about="quotas of users, client ids and addresses",
    left="quotas that only the target has, and those that were removed from the source: they may be others'",
    compare=_compare,
    apply=_apply,
    reads="DESCRIBE_CONFIGS",
    writes="ALTER_CONFIGS",
)
