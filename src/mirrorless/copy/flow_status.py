"""How a flow is at the moment, told from the topics alone, whoever copies it and wherever."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.compaction import policies
from mirrorless.clusters.identity import refuse_same
from mirrorless.clusters.target_state import TargetStates
from mirrorless.clusters.topics import high_watermarks, partition_counts
from mirrorless.copy.progress_topic import ProgressTopic
from mirrorless.metadata.kept_topics import progress_topic
from mirrorless.metadata.plan import replicated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.target_state import TargetState
    from mirrorless.clusters.topics import Place
    from mirrorless.copy.progress import Halt, Known
    from mirrorless.settings import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """A flow's target state, and how far the progress topic says that its partitions were copied.

    `lag_records` is in offsets of the source: markers, holes and what retention took are counted too. `begun` are the
    partitions with progress. `halted` are gaps that wait for a decision, by source topic and partition; a partition
    that halts for another reason is told by the copy only. `unknown` are partitions whose end the source did not tell.
    `problems` are lines on a progress topic that would lose its records.
    """

    state: TargetState
    topics: int
    partitions: int
    begun: int
    lag_records: int
    halted: Mapping[Place, Halt]
    unknown: Mapping[Place, str]
    problems: tuple[str, ...] = ()


def status_of(flow: Flow) -> FlowStatus:
    """Look at both ends; writes nothing. Raises `ClusterError`, or `SameClusterError` if there is only one."""
    source, target = Admin(flow.source), Admin(flow.target)
    at_source, at_target = source.metadata(), target.metadata()
    refuse_same(flow.name, str(at_source.cluster_id), str(at_target.cluster_id))
    counts = partition_counts(at_source)
    topics = list(replicated(flow, counts))
    places = [(topic, partition) for topic in topics for partition in range(counts[topic])]
    ends, unknown = high_watermarks(source, places)
    known = _known(flow, target) if flow.offset_storage_topic in partition_counts(at_target) else {}
    with closing(TargetStates(flow, admin=target)) as states:
        state = states.read()
    return FlowStatus(
        state=state,
        topics=len(topics),
        partitions=len(places),
        begun=sum(place in known and known[place].progress is not None for place in places),
        lag_records=sum(max(0, end - _next_offset(known.get(place))) for place, end in ends.items()),
        halted={place: halt for place in places if (halt := _halt(known.get(place))) is not None},
        unknown=unknown,
        problems=_problems(flow, target, partition_counts(at_target)),
    )


def _known(flow: Flow, target: Admin) -> dict[Place, Known]:
    with closing(ProgressTopic(flow, target)) as topic:
        return topic.read()


def _problems(flow: Flow, target: Admin, there: Mapping[str, int]) -> tuple[str, ...]:
    topic = progress_topic(flow)
    wrong = policies(target, [topic.name] if topic.name in there else []).wrong
    return tuple(f"topic {name} on {target.alias} has {topic.complaint(policy)}" for name, policy in wrong.items())


def _next_offset(known: Known | None) -> int:
    return 0 if known is None or known.progress is None else known.progress.last_offset + 1


def _halt(known: Known | None) -> Halt | None:
    """The gap at which a partition stands."""
    if known is None or known.halt is None:
        return None
    epochs = [*known.announced, -1 if known.progress is None or known.progress.epoch is None else known.progress.epoch]
    return known.halt if known.halt.stands(newest_epoch=max(epochs), progress=known.progress) else None
