"""Checks of a flow's end on MSK Serverless: what it lacks, and whether its compacted topics fit its quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.compaction import CLEANUP_POLICY, COMPACT
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.msk import COMPACTED_PARTITIONS, is_serverless
from mirrorless.doctor.findings import Finding, Status
from mirrorless.errors import ClusterError
from mirrorless.rights import On, Operation, Side, name_of, needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.rights import Function
    from mirrorless.settings import Flow

CHECK: Final = "MSK Serverless"
QUOTA: Final = "compacted partitions"
_INTERNAL: Final = (On.PROGRESS, On.OFFSET_SYNCS, On.CHECKPOINTS, On.HEARTBEATS, On.ACL_RECORD, On.DELETE_NOTES)
_LACKS: Final = (
    "no ACLs (acl_sync does nothing), logins by IAM only, few topic configs (others are not replicated), no trigger "
    "from another account"
)


def serverless(
    flow: Flow,
    side: Side,
    *,
    admin: Admin,
    counts: Mapping[str, int],
    remote: Mapping[str, int],
    functions: Iterable[Function] | None = None,
) -> list[Finding]:
    """Check one end; nothing for a cluster that is not MSK Serverless.

    `counts` are the partitions of its visible topics, `remote` those of compacted topics to be created.
    """
    cluster = flow.source if side is Side.SOURCE else flow.target
    if not is_serverless(cluster):
        return []
    found = [Finding(check=CHECK, status=Status.OK, text=_LACKS, cluster=cluster.alias)]
    internal = {
        name: flow.offset_storage_partitions if row.on is On.PROGRESS else 1
        for row in needed(flow, functions)
        if row.side is side
        and row.on in _INTERNAL
        and row.operation is not Operation.DESCRIBE
        and (name := str(name_of(flow, row.on)))
    }
    try:
        configs, refused = topic_configs(admin, counts)
    except ClusterError as error:
        return [*found, Finding(check=QUOTA, status=Status.NOT_CHECKED, text=str(error), cluster=cluster.alias)]
    there = {
        topic: counts[topic]
        for topic, one in configs.items()
        if CLEANUP_POLICY in one and COMPACT in (one[CLEANUP_POLICY].value or "")
    }
    internal = {name: there.pop(name, number) for name, number in internal.items()}
    new = {topic: number for topic, number in remote.items() if topic not in counts}
    return [*found, _quota(flow, cluster.alias, internal, there | new, len(refused))]


def _quota(flow: Flow, alias: str, internal: Mapping[str, int], others: Mapping[str, int], hidden: int) -> Finding:
    total = sum(internal.values()) + sum(others.values())
    parts = [f"{number} of {name}" for name, number in sorted(internal.items(), key=lambda one: -one[1])]
    if others:
        parts.append(f"{sum(others.values())} of {len(others)} other topic{'' if len(others) == 1 else 's'}")
    text = f"{total} of at most {COMPACTED_PARTITIONS}: {', '.join(parts) or 'none'}"
    if hidden:
        text += f"; {hidden} topics are not counted, since reading their configs failed"
    if total <= COMPACTED_PARTITIONS:
        return Finding(check=QUOTA, status=Status.OK, text=text, cluster=alias)
    progress = internal.get(flow.offset_storage_topic, 0)
    room = progress - (total - COMPACTED_PARTITIONS)
    fix = "exclude compacted topics with topics.exclude, or ask AWS to raise the quota"
    if 0 < room < progress:
        fix = f"set offset.storage.partitions to {room} or less before the progress topic is created, {fix}"
    return Finding(check=QUOTA, status=Status.FAILED, text=text, cluster=alias, fix=fix)
