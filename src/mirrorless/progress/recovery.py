"""Writes what a deleted progress topic contained into the recreated topic.

Without it every partition would halt, since its position is unknown; or begin from scratch, if the target's producer
state has expired too. What a process read last may be older than the copy is: progress may be so at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.errors import ClusterUnavailable
from mirrorless.metadata.actions import CreateTopic
from mirrorless.metadata.plan import plan_internal_topics
from mirrorless.metadata.topic_creation import create
from mirrorless.progress.records import Known, SourcePartition
from mirrorless.progress.writer import ProgressWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow

_FLUSH_S: Final = 15.0


def lacking(before: Known, now: Known | None) -> Known:
    """Return what was known `before` of a partition and is not `now`; newer records are unchanged."""
    now = now or Known()
    return Known(
        progress=before.progress if now.progress is None else None,
        announced={epoch: one for epoch, one in before.announced.items() if epoch not in now.announced},
        halt=before.halt if now.halt is None else None,
        claim=before.claim if now.claim is None else None,
    )


def create_again(flow: Flow, target: Admin) -> None:
    """Create the progress topic, like topic discovery; raises `ClusterUnavailable` if this fails."""
    name = flow.offset_storage_topic
    planned = plan_internal_topics(flow, source=(), target=())
    wanted = [one for one in planned if isinstance(one, CreateTopic) and one.topic == name]
    error, _ = create(target, wanted)[name]
    if error is not None:
        reason = f"topic {name} was deleted and cannot be recreated; nothing is copied without it: {error}"
        raise ClusterUnavailable(reason, cluster=flow.target.alias)


def write_again(flow: Flow, lost: Mapping[TopicPartition, Known]) -> str:
    """Write lost records into the progress topic, and return a line on it; raises `ClusterUnavailable`."""
    progress_writer = ProgressWriter(topic=flow.offset_storage_topic, cluster=flow.target)
    for (topic, partition), known in lost.items():
        where = SourcePartition(flow.progress_alias, topic, partition, flow.connector_name)
        for epoch, one in known.announced.items():
            progress_writer.write(where.announcement_key(epoch), one.to_bytes())
        if known.halt is not None:
            progress_writer.write(where.halt_key(), known.halt.to_bytes())
        if known.progress is not None:
            progress_writer.write(where.progress_key(), known.progress.to_bytes())
    if not progress_writer.flush(_FLUSH_S) or progress_writer.failures:
        reason = progress_writer.error or f"{flow.offset_storage_topic} does not accept the records that it lost"
        raise ClusterUnavailable(reason, cluster=flow.target.alias)
    return (
        f"topic {flow.offset_storage_topic} on {flow.target.alias} was deleted and recreated; "
        f"the progress of {len(lost)} partitions was written to it again"
    )
