"""The seam of what a cluster has beside topics and groups: quotas, users, rights. A kind is one module of `kinds`.

A kind compares both clusters and, if it can be moved, changes the target. Plan, apply, verify, drill, doctor, the page
and the table of rights take all kinds from `kinds.KINDS`; none of them names one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.metadata.actions import ClusterDifference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.metadata.recreated_topics import Copied
    from mirrorless.settings import Flow

Found = list[ClusterDifference] | NotThere
SETTING: Final = "mirrorless.sync.kinds"
DELETES: Final = "mirrorless.sync.topic.deletes"


@dataclass(frozen=True, slots=True, kw_only=True)
class BothEnds:
    """What a kind compares: the two clusters of a flow, and the topics that it replicates with their remote topics.

    `source_topics` and `target_topics` are all visible topics. `copied` knows what the flow has copied; None where the
    progress topic is not read.
    """

    flow: Flow
    source: Admin
    target: Admin
    remote: Mapping[str, str]
    source_topics: frozenset[str] = frozenset()
    target_topics: frozenset[str] = frozenset()
    copied: Copied | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of what a cluster has; `name` is its name in `mirrorless.sync.kinds`, `about` says what it is.

    `deletes` says that it is synced by a setting of its own instead, `mirrorless.sync.topic.deletes`.

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
    deletes: bool = False

    def is_synced(self, flow: Flow) -> bool:
        """Whether the flow changes its target by it."""
        if self.apply is None:
            return False
        return flow.sync_topic_deletes if self.deletes else self.name in flow.sync_kinds

    @property
    def switch(self) -> str:
        """How the flow is set to sync it, in Markdown."""
        return f"with `{DELETES}=true`" if self.deletes else f"with `{self.name}` in `{SETTING}`"

    @property
    def why_not(self) -> str:
        """Why the flow does not sync it."""
        return f"{DELETES} is false" if self.deletes else f"{self.name} is not among {SETTING}"
