"""Removes the fences that completed operations left, and starts the flow that waited for it."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mirrorless import client_logs
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.consumers import records_in
from mirrorless.clusters.target_state import OperationWriter, TargetState, states_in_turns
from mirrorless.clusters.topics import high_watermarks, last_stable_offsets
from mirrorless.errors import ClusterError, ClusterUnavailable, OperationError
from mirrorless.metadata.fences import unexplained_fences
from mirrorless.operation_log import records
from mirrorless.operations.cluster_pair import ClusterPair, refuse_open
from mirrorless.operations.fences import BLOCKS_FLOWS, fence_of, settle
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.clients import CLOSE
from mirrorless.operations.turns import newest_epochs, next_starts, start_paused, start_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.operation_log.records import OperationState
    from mirrorless.settings import Flow, Settings

_GONE_S: Final = 30.0
_LOOK_S: Final = 0.2
_CLOSING: Final = 1 << 30


def close_fence(settings: Settings) -> list[str]:
    """Remove the fences that completed operations left, without moving anything; returns a line for each.

    Of flows that take turns the opposite one begins now, unless the live cluster does not answer; lines say which one
    copies from now on, and name fences that no operation explains. Raises `OperationError` if an operation is open, or
    none of two flows that take turns copies; `ClusterUnavailable` if a cluster with a fence does not answer.
    """
    client_logs.set_up()
    lines: list[str] = []
    done: set[str] = set()
    for flow in settings.flows:
        pair = ClusterPair.of(settings, flow)
        with closing(pair):
            operations, failures = pair.read()
            refuse_open(operations, pair)
            for one in operations.fences_on(flow.source.alias):
                # Another process may have removed it since, which the logs show as soon as they are read again.
                fence = one.standing_fence
                if not fence or one.id in done or one.request.target != flow.target.alias:
                    continue
                if flow.source.alias in failures:
                    raise ClusterUnavailable(failures[flow.source.alias], cluster=flow.source.alias)
                lines += _close(pair, one, fence, is_last=one is operations.last_completed(pair.aliases))
                done.add(one.id)
            if not failures:
                lines += unexplained_fences(flow, {alias: log.admin for alias, log in pair.logs.items()})
    return [*dict.fromkeys([*lines, *(line for flow in settings.flows for line in _which_copies(flow, lines))])]


def _which_copies(flow: Flow, lines: list[str]) -> Iterator[str]:
    """Yield a line on the flow of two that take turns that copies now; raises `OperationError` if none does."""
    try:
        states = states_in_turns(flow)
    except ClusterUnavailable:
        return
    if not states:
        return
    started = [name for name, state in states.items() if state is TargetState.STARTED]
    paused = [name for name, state in states.items() if state is TargetState.PAUSED]
    if started:
        yield f"{min(started)} copies from now on"
    elif paused:
        yield f"warning: nothing is replicated while {min(paused)} is paused: run `mirrorless resume`"
    else:
        trouble = (
            f"nothing is replicated between {flow.source.alias} and {flow.target.alias}, since both flows are stopped: "
            "run `mirrorless failback FILE --to` with the cluster that applications are to return to"
        )
        raise OperationError("; ".join([*lines, trouble]))


def _close(pair: ClusterPair, operation: OperationState, standing: dict[str, Any], *, is_last: bool) -> Iterator[str]:
    """Remove a fence as it stood, and start what waited for that; all of it may be done already."""
    alias, reverse = pair.forward.source.alias, pair.reverse
    _lift(pair, operation.id, standing)
    yield f"{operation.id}: the fence on {alias} is removed"
    fence, done = operation.data("fence"), operation.data("reverse")
    paused = fence.get("paused", []) if fence["fence"] in BLOCKS_FLOWS or not done else []
    if paused:
        # For this fence, on the cluster with the fence, whether or not the operation completed.
        start_paused(pair.settings, paused, by=_closing(operation))
        yield f"{operation.id}: {', '.join(paused)} started"
    begins_turn = is_last and done.get("waits") == CLOSE and "epochs" in done
    if pair.failures and (begins_turn or not paused):
        reason = f"{next(iter(pair.failures))} does not answer"
        yield f"warning: {reason}, so {'the opposite' if paused else 'no'} flow is {'not ' if paused else ''}started"
    elif begins_turn and reverse is not None:
        yield from _begin_turn(pair, operation, reverse)
    entry = records.lifted(operation.id, standing["topics"], by="operation close", ms=int(time.time() * 1000))
    for name, log in pair.logs.items():
        if name not in pair.failures:
            log.append(entry)


def _closing(operation: OperationState) -> OperationWriter:
    """After every term of the operation, and before the next one."""
    return OperationWriter(operation.number, _CLOSING)


def _begin_turn(pair: ClusterPair, operation: OperationState, reverse: Flow) -> Iterator[str]:
    """Start the flow that takes turns with that of the operation."""
    before = operation.data("reverse")["epochs"]
    if newest_epochs(reverse, before) == before:
        yield from _written_since(pair, operation)
    for topic in start_turn(reverse, next_starts(operation), before, by=_closing(operation)):
        yield f"warning: {topic} is not on both clusters, and is left out"
    yield f"{operation.id}: {reverse.name} is started"


def _lift(pair: ClusterPair, operation: str, standing: dict[str, Any]) -> None:
    planned, alias = standing["planned"], pair.forward.source.alias
    fence = fence_of(standing["fence"], pair.forward.source)
    fence.remove(planned)
    if fenced := pair.fenced_topics(alias, besides=operation) & standing["topics"].keys():
        # An operation that began meanwhile, since this command read the logs.
        settle(fence, planned, lambda: pair.fenced_topics(alias, besides=operation))
        raise OperationError(f"another operation fences {min(fenced)} on {alias}: see `mirrorless operation FILE`")
    until = time.monotonic() + _GONE_S
    while left := fence.left(planned):
        if time.monotonic() > until:
            raise ClusterError(f"the fence is removed, but {left[0]}; try again", cluster=pair.forward.source.alias)
        time.sleep(_LOOK_S)


def _written_since(pair: ClusterPair, operation: OperationState) -> Iterator[str]:
    """Lines about records that others have written to the old cluster since: the live one does not have them.

    Those of a transaction that is still open count, since it may be committed.
    """
    flow = pair.forward
    drained = operation.data("drain").get("ends", {})
    places = {(topic, number): end for topic, ends in drained.items() for number, end in enumerate(ends)}
    admin = Admin(flow.source)
    ends, _ = high_watermarks(admin, places)
    stable, _ = last_stable_offsets(admin, places)
    found: Counter[TopicPartition] = Counter()
    for until, others, aborted in ((stable, places, False), (ends, stable, True)):
        begins = {place: max(places[place], others[place]) for place in until.keys() & others.keys()}
        spans = {place: (begin, until[place]) for place, begin in begins.items() if until[place] > begin}
        found.update(records_in(flow.source, spans, aborted=aborted) if spans else {})
    for (topic, partition), number in sorted(found.items()):
        yield (
            f"warning: {count_of(number, 'record')} of {topic}-{partition} were written to {flow.source.alias} after "
            f"the move, from offset {places[topic, partition]} on; {flow.target.alias} does not have them"
        )
