"""The stranded tail of flows that take turns: what the old cluster has after the last record that was replicated.

It stays in the old log, in front of what the opposite flow copies there. What is to become of it is the operator's
decision: `topic` copies it to the live cluster, `leave` does not, `reset` empties the old topics first. With identical
offsets the live cluster has other records at the tail's offsets: `topic` empties the old topics too, and nothing can be
left.
"""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mirrorless.batches.record_counter import RecordCounter
from mirrorless.clusters.consumers import records_in
from mirrorless.clusters.topics import (
    high_watermarks,
    last_stable_offsets,
    log_starts,
    partition_counts,
    topic_ids,
)
from mirrorless.copy.api import copy_once
from mirrorless.log_walk import Walk, Walker
from mirrorless.metadata.plan import replicated
from mirrorless.modes import Modes
from mirrorless.offsets.backlog import backlogs
from mirrorless.offsets.inverse_translation import InverseTranslator
from mirrorless.offsets.translation import Translated
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations.drill.records import Wanted, read_slices
from mirrorless.operations.producers import active_producers
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import StepFailed, places_of
from mirrorless.operations.steps.stranded_topics import copy_tails, empty_topics, ends_of_tails
from mirrorless.operations.turns import newest_epochs, next_starts, start_turn
from mirrorless.policy import policy_for
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.topic import ProgressTopic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.operation_log.records import OperationState
    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.operations.turns import Ends

LIST: Final = "list"
TOPIC: Final = "topic"
LEAVE: Final = "leave"
RESET: Final = "reset"
SAID: Final = {
    TOPIC: "copied to *.stranded on the live cluster",
    LEAVE: "left in the old log",
    RESET: "the old topics are emptied, and copied from the live cluster",
}
"""What was done with a tail, in the step's result."""
_WALKING_S: Final = 60.0
_PATIENCE_S: Final = 5.0
_ACTIVE_S: Final = 10.0
"""How long nothing may be written to the old cluster before its tail is copied or emptied."""
_LAST: Final = 5


def plan_tail(context: OperationContext) -> dict[str, Any]:
    """Find the tail of each partition: `partitions` has topic, partition, records, first offset, end, and timestamps.

    `starts` is where the flow to the old cluster begins on the live one, `epochs` what it had before, both by the names
    of the live cluster; `again` are topics that an earlier attempt has emptied, where it continues. Raises
    `StepFailed` without a failover, or while producers write to the old cluster.
    """
    failover = _failover(context)
    modes, name = Modes(context.forward), Modes(context.forward).name_there
    live = next_starts(failover)
    there = partition_counts(context.target.metadata())
    if gone := sorted(name(topic) for topic in live if name(topic) not in there):
        context.warnings += [f"{topic} is not on {context.forward.target.alias} any more" for topic in gone]
        live = {topic: offsets for topic, offsets in live.items() if name(topic) in there}
    starts = {name(topic): offsets for topic, offsets in live.items()}
    ends = {name(topic): failover.data("open")["ends"][topic] for topic in live}
    _warn_of_others(context, starts)
    counts = {topic: len(some) for topic, some in starts.items()}
    places = places_of(counts)
    epochs = _epochs_before(context, failover, live)
    before = {name(topic): some for topic, some in epochs.items()}
    log_ends, _ = high_watermarks(context.target, places)
    tails, again = _tails(context, ends, places, before)
    if context.request.stranded != LIST:
        with_tail = {place for place, (first, end) in tails.items() if end > first}
        _refuse_writers(context, {place: end for place, end in log_ends.items() if place in with_tail})
    records = _counted(context, tails)
    exact = {name(topic) for topic in modes.keeps_offsets_in_turns(live)} - set(again)
    in_exact = [place for place in places if place[0] in exact]
    _refuse_open_transactions(context, in_exact)
    beyond = {place for place in in_exact if tails[place][1] > starts[place[0]][place[1]]}
    found = sorted({place for place, number in records.items() if number} | beyond)
    times = _timestamps(context, {place: tails[place] for place in found})
    how = context.request.stranded
    named = sorted({topic for topic, _ in found})
    emptied = [topic for topic in named if how == RESET or (how == TOPIC and topic in exact)]
    if how == LEAVE and (kept := exact.intersection(named)):
        raise StepFailed("with identical offsets no tail can stay: use --stranded topic or reset", sorted(kept))
    ids, _ = topic_ids(context.target, emptied)
    if how == TOPIC:
        _refuse_never_copied(context, places_of({topic: counts[topic] for topic in emptied}))
    # An attempt before this one may have begun a turn in what is emptied now.
    epochs |= newest_epochs(context.forward, {topic: live[topic] for topic in live if name(topic) in emptied})
    return {
        "how": how,
        "starts": live,
        "epochs": epochs,
        "again": again,
        "partitions": [[*place, records.get(place, 0), *tails[place], *times[place]] for place in found],
        "ends": ends_of_tails(context, {topic: counts[topic] for topic in named}) if how == TOPIC else {},
        "ids": {topic: ids.get(topic, "") for topic in emptied},
    }


def settle_tail(context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
    """Do with the tail as was asked for, start the flow to the old cluster, and wait until it has caught up."""
    how, partitions = planned["how"], planned["partitions"]
    if partitions and how == LIST:
        raise StepFailed(
            f"{count_of(sum(one[2] for one in partitions), 'record')} of {context.forward.target.alias} were never "
            "replicated: choose --stranded topic, leave or reset",
            [tail_text(one) for one in partitions],
        )
    if how == TOPIC:
        copy_tails(context, partitions, planned["ends"])
    empty_topics(context, planned["ids"], _counts_there(context, planned))
    context.check()
    name_there = Modes(context.forward).name_there
    emptied = {topic for topic in planned["starts"] if name_there(topic) in {*planned["ids"], *planned["again"]}}
    counts = {topic: len(offsets) for topic, offsets in planned["starts"].items()}
    starts = {topic: [0] * counts[topic] if topic in emptied else some for topic, some in planned["starts"].items()}
    left_out = start_turn(context.forward, starts, planned["epochs"], by=context.writer, emptied=emptied)
    context.warnings += [f"{topic} is not on both clusters, and is left out" for topic in left_out]
    counts = {topic: count for topic, count in counts.items() if topic not in left_out}
    _catch_up(context, places_of(counts))
    return planned


def tail_text(one: list[Any]) -> str:
    """Return the tail of a partition in one line."""
    topic, partition, records, first, end, first_ms, last_ms = one
    times = f", {_time(first_ms)} to {_time(last_ms)}" if first_ms >= 0 else ""
    return f"{topic}-{partition}: {count_of(records, 'record')}, offsets {first} to {end - 1}{times}"


def undo_emptied(context: OperationContext, planned: dict[str, Any]) -> None:
    """Create topics again that were deleted to be emptied; their records are gone, as was asked for."""
    if planned["ids"]:
        for topic in empty_topics(context, planned["ids"], _counts_there(context, planned), deletes=False):
            context.warnings.append(f"{topic} stays emptied on {context.forward.target.alias}")


def _counts_there(context: OperationContext, planned: dict[str, Any]) -> dict[str, int]:
    """The partitions of the topics, by the names that they have on the old cluster."""
    name_there = Modes(context.forward).name_there
    return {name_there(topic): len(offsets) for topic, offsets in planned["starts"].items()}


def _failover(context: OperationContext) -> OperationState:
    """The failover by which applications came to the live cluster: the last operation that completed."""
    live, old = context.forward.source.alias, context.forward.target.alias
    last = context.earlier.last_completed(context.request.pair)
    if last is None or last.request.kind is not OperationKind.FAILOVER or last.request.target != live:
        raise StepFailed(
            f"the last operation is no failover from {old} to {live}: use `mirrorless switchover`, which loses nothing"
        )
    return last


def _epochs_before(context: OperationContext, failover: OperationState, starts: Ends) -> Ends:
    """The newest epochs of the flow to the old cluster before the first attempt to return after the failover."""
    for one in context.earlier.of(context.request.pair):
        step = one.steps.get("stranded")
        if one.number > failover.number and step is not None and one.id != context.operation.id:
            first: Ends = step.data["epochs"]
            return {topic: first.get(topic, [-1] * len(offsets)) for topic, offsets in starts.items()}
    return newest_epochs(context.forward, starts)


def _warn_of_others(context: OperationContext, starts: Ends) -> None:
    """Warn of records in partitions that were never copied: the flow copies them when applications are back."""
    assert context.reverse is not None
    policy = policy_for(context.reverse)
    there = partition_counts(context.target.metadata())
    more = [
        (topic, number)
        for topic in replicated(context.reverse, there)
        if not policy.is_heartbeats_topic(topic)
        for number in range(len(starts.get(topic, ())), there[topic])
    ]
    ends, _ = high_watermarks(context.target, more)
    begins, _ = log_starts(context.target, more)
    context.warnings += [
        f"{topic}-{number} was never copied: {context.reverse.name} copies its records when applications are back"
        for (topic, number), end in ends.items()
        if end > begins.get((topic, number), 0)
    ]


def _tails(
    context: OperationContext, ends_of_copies: Ends, places: list[TopicPartition], before: Ends
) -> tuple[dict[TopicPartition, tuple[int, int]], list[str]]:
    """The first offset and the end of each tail on the old cluster; and topics there that were emptied since."""
    assert context.reverse is not None
    ends, missing = last_stable_offsets(context.target, places)
    begins, no_begin = log_starts(context.target, places)
    for (topic, partition), reason in (missing | no_begin).items():
        raise StepFailed(f"the offsets of {topic}-{partition} are not known: {reason}")
    with closing(ProgressTopic(context.forward, context.target, must_exist=False)) as progress:
        known = progress.read()
    found: dict[TopicPartition, tuple[int, int]] = {}
    again: set[str] = set()
    name_here = Modes(context.forward).name_here
    with closing(InverseTranslator(context.reverse, source=context.target, target=context.source)) as inverse:
        inverse.refresh(places)
        wanted = {(topic, partition): [ends_of_copies[topic][partition]] for topic, partition in places}
        answers = inverse.translate(wanted, deadline=time.monotonic() + _WALKING_S)
        again |= {place[0] for place in places if inverse.translator.why_not(place) is not None}
    for place in places:
        answer = answers[place][wanted[place][0]]
        first = max(begins[place], answer.downstream if isinstance(answer, Translated) else 0)
        # What the flow to the old cluster has appended since, before an attempt was aborted, is no tail.
        one = known.get((name_here(place[0]) or place[0], place[1]))
        newest = before[place[0]][place[1]]
        epochs = one.announced.items() if one else ()
        since = [each.downstream for number, each in epochs if number > newest and each.kind is not EpochKind.TURN]
        found[place] = (first, first if place[0] in again else max(first, min([ends[place], *since])))
    return found, sorted(again)


def _refuse_writers(context: OperationContext, ends: Mapping[TopicPartition, int]) -> None:
    """Raise `StepFailed` if records are written to the old cluster after these ends, within some seconds from now on.

    The timestamps of records, as producers' states have them, are by the clocks of other machines.
    """
    if not ends:
        return
    old = context.forward.target
    until = time.monotonic() + _ACTIVE_S
    while context.wait(until):
        pass
    now, _ = high_watermarks(context.target, ends)
    spans = {place: (ends[place], end) for place, end in now.items() if end > ends[place]}
    written = records_in(old, spans) if spans else {}
    if written:
        producers = active_producers(old, context.target.metadata(), written)
        lines = [f"{topic}-{number}: {count_of(records, 'record')}" for (topic, number), records in written.items()]
        raise StepFailed(f"producers write to {old.alias}: stop them", [*lines, *(one.text for one in producers)])


def _refuse_never_copied(context: OperationContext, places: Sequence[TopicPartition]) -> None:
    """Raise `StepFailed` for records before the first that was ever copied: they would be deleted with the topic."""
    assert context.reverse is not None
    with closing(ProgressTopic(context.reverse, context.source, must_exist=False)) as progress:
        known = progress.read()
    begins, _ = log_starts(context.target, places)
    firsts = {place: one.announced[min(one.announced)] for place, one in known.items() if one.announced}
    firsts = {place: one for place, one in firsts.items() if one.kind is not EpochKind.TURN}
    wanted = [Wanted(place, begin, 1) for place, begin in begins.items() if place in firsts]
    slices = read_slices(context.forward.target, context.target, wanted)
    lost = [
        f"{one.place[0]}-{one.place[1]}: from offset {record.offset} to {firsts[one.place].start - 1}"
        for one, some in slices.items()
        for record in some.records
        if record.offset < firsts[one.place].start
    ]
    if lost:
        old = context.forward.target.alias
        raise StepFailed(
            f"records on {old} that were never to be copied would be deleted with its topics; if they may be, use "
            "--stranded reset",
            lost,
        )


def _refuse_open_transactions(context: OperationContext, places: Sequence[TopicPartition]) -> None:
    """Raise `StepFailed` while one is open on the old cluster: its records would be at offsets that are reserved."""
    ends, _ = high_watermarks(context.target, places)
    stable, _ = last_stable_offsets(context.target, places)
    if open_in := [f"{topic}-{number}" for (topic, number), end in stable.items() if end < ends[topic, number]]:
        raise StepFailed(f"transactions are still open on {context.forward.target.alias}; try again", open_in)


def _counted(context: OperationContext, tails: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
    walks = [Walk(place, RecordCounter(first, [end])) for place, (first, end) in tails.items() if end > first]
    with closing(Walker(context.forward.target)) as walker:
        walker.walk(walks, deadline=time.monotonic() + _WALKING_S)
    for walk in walks:
        if walk.counter.until[0] not in walk.counter.counts:
            raise StepFailed(f"the tail of {walk.place[0]}-{walk.place[1]} cannot be counted: {walk.trouble}")
    return {walk.place: walk.counter.counts[walk.counter.until[0]] for walk in walks}


def _timestamps(
    context: OperationContext, tails: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, tuple[int, int]]:
    """The timestamps of the first and the last record, ms since 1970; -1 without one."""
    firsts = {place: Wanted(place, first, 1) for place, (first, _) in tails.items()}
    lasts = {place: Wanted(place, max(first, end - _LAST), _LAST) for place, (first, end) in tails.items()}
    slices = read_slices(context.forward.target, context.target, [*firsts.values(), *lasts.values()])

    def of(wanted: Wanted, end: int, which: int) -> int:
        some = [one.timestamp for one in slices[wanted].records if one.offset < end]
        return some[which] if some else -1

    return {place: (of(firsts[place], end, 0), of(lasts[place], end, -1)) for place, (_, end) in tails.items()}


def _catch_up(context: OperationContext, places: list[TopicPartition]) -> None:
    """Wait until the old cluster has what the live one had when this began; copies here if nothing else does."""
    flow = context.forward
    ends, _ = last_stable_offsets(context.source, places)
    best, since, started = -1, time.monotonic(), time.monotonic()
    with closing(translator_of(flow, source=context.source, target=context.target)) as translator:
        while True:
            translator.refresh(places)
            left, troubles = backlogs(
                flow,
                translator,
                source=context.source,
                places=places,
                deadline=time.monotonic() + _WALKING_S,
                up_to=ends,
            )
            if all(one.copied_to >= ends[place] or not one.records for place, one in left.items()):
                return
            reached = sum(one.copied_to for one in left.values())
            if reached > best:
                best, since = reached, time.monotonic()
            elif time.monotonic() - since > _PATIENCE_S and time.monotonic() - started > _PATIENCE_S:
                context.say(f"nothing copies {flow.name}; this process copies")
                context.check()
                copy_once(context.settings, flow)
                started = time.monotonic()
            if time.monotonic() - since > max(_WALKING_S, context.request.drain_timeout_s):
                raise StepFailed(f"{flow.name} makes no progress", troubles)
            context.wait(time.monotonic() + 1)


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
