"""Says once of each cluster which rights and limits of applications do not exist there, or do not concern them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.msk import is_serverless
from mirrorless.clusters.security import logs_in_with_iam
from mirrorless.doctor.findings import Finding, Status
from mirrorless.metadata.kind import SETTING
from mirrorless.metadata.kinds import KINDS

if TYPE_CHECKING:
    from mirrorless.rights import Side
    from mirrorless.settings import Flow

CHECK: Final = "rights and limits"


def absent_kinds(flow: Flow, side: Side) -> list[Finding]:
    """Check one end; nothing for a cluster that has every kind."""
    cluster = flow.source if side == "source" else flow.target
    if is_serverless(cluster):
        absent, why = [one.name for one in KINDS if not one.on_serverless], "MSK Serverless does not have"
    elif logs_in_with_iam(cluster):
        absent, why = [one.name for one in KINDS if not one.with_iam], "clients that log in with IAM are not bound by"
    else:
        return []
    text = f"{why} {', '.join(absent)}; their rights are in IAM policies, which are not moved"
    synced = [name for name in absent if name in flow.sync_kinds]
    if not synced:
        return [Finding(check=CHECK, status=Status.OK, text=text, cluster=cluster.alias)]
    fix = f"remove {', '.join(synced)} from {SETTING}"
    return [Finding(check=CHECK, status=Status.WARNING, text=text, cluster=cluster.alias, fix=fix)]
