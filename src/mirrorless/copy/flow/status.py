"""The status of a flow, from its topics alone, whichever process copies it."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirrorless.batches.header import SEQUENCES
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.compaction import policies
from mirrorless.clusters.identity import ends_of
from mirrorless.clusters.target_state import TargetStates
from mirrorless.clusters.topics import high_watermarks, partition_counts, topic_ids, undescribed
from mirrorless.metadata.plan import replicated
from mirrorless.metadata.recreated_topics import left_alone
from mirrorless.metadata.service_records import replicated_on
from mirrorless.metadata.state_topics import progress_topic
from mirrorless.modes import Modes
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.topic import ProgressTopic
from mirrorless.progress.topic_ids import created_again
from mirrorless.protocol.log_ends import lacking, short_logs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mirrorless.clusters.target_state import TargetState
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.engine_choice import EngineChoice
    from mirrorless.progress.records import Halt, Known
    from mirrorless.progress.run_marks import RunMark
    from mirrorless.settings import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """A flow's target state, and how far its partitions were copied according to the progress topic.

    `lag_records` is in offsets of the source: markers, gaps and deleted records are included. `begun` are the
    partitions with progress. `halted` has the offset and the reason of halted partitions, by source topic and
    partition: at gaps that need a decision, or for another reason. `unknown` are partitions whose end the source did
    not report. `created_again` are lines on remote topics that are not changed, since their source topic was recreated;
    `gone` are copied topics that no longer exist on the source, with their remote topics, while these exist.
    `lacking` are lines on remote partitions whose log ends before what was copied; what they lack counts as lag.
    `problems` are lines on a progress topic that would lose its records. `runs` are the marks of processes that copy or
    are ready to; `choice` is the supervisor's of an engine, None if there is none. `skipped_share` is the share of the
    source's offsets that the copy passed without a record to copy, None unless the flow skips copies
    (`mirrorless.both.directions=skip`): it includes markers and gaps.
    """

    state: TargetState
    topics: int
    partitions: int
    begun: int
    lag_records: int
    halted: Mapping[TopicPartition, Halt]
    unknown: Mapping[TopicPartition, str]
    created_again: tuple[str, ...] = ()
    gone: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    runs: tuple[RunMark, ...] = ()
    choice: EngineChoice | None = None
    skipped_share: float | None = None


def status_of(flow: Flow, *, deployment: str = "") -> FlowStatus:
    """Query both ends; writes nothing. `deployment` is as in `deployment_of`.

    Raises `ClusterError`, or `SameClusterError` if there is only one cluster.
    """
    source, target = Admin(flow.source), Admin(flow.target)
    at_source, at_target = source.metadata(), target.metadata()
    ends_of(flow, source=source, target=target, at_source=at_source, at_target=at_target)
    counts = partition_counts(at_source)
    topics = replicated_on(flow, source, counts)
    places = [(topic, partition) for topic in topics for partition in range(counts[topic])]
    ends, unknown = high_watermarks(source, places)
    remote_counts = partition_counts(at_target)
    known = _known(flow, target) if flow.offset_storage_topic in remote_counts else {}
    ids, _ = topic_ids(source, {topic for topic, _ in known if topic in topics})
    replaced = created_again(
        known, ids=ids, partitions={topic: counts[topic] for topic in topics}, alias=flow.source.alias
    )
    copied = {
        (place, (topics[place[0]], place[1])): known[place].target_end
        for place in places
        if place in known and place[0] not in replaced
    }
    short, missing = short_logs(flow.target, target, {remote: end for (_, remote), end in copied.items()})
    lost = {place: end - short[remote] for (place, remote), end in copied.items() if remote in short}
    with closing(TargetStates(flow, admin=target)) as states:
        state = states.read()
    runs, choice = _runs(flow, deployment) if flow.offset_storage_topic in remote_counts else ((), None)
    return FlowStatus(
        state=state,
        runs=runs,
        choice=choice,
        topics=len(topics),
        partitions=len(places),
        begun=sum(place in known and known[place].progress is not None for place in places),
        lag_records=sum(
            # Of a recreated topic nothing was copied.
            max(0, end - (0 if place[0] in replaced else _next_offset(known.get(place))) + lost.get(place, 0))
            for place, end in ends.items()
        ),
        halted={place: halt for place in places if place in known and (halt := known[place].shown_halt) is not None},
        unknown=unknown | {place: missing[remote] for place, remote in copied if remote in missing},
        lacking=tuple(
            lacking(place, remote, end=short[remote], expected=end)
            for (place, remote), end in copied.items()
            if remote in short
        ),
        problems=_problems(flow, target, partition_counts(at_target)),
        created_again=tuple(
            left_alone(flow.name, topic, topics[topic], reason) for topic, reason in sorted(replaced.items())
        ),
        gone=gone(flow, known, source={*counts, *undescribed(at_source)}, target=remote_counts),
        skipped_share=_skipped_share(known[place] for place in places if place in known)
        if Modes(flow).skips_copies
        else None,
    )


def _skipped_share(known: Iterable[Known]) -> float | None:
    """Compare the records copied in the current epochs with the offsets that these passed; None if they passed none."""
    passed = copied = 0
    for one in known:
        progress = one.progress
        if progress is None or progress.sequence is None or progress.epoch not in one.announced:
            continue
        offsets = progress.last_offset + 1 - one.announced[progress.epoch].start
        passed += offsets
        # Sequences wrap: of the possible numbers of records the largest.
        copied += progress.sequence + max(0, offsets - progress.sequence) // SEQUENCES * SEQUENCES
    return 1 - copied / passed if passed else None


def gone(
    flow: Flow, known: Iterable[TopicPartition], *, source: Collection[str], target: Collection[str]
) -> dict[str, str]:
    """Copied topics that `source` no longer has, with their remote topics, of those in `target`."""
    return {
        topic: remote
        for topic, remote in replicated(flow, {topic for topic, _ in known} - set(source)).items()
        if remote in target
    }


def line_on_gone(flow: Flow, topic: str, remote_topic: str) -> str:
    """Return the line that a copied topic is not on the source any more."""
    return (
        f"{topic} was copied but is no longer on {flow.source.alias}: the topic was deleted, or the user lost DESCRIBE "
        f"on it; {remote_topic} keeps the copied records, delete it if it is not needed"
    )


def _runs(flow: Flow, deployment: str) -> tuple[tuple[RunMark, ...], EngineChoice | None]:
    with closing(MarkReader(flow)) as reader:
        marks = reader.read()
        now_ms, now = int(time.time() * 1000), time.monotonic()
        valid = marks.valid(flow, now_ms=now_ms, now=now, deployment=deployment)
        # The configuration may be deployed from another place than the one that was given here.
        return tuple(valid), marks.chosen(flow, deployment) or marks.only_choice()


def _known(flow: Flow, target: Admin) -> dict[TopicPartition, Known]:
    with closing(ProgressTopic(flow, target)) as topic:
        return topic.read()


def _problems(flow: Flow, target: Admin, there: Mapping[str, int]) -> tuple[str, ...]:
    topic = progress_topic(flow)
    wrong = policies(target, [topic.name] if topic.name in there else []).wrong
    return tuple(f"topic {name} on {target.alias} has {topic.complaint(policy)}" for name, policy in wrong.items())


def _next_offset(known: Known | None) -> int:
    return 0 if known is None or known.progress is None else known.progress.last_offset + 1
