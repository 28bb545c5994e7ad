"""Everything that the checks of a drill judge, as read from both clusters. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.acls import Acl, NoAcls
    from mirrorless.clusters.groups import GroupListing
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.api import FlowStatus
    from mirrorless.offsets.failover_plan import FailoverPlan
    from mirrorless.operations.drill.positions import Compared
    from mirrorless.operations.results import MeasuredStep, UnreadPart
    from mirrorless.settings import Flow
    from mirrorless.verify.metadata_diff import Metadata


class NotCopied(NamedTuple):
    """The backlog of one partition: `oldest_ms` is the timestamp of its first record, None if there is none."""

    records: int
    exact: bool
    oldest_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogFacts:
    """The backlogs of all replicated partitions at `read_ms`, ms since 1970; heartbeats are left out."""

    partitions: Mapping[TopicPartition, NotCopied]
    read_ms: int
    troubles: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """Records of all partitions; the target would lose them now."""
        return sum(one.records for one in self.partitions.values())

    @property
    def exact(self) -> bool:
        """Whether all were counted."""
        return all(one.exact for one in self.partitions.values())

    @property
    def worst(self) -> tuple[TopicPartition, float] | None:
        """The partition with the oldest record that is not copied, and its age in seconds; None if all is copied."""
        oldest = {place: one.oldest_ms for place, one in self.partitions.items() if one.oldest_ms is not None}
        if not oldest:
            return None
        place, oldest_ms = min(oldest.items(), key=lambda item: (item[1], item[0]))
        return place, max(0.0, (self.read_ms - oldest_ms) / 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """The groups of both clusters. `active_on_target` are the flow's groups that may have members there.

    `listed` are all groups of the source. `unselected` are groups with offsets on replicated topics that the flow's
    settings exclude.
    """

    active_on_target: frozenset[str] = frozenset()
    listed: tuple[GroupListing, ...] = ()
    unselected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFacts:
    """ACLs of topics on both clusters; and of groups and transactional ids, those of source and target."""

    source: frozenset[Acl] | NoAcls
    target: frozenset[Acl] | NoAcls
    groups: tuple[frozenset[Acl], frozenset[Acl]] = (frozenset(), frozenset())
    transactional_ids: tuple[frozenset[Acl], frozenset[Acl]] = (frozenset(), frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFacts:
    """Compared positions of groups and windows of records; `..._of` is how many there were before sampling.

    `is_own_order`: each cluster has an order of its own, so nothing was compared.
    """

    positions: tuple[Compared, ...] = ()
    positions_of: int = 0
    windows: tuple[Compared, ...] = ()
    partitions: int = 0
    partitions_of: int = 0
    troubles: tuple[str, ...] = ()
    is_own_order: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillFacts:
    """The facts of one flow; a part that could not be read is `UnreadPart`. Times are ms since 1970.

    `counts` are the partitions of each replicated topic on the source and of its remote topic, None if it does not
    exist. `heartbeat_ms` is the timestamp of the newest replicated heartbeat, None if there is none.
    """

    flow: Flow
    remote: Mapping[str, str]
    counts: Mapping[str, tuple[int, int | None]]
    plan: FailoverPlan
    status: FlowStatus | UnreadPart
    heartbeat_ms: int | UnreadPart | None
    heartbeat_read_ms: int
    backlog: BacklogFacts | UnreadPart
    metadata: Metadata | UnreadPart
    acls: AclFacts | UnreadPart
    groups: GroupFacts | UnreadPart
    records: RecordFacts | UnreadPart
    steps: tuple[MeasuredStep, ...]
