"""A client for consumers that move to another cluster: which clusters are upstream, and translated offsets.

The counterpart of Java's `MirrorClient` and `RemoteClusterUtils`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.replay import Replay
from mirrorless.clusters.topics import partition_counts
from mirrorless.formats import Checkpoint, Malformed
from mirrorless.policy import DefaultReplicationPolicy

if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from types import TracebackType

    from mirrorless.policy import ReplicationPolicy
    from mirrorless.settings import Cluster

__all__ = ["NOT_REACHABLE", "MirrorClient"]

NOT_REACHABLE = -1


class MirrorClient:
    """Queries one cluster, normally the one to fail over to. `policy` is that of the flows; nothing is cached.

    Every method that connects raises `ClusterError` or `ClusterUnavailable`.
    """

    def __init__(self, cluster: Cluster, *, policy: ReplicationPolicy | None = None) -> None:
        self.replication_policy: ReplicationPolicy = policy or DefaultReplicationPolicy()
        self._cluster = cluster
        self._admin = Admin(cluster)
        self.malformed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """No connection stays open between calls."""

    def replication_hops(self, upstream_alias: str) -> int:
        """Minimum number of hops from the upstream cluster to this one, `NOT_REACHABLE` if there is no path."""
        hops = [self._hops(topic, upstream_alias) for topic in self.heartbeat_topics()]
        return min((one for one in hops if one != NOT_REACHABLE), default=NOT_REACHABLE)

    def upstream_clusters(self) -> set[str]:
        """Aliases of all clusters upstream of this one, directly or not."""
        return {alias for topic in self.heartbeat_topics() for alias in self._sources(topic)}

    def heartbeat_topics(self) -> set[str]:
        """Heartbeats topics on this cluster, its own and replicated ones."""
        return {topic for topic in self._topics() if self.replication_policy.is_heartbeats_topic(topic)}

    def checkpoint_topics(self) -> set[str]:
        """Checkpoints topics on this cluster, one per source cluster."""
        return {topic for topic in self._topics() if self.replication_policy.is_checkpoints_topic(topic)}

    def remote_topics(self, source_alias: str | None = None) -> set[str]:
        """Topics that were replicated to this cluster, from one source or from any."""
        return {
            topic
            for topic in self._topics()
            if not self.replication_policy.is_internal_topic(topic)
            and (source := self.replication_policy.topic_source(topic)) is not None
            and source_alias in (None, source)
        }

    def translate_offsets(self, remote_alias: str, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        """Where a group of the remote cluster continues here: by topic and partition the offset and its metadata.

        Empty for a group without checkpoints.
        """
        return self._offsets(remote_alias, lambda name: name == group).get(group, {})

    def translate_offsets_of(
        self, remote_alias: str, groups: re.Pattern[str]
    ) -> dict[str, dict[tuple[str, int], tuple[int, str]]]:
        """Do the same for every group whose whole name matches the pattern, with one read (KIP-1239)."""
        return self._offsets(remote_alias, lambda name: groups.fullmatch(name) is not None)

    def checkpoints(self, remote_alias: str) -> dict[tuple[str, str, int], Checkpoint]:
        """The last checkpoint of every group, remote topic and partition; `malformed` counts skipped records."""
        topic = self.replication_policy.checkpoints_topic(remote_alias)
        replay = Replay(topic=topic, cluster=self._cluster, admin=self._admin)
        found: dict[tuple[str, str, int], Checkpoint] = {}
        self.malformed = 0
        try:
            for entry in replay.read():
                checkpoint = Checkpoint.parse(entry.key, entry.value)
                if isinstance(checkpoint, Malformed):
                    self.malformed += 1
                else:
                    found[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint
        finally:
            replay.close()
        return found

    def _offsets(
        self, remote_alias: str, wanted: Callable[[str], bool]
    ) -> dict[str, dict[tuple[str, int], tuple[int, str]]]:
        offsets: dict[str, dict[tuple[str, int], tuple[int, str]]] = {}
        for (group, topic, partition), one in self.checkpoints(remote_alias).items():
            if wanted(group):
                offsets.setdefault(group, {})[topic, partition] = (one.downstream, one.metadata)
        return offsets

    def _topics(self) -> set[str]:
        return set(partition_counts(self._admin.metadata()))

    def _sources(self, topic: str) -> list[str]:
        """Aliases of the hops of a topic, the nearest first; ends where an alias repeats."""
        sources: list[str] = []
        while (source := self.replication_policy.topic_source(topic)) is not None and source not in sources:
            sources.append(source)
            upstream = self.replication_policy.upstream_topic(topic)
            if upstream is None:
                break
            topic = upstream
        return sources

    def _hops(self, topic: str, alias: str) -> int:
        sources = self._sources(topic)
        return sources.index(alias) + 1 if alias in sources else NOT_REACHABLE
