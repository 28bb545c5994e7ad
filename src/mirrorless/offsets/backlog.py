"""Counts the records of the source that the target does not have yet, by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.clusters.topics import held_back, last_stable_offsets
from mirrorless.log_walk import Walk, Walker
from mirrorless.protocol.log_ends import lacking

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.translation_service import Translator
    from mirrorless.settings import Flow


class Backlog(NamedTuple):
    """Committed records of one source partition that were not copied yet.

    `exact` says whether they were counted, or are offsets, which include markers and gaps. `copied_to` is the upstream
    offset from which on nothing is known to be copied.
    """

    records: int
    exact: bool
    copied_to: int


def backlogs(
    flow: Flow,
    translator: Translator,
    *,
    source: Admin,
    places: Iterable[TopicPartition],
    deadline: float,
    up_to: Mapping[TopicPartition, int] | None = None,
) -> tuple[dict[TopicPartition, Backlog], list[str]]:
    """Count the records between the known end of the copy and the source's end; and why some are not counted.

    With `up_to` they are counted up to these offsets instead, before which no transaction is open.

    The translator was refreshed with these places. Walks end at the monotonic time `deadline`.
    """
    places = list(places)
    ends, missing = last_stable_offsets(source, places) if up_to is None else (dict(up_to), {})
    troubles = [f"{topic}-{partition}: {reason}" for (topic, partition), reason in missing.items()]
    for (topic, partition), offsets in (held_back(source, ends) if up_to is None else {}).items():
        troubles.append(
            f"{topic}-{partition}: a transaction is open at offset {ends[topic, partition]}; "
            f"the next {offsets} offsets are not copied, and not counted here"
        )
    short, unknown = translator.shortened(ends)
    troubles += [
        f"{topic}-{number}: the end of its copy is not known: {why}" for (topic, number), why in unknown.items()
    ]
    ends = {place: end for place, end in ends.items() if place not in unknown}
    for place, end in short.items():
        expected, remote = translator.progress[place].target_end, (translator.remote(place[0]), place[1])
        troubles.append(lacking(place, remote, end=end, expected=expected))
    reached = {place: _reached(translator, place, short.get(place)) for place in ends}
    walks = [
        Walk(place, translator.counter(place, reached[place][0], [end]))
        for place, end in ends.items()
        if end > reached[place][0]
    ]
    walker = Walker(flow.source)
    try:
        walker.walk(walks, deadline=deadline)
    finally:
        walker.close()
    counted = {walk.place: walk.counter.counts.get(ends[walk.place]) for walk in walks}
    found: dict[TopicPartition, Backlog] = {}
    for place, end in ends.items():
        copied_to, ahead, sure = reached[place]
        records = counted.get(place)
        most = max(0, end - copied_to) if records is None else records
        exact = end <= copied_to or (records is not None and sure)
        found[place] = Backlog(max(0, most - ahead), exact, copied_to)
    return found, troubles


def _reached(translator: Translator, place: TopicPartition, short: int | None) -> tuple[int, int, bool]:
    """Upstream offset up to which all was copied, records that the target has beyond, and whether both are certain.

    Records on the target beyond the last progress may be another writer's; nothing is known about MirrorMaker 2's. The
    log of the target ends at `short` if that is before the last progress: what follows is not copied.
    """
    if translator.why_not(place) is not None:
        return 0, 0, True  # the target has a copy of another topic
    known = translator.progress.get(place)
    if known is not None and known.progress is not None and known.progress.epoch is None:
        return 0 if short is not None else known.progress.last_offset + 1, 0, False
    line = translator.line(place)
    end = translator.target_ends.get(place, 0) if short is None else short
    if not line.runs:
        return 0, 0 if translator.shares_target else end, False
    run = line.runs[-1] if short is None else line.at_downstream(short)[0]
    if run is None:
        return 0, 0, False
    lost = 0 if short is None else max(0, run.end_downstream - short)
    beyond = max(0, end - run.end_downstream)
    shares = translator.shares_target
    sure = line.countable(run, None) and (not beyond or (shares and short is None))
    return run.end_upstream - lost, 0 if shares else beyond, sure
