"""Finds the clusters whose records a flow skips, with `mirrorless.both.directions=skip`, topic by topic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.identity import id_of
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.loops import Loops
from mirrorless.progress.source_notes import origin
from mirrorless.progress.writer import ProgressWriter

if TYPE_CHECKING:
    from mirrorless.progress.topic import ProgressTopic
    from mirrorless.settings import Cluster, Flow

_FLUSH_S: Final = 30.0
_AGAIN_S: Final = 600.0


class SkippedOrigins:
    """The ids for one flow, whose target has the cluster id `target_id`; `progress` was read.

    Each other cluster is asked for its id once; one that does not answer has the id that it had before. New ids are
    written to the progress topic if `stores`.
    """

    def __init__(self, flow: Flow, *, target_id: str, progress: ProgressTopic, stores: bool = True) -> None:
        self.flow = flow
        self.target_id = target_id
        self._asked_at = time.monotonic()
        self._stores = stores
        self._loops = Loops(flow)
        self._progress = progress
        self._ids: dict[str, list[str]] = {flow.target.alias: [target_id]}

    def is_old(self, flow: Flow, target_id: str) -> bool:
        """Whether clusters have to be asked again: another may have taken the place of one."""
        return (self.flow, self.target_id) != (flow, target_id) or time.monotonic() - self._asked_at > _AGAIN_S

    def of(self, topic: str) -> str | None:
        """Return the ids as a lease's row has them; None if the flow skips no copies in the topic.

        Raises `ClusterUnavailable` if a cluster's id is needed, does not answer, and never did.
        """
        return ",".join(one for cluster in self._loops.skipped(topic) for one in self._ids_of(cluster)) or None

    def _ids_of(self, cluster: Cluster) -> list[str]:
        known = self._ids.get(cluster.alias)
        if known is None:
            known = self._ids[cluster.alias] = self._asked(cluster)
        return known

    def _asked(self, cluster: Cluster) -> list[str]:
        stored = self._progress.notes.ids.get(cluster.alias, [])
        if cluster.cluster_id is not None:
            return [*stored, cluster.cluster_id]
        try:
            found = id_of(cluster, Admin(cluster).metadata().cluster_id)
        except ClusterError as error:
            if stored:
                return stored
            raise ClusterUnavailable(
                f"its id is not known, by which {self.flow.name} recognises its records, and it does not answer "
                f"({error}); start it, or set {cluster.alias}.mirrorless.cluster.id to its id",
                cluster=cluster.alias,
            ) from error
        if found in stored:
            return stored
        if not self._stores:
            return [*stored, found]
        writer = ProgressWriter(topic=self.flow.offset_storage_topic, cluster=self.flow.target)
        writer.write(*origin(self.flow.source.alias, cluster.alias, [*stored, found]))
        if not writer.flush(_FLUSH_S) or writer.failures:
            reason = writer.error or f"{self.flow.offset_storage_topic} does not take the id of {cluster.alias}"
            raise ClusterError(reason, cluster=self.flow.target.alias)
        return [*stored, found]
