"""What is refused before an operation begins, and in its dry run alike: all of it only reads."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ClusterUnavailable, OperationError
from mirrorless.modes import Modes
from mirrorless.operation_log.records import EVERYTHING, OperationKind
from mirrorless.operations.cluster_pair import ClusterPair, refuse_open
from mirrorless.operations.turns import refuse_other_turn
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.run_marks import deployment_of

if TYPE_CHECKING:
    from mirrorless.operation_log.records import Operations, OperationState

_LOOK_S: Final = 0.5
ALREADY_THERE: Final = "applications are there"
"""The name by which a move to where applications are is accepted nevertheless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the operator asked for; `accepted` are checks of the preflight that may fail. Times are in seconds.

    `stranded` is what a failback does with a stranded tail: `list`, `topic`, `leave` or `reset`. `source` is the
    cluster that applications leave; it has to be named where several flows lead to the target.
    """

    topics: str = ".*"
    groups: str = ".*"
    drain_timeout_s: float = 90.0
    wait_groups_s: float = 10.0
    accepted: tuple[str, ...] = ()
    stranded: str = "list"
    source: str | None = None


def admitted(pair: ClusterPair, kind: OperationKind, terms: Terms) -> tuple[Operations, OperationState | None]:
    """Read the operations of a pair, and refuse one that may not begin now.

    Returns them, and the open operation that a failover ends, since the cluster that it was to leave is down. Raises
    `OperationError` if it is refused, ConfigurationError, `ClusterUnavailable` if a cluster that it needs does not
    answer.
    """
    refuse_names(pair, kind, terms.topics)
    refuse_overlapping(pair, kind)
    earlier, failures = pair.read()
    source, target = pair.forward.source.alias, pair.forward.target.alias
    for alias in (target,) if kind is OperationKind.FAILOVER else (target, source):
        if alias in failures:
            raise ClusterUnavailable(failures[alias], cluster=alias)
    one = earlier.open(pair.aliases)
    ends = kind is OperationKind.FAILOVER and source in failures and one is not None and one.request.target == target
    if not ends:
        refuse_open(earlier, pair)
    if kind is not OperationKind.FAILBACK and Modes(pair.forward).other_turn is not None:
        refuse_other_turn(pair.forward)
    refuse_fenced(earlier, pair, kind)
    refuse_again(earlier, pair, kind, terms)
    refuse_other_files(pair)
    return earlier, one if ends else None


def refuse_again(earlier: Operations, pair: ClusterPair, kind: OperationKind, terms: Terms) -> None:
    """Raise `OperationError` if the last operation of the pair has moved the same there; `terms` may accept it."""
    last = earlier.last_completed(pair.aliases)
    target = pair.forward.target.alias
    if last is None or kind is OperationKind.FAILOVER or ALREADY_THERE in terms.accepted:
        return
    if last.request.target == target and (last.request.topics, last.request.groups) == (terms.topics, terms.groups):
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime((last.ended_ms or last.created_ms) / 1000))
        close = f"; `mirrorless operation {pair.settings.file} close` removes the fence" if last.standing_fence else ""
        raise OperationError(
            f"applications are on {target} since {since}, by {last.request.kind} {last.id}, so there is nothing to "
            f"move{close}; if they were moved back otherwise, give --accept '{ALREADY_THERE}'"
        )


def refuse_names(pair: ClusterPair, kind: OperationKind, topics: str) -> None:
    """Raise `OperationError` for what is not supported where a flow keeps topic names.

    Copiers cannot leave single topics out, so the whole flow moves; and it only returns along a flow that takes turns
    with it.
    """
    modes = Modes(pair.forward)
    if not modes.ends_with_a_move:
        return
    name = pair.forward.name
    if kind is OperationKind.FAILBACK and modes.other_turn is None:
        raise OperationError(
            f"flow {name} keeps topic names, so failback needs the opposite flow too: enable both directions, and set "
            "mirrorless.both.directions=turns, and mirrorless.active.cluster to the cluster that applications wrote to "
            "before the failover"
        )
    if topics != EVERYTHING:
        raise OperationError(
            f"flow {name} keeps topic names, so its topics move together: remove --topics. A topic that is to move "
            "alone needs a file in which both clusters have other aliases, before it is copied first"
        )


def refuse_other_files(pair: ClusterPair) -> None:
    """Raise `OperationError` if the flow has to stop, and another file has a flow between the same clusters that runs.

    The stop is Connect's record of the connector: it holds for every file with these aliases. A mark that is there is
    watched until it is renewed, or was valid without that. Raises `ClusterUnavailable`.
    """
    flow = pair.forward
    if not Modes(flow).ends_with_a_move:
        return
    deployment = deployment_of(pair.settings.file, flow.name)
    with closing(MarkReader(flow)) as reader:
        while found := reader.read().of_others(flow, now=time.monotonic(), deployment=deployment):
            if any(mark.is_news for mark in found):
                raise OperationError(
                    f"another file copies other topics from {flow.source.alias} to {flow.target.alias}, and this move "
                    "would stop them too: name all topics in one file, or give the clusters other aliases in the other "
                    "file before it copies"
                )
            time.sleep(_LOOK_S)


def refuse_fenced(operations: Operations, pair: ClusterPair, kind: OperationKind) -> None:
    """Raise `OperationError` if a fence on the target blocks the flow to it, which skips copies."""
    target = pair.forward.target.alias
    if kind is not OperationKind.FAILOVER and Modes(pair.forward).shares_topics and operations.fences_on(target):
        raise OperationError(
            f"the fence of the last move is up on {target}, and blocks {pair.forward.name}: run `mirrorless "
            f"operation {pair.settings.file} close` first"
        )


def refuse_overlapping(pair: ClusterPair, kind: OperationKind) -> None:
    """Raise `OperationError` for open operations and standing fences of other pairs that have one of the clusters.

    A failover does not wait for an operation that cannot be continued, since the cluster that decides is down.
    """
    target = pair.forward.target.alias
    for flow in pair.overlapping:
        other = ClusterPair.of(pair.settings, flow)
        with closing(other):
            try:
                operations, failures = other.read()
            except ClusterUnavailable:
                continue  # neither of them answers, so nothing is under way between them
            one = operations.open(other.aliases)
            if one is not None and not (kind is OperationKind.FAILOVER and one.request.target in failures):
                refuse_open(operations, other)
            if operations.fences_on(target):
                raise OperationError(
                    f"the fence of a move to another cluster is up on {target}: run `mirrorless operation "
                    f"{pair.settings.file} close` first"
                )
