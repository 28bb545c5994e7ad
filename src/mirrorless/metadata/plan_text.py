"""Formats a plan as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from mirrorless.metadata.actions import (
    AddAcl,
    AlterConfigs,
    ClusterDifference,
    CreateTopic,
    ForgetAcl,
    GrowTopic,
    RemoveAcl,
    as_fields,
)

if TYPE_CHECKING:
    from mirrorless.metadata.actions import Action, ConfigDifference, Plan

_SHOWN: Final = 5


def lines(action: Action) -> list[str]:
    """Return the text of an action: one line, and one more for each config."""
    match action:
        case CreateTopic():
            configs = [f"    {name} = {value}" for name, value in sorted(action.config.items())]
            replicas = "default" if action.replication_factor == -1 else action.replication_factor
            partitions = f"{action.partitions} partition{'' if action.partitions == 1 else 's'}"
            what = f"create {action.topic}: {partitions}, replication factor {replicas}"
            return [f"{what} ({action.reason})", *configs]
        case GrowTopic():
            return [f"increase {action.topic} to {action.partitions} partitions ({action.reason})"]
        case AlterConfigs():
            return [f"alter {action.topic} ({action.reason})", *map(_difference, action.differences)]
        case AddAcl():
            return [f"add ACL: {action.acl} ({action.reason})"]
        case RemoveAcl():
            return [f"remove ACL: {action.acl} ({action.reason})"]
        case ForgetAcl():
            return [f"delete record of ACL: {action.acl} ({action.reason})"]
        case ClusterDifference():
            return [f"{action.text} ({action.reason})"]


def not_moved(plan: Plan) -> list[str]:
    """Return a line for each difference that the flow does not change; of many of one kind, the first and a count."""
    found: list[str] = []
    for kind in dict.fromkeys(one.kind for one in plan.not_moved):
        some = [one for one in plan.not_moved if one.kind == kind]
        found += [f"{kind}: {one.text} ({one.reason})" for one in some[:_SHOWN]]
        if len(some) > _SHOWN:
            found.append(f"{kind}: and {len(some) - _SHOWN:,} more; `mirrorless plan --json` prints all of them")
    return found


def as_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values."""
    return {
        "actions": [as_fields(action) for action in plan.actions],
        "left_out": [asdict(one) | {"kind": one.kind.value} for one in plan.left_out],
        "problems": [{"topic": one.topic, "reason": one.reason} for one in plan.problems],
        "notes": list(plan.notes),
        "warnings": list(plan.warnings),
        "not_moved": [asdict(one) for one in plan.not_moved],
    }


def _difference(one: ConfigDifference) -> str:
    if one.delete:
        return f"    delete {one.name} = {one.downstream} (default on the source: {one.upstream})"
    return f"    set {one.name} = {one.upstream} (now {one.downstream})"
