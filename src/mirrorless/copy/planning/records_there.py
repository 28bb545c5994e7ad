"""What a first copy finds: records that came from its target, and records of others in the remote topics.

A topic that keeps its name may have been copied here from the target, by a flow of another file or by MirrorMaker 2.
A first copy would write those records a second time, so it does not begin by itself.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.clusters.topics import high_watermarks, log_starts
from mirrorless.errors import ClusterError
from mirrorless.modes import Modes
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.source_notes import starts_at_latest
from mirrorless.progress.topic import ProgressTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow


def begin_now(places: Iterable[TopicPartition], known: Mapping[TopicPartition, Known]) -> set[TopicPartition]:
    """Return the partitions without progress, whose copy was not announced either."""
    return {place for place in places if place not in known or not (known[place].progress or known[place].announced)}


def came_from_target(
    flow: Flow, source: Admin, places: Iterable[TopicPartition], known: Mapping[TopicPartition, Known]
) -> dict[TopicPartition, int]:
    """Return the partitions that begin now, from the first record, with records that came from the target.

    Each has how many these are at most, 0 where that is not known. A flow that skips copies recognises its own, but not
    those of MirrorMaker 2. Raises `ClusterError` if the source does not answer, or hides the progress of flows to it
    from a flow that skips copies.
    """
    decided = flow.start_timestamp_ms is not None or flow.start_group is not None
    modes = Modes(flow)
    if decided or not modes.keeps_names or starts_at_latest(flow):
        return {}
    first = begin_now(places, known)
    if not first:
        return {}
    if not modes.skips_copies:
        if modes.other_direction is not None:
            return {}  # the two take turns, or have no topic in common
        other = flow.model_copy(update={"source": flow.target, "target": flow.source})
        other = other.model_copy(update={"offset_storage_topic": f"mm2-offsets.{flow.target.alias}.internal"})
        theirs, _ = _progress_of(other, source)
        return {place: _copied(theirs[place]) for place in first if place in theirs and theirs[place].progress}
    found: dict[TopicPartition, int] = {}
    for other in flow.circle:
        if other.target.alias == flow.source.alias and Modes(other).skips_copies:
            theirs, refused = _progress_of(other, source)
            if refused is not None:
                reason = f"{refused}; before its first copy {flow.name} looks there for what MirrorMaker 2 copied"
                raise ClusterError(reason, cluster=flow.source.alias)
            found |= {place: 0 for place in first if place in theirs and _has_mirrormaker2(theirs[place])}
    return found


def _progress_of(flow: Flow, admin: Admin) -> tuple[dict[TopicPartition, Known], str | None]:
    """The progress of another flow on its target, and why it is not visible."""
    with closing(ProgressTopic(flow, admin, must_exist=False)) as topic:
        return topic.read(), topic.refused


def _copied(known: Known) -> int:
    return 0 if known.progress is None or known.progress.last_downstream is None else known.progress.last_downstream + 1


def _has_mirrormaker2(known: Known) -> bool:
    of_theirs = known.progress is not None and known.progress.epoch is None
    return of_theirs or any(one.kind is EpochKind.AFTER_MIRRORMAKER2 for one in known.announced.values())


def line_on_copies(flow: Flow, found: Mapping[TopicPartition, int]) -> str:
    """Return why these partitions are not copied, and what to do."""
    topic, partition = min(found)
    not_copied = f"{len(found)} partitions are not copied, among them {topic}-{partition}: "
    reset = f"`mirrorless offsets reset FILE --flow '{flow.name}' --topic {topic} --offset latest`"
    here, there = flow.source.alias, flow.target.alias
    if Modes(flow).skips_copies:
        return (
            f"{not_copied}MirrorMaker 2 copied records to {here} that cannot be told from its own; "
            f"start at its end: {reset}"
        )
    number = sum(found.values())
    records = f"up to {number:,} records" if number else "records"
    return (
        f"{not_copied}{records} of {here} came from {there} by a flow of another file and would be there twice; to "
        f"move back, put both flows into one file and use `mirrorless failback`; to copy both ways, set "
        f"mirrorless.both.directions=skip there; or choose where to start: {reset} (or an offset; `earliest` copies "
        "them again)"
    )


def records_of_others(
    flow: Flow,
    target: Admin,
    remote: Mapping[str, str],
    places: Iterable[TopicPartition],
    known: Mapping[TopicPartition, Known],
) -> str | None:
    """Return a line on records in remote partitions whose copy begins now; None if there are none.

    `remote` has the remote topic of each topic. Raises `ClusterError`.
    """
    if Modes(flow).skips_copies:
        return None  # it shares its topics with others
    there = [(remote[topic], partition) for topic, partition in begin_now(places, known)]
    ends, _ = high_watermarks(target, there)
    filled = [place for place in there if ends.get(place, 0) > 0]
    starts, _ = log_starts(target, filled)
    counts = {place: ends[place] - starts.get(place, 0) for place in filled}
    counts = {place: count for place, count in counts.items() if count > 0}
    if not counts:
        return None
    topic, partition = min(counts)
    return (
        f"{sum(counts.values()):,} records are already in {len(counts):,} partitions of {flow.target.alias} that "
        f"{flow.name} has not copied to yet, among them {topic}-{partition} with {counts[topic, partition]:,}: its "
        f"copies are appended to them, {_start_of(flow)}; if another tool has copied these records, set "
        "mirrorless.start.group to its consumer group, or `mirrorless offsets reset FILE --topic TOPIC --offset N`"
    )


def first_copy(
    flow: Flow,
    *,
    source: Admin,
    target: Admin,
    remote: Mapping[str, str],
    counts: Mapping[str, int],
    known: Mapping[TopicPartition, Known],
) -> tuple[str | None, str | None]:
    """Return the line on partitions that are not copied as their records came from the target, and that on others.

    `counts` are the partitions of the topics that the flow replicates, as far as the target has them. Raises
    `ClusterError`.
    """
    places = [(topic, number) for topic, count in counts.items() for number in range(count)]
    came = came_from_target(flow, source, places, known)
    others = records_of_others(flow, target, remote, [place for place in places if place not in came], known)
    return line_on_copies(flow, came) if came else None, others


def _start_of(flow: Flow) -> str:
    if flow.start_timestamp_ms is not None:
        return "from mirrorless.start.timestamp on"
    if flow.start_group is not None:
        return f"from the offsets of group {flow.start_group} on"
    return "from the end of the source's log on" if starts_at_latest(flow) else "from the first record on"
