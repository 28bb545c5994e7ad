"""The seam of what a cluster has beside topics and groups: quotas, users, rights. A kind is one module of `kinds`.

A kind compares both clusters and, if it can be moved, changes the target. Plan, apply, verify, drill, doctor, the page
and the table of rights take all kinds from `kinds.KINDS`; none of them names one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.metadata.actions import ClusterDifference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Flow

Found = list[ClusterDifference] | NotThere


@dataclass(frozen=True, slots=True, kw_only=True)
class BothEnds:
    """What a kind compares: the two clusters of a flow, and the topics that it replicates with their remote topics.

    `source_topics` and `target_topics` are all visible topics.
    """

    flow: Flow
    source: Admin
    target: Admin
    remote: Mapping[str, str]
    source_topics: frozenset[str] = frozenset()
    target_topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of what a cluster has; `name` is its name in `mirrorless.sync.kinds`, `about` says what it is.

    `left` says what of it is not moved, and why.

    `compare` reads both clusters and writes nothing; it raises `ClusterError`. `apply` changes the target and returns
    for each difference None, or an error; None if the kind cannot be moved. `reads` is the operation on the cluster
    that comparing needs on both ends, `writes` the one that applying needs on the target. `on_serverless` and
    `with_iam` say whether it exists on MSK Serverless, and concerns clients that log in with IAM.
    """

    name: str
    about: str
    left: str
    compare: Callable[[BothEnds], Found]
    apply: Callable[[BothEnds, Sequence[ClusterDifference]], list[str | None]] | None = None
    reads: str
    writes: str | None = None
    on_serverless: bool = False
    with_iam: bool = True
