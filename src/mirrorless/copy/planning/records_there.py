"""Keeps a flow that skips copies from a first copy of what MirrorMaker 2 had copied to its source.

MirrorMaker 2's batches do not show where they come from, so they would be copied back (`mirrorless.loops=skip`).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.copy.progress.discovered_topics import starts_at_latest
from mirrorless.copy.progress.epoch_kind import EpochKind
from mirrorless.copy.progress.topic import ProgressTopic
from mirrorless.errors import ClusterError
from mirrorless.loops import skips_copies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.progress.records import Known
    from mirrorless.settings import Flow


def copied_by_mirrormaker2(
    flow: Flow, source: Admin, places: Iterable[TopicPartition], known: Mapping[TopicPartition, Known]
) -> set[TopicPartition]:
    """Return the partitions that begin now, from the first record, and have records that cannot be recognised.

    Raises `ClusterError` if the source does not answer, or hides the progress of flows to it.
    """
    if not skips_copies(flow) or starts_at_latest(flow):
        return set()
    first = {place for place in places if place not in known or not (known[place].progress or known[place].announced)}
    found: set[TopicPartition] = set()
    for other in flow.circle if first else ():
        if other.target.alias == flow.source.alias and skips_copies(other):
            with closing(ProgressTopic(other, source, must_exist=False)) as topic:
                theirs = topic.read()
                if topic.refused is not None:
                    reason = (
                        f"{topic.refused}; before its first copy {flow.name} looks there for what MirrorMaker 2 copied"
                    )
                    raise ClusterError(reason, cluster=flow.source.alias)
            found |= {place for place in first if place in theirs and _has_mirrormaker2(theirs[place])}
    return found


def _has_mirrormaker2(known: Known) -> bool:
    of_theirs = known.progress is not None and known.progress.epoch is None
    return of_theirs or any(one.kind is EpochKind.AFTER_MIRRORMAKER2 for one in known.announced.values())


def line_on_copies(flow: Flow, places: set[TopicPartition]) -> str:
    """Return why these partitions are not copied, and what to do."""
    topic, partition = min(places)
    return (
        f"{len(places)} partitions are not copied, among them {topic}-{partition}: MirrorMaker 2 copied records to "
        f"{flow.source.alias} that cannot be told from its own; start at its end: `mirrorless offsets reset FILE "
        f"--flow '{flow.name}' --topic {topic} --offset latest`"
    )
