"""Begins, continues and aborts operations; each returns what `mirrorless` prints and its exit status."""

from __future__ import annotations

import time
import uuid
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from mirrorless import client_logs
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import ClusterError, ClusterUnavailable, MirrorlessError, OperationError
from mirrorless.metadata.service_records import replicated_on
from mirrorless.operation_log import records
from mirrorless.operation_log.records import OperationKind, OperationOutcome, Operations, Request
from mirrorless.operations.cluster_pair import ClusterPair, refuse_open
from mirrorless.operations.drill.report import configuration_hash
from mirrorless.operations.fences import resolved
from mirrorless.operations.kinds import steps_of
from mirrorless.operations.refusals import admitted
from mirrorless.operations.runner import Ownership, failure_of, may_be_undone, run_steps, undo_steps
from mirrorless.operations.steps.context import OperationContext, OwnershipLost, StepFailed, matching

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.operation_log.records import Entry, OperationState
    from mirrorless.operations.refusals import Terms
    from mirrorless.operations.steps.context import OperationStep
    from mirrorless.settings import Flow, Settings

_ATTEMPTS: Final = 3
_RETRY_S: Final = 2.0
_REFUSED: Final = "applications have moved, but offsets of groups were refused"
_AT_ONCE: Final = "another operation began at the same time; try again"


def _ignore(*_: str) -> None:
    """Report nothing."""


@dataclass(slots=True, kw_only=True)
class OperationProgress:
    """Receives what happens: `step` a step's name and its result, empty when it begins; `say` a line."""

    step: Callable[[str, str], None] = _ignore
    say: Callable[[str], None] = _ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How far an operation came: `error` is None if it completed, else why not, with `lines` on the objects concerned.

    `is_restored` says that it was undone. `warnings` are about what was found or left.
    """

    operation: OperationState
    error: str | None = None
    lines: tuple[str, ...] = ()
    is_restored: bool = False
    warnings: tuple[str, ...] = ()


def begin(
    settings: Settings, kind: OperationKind, target: str, terms: Terms, progress: OperationProgress | None = None
) -> Ended:
    """Begin an operation and run it to its end.

    Raises `OperationError` if another one of the pair is open, ConfigurationError, `ClusterError` if nothing was begun.
    """
    client_logs.set_up()
    pair = ClusterPair.to(settings, target, terms.source)
    with closing(pair):
        earlier, superseded = admitted(pair, kind, terms)
        failures = pair.failures
        source = pair.forward.source.alias
        if superseded is not None:
            _supersede(superseded, pair, progress or OperationProgress())
        _close_missed(earlier, pair)
        request = request_of(pair, kind, terms)
        for alias, log in pair.logs.items():
            if alias not in failures:
                log.create()
        number = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:6]}"
        begun = records.begin(number, request, number=pair.next_number(), ms=int(time.time() * 1000))
        pair.logs[target].append(begun)
        operations = pair.logs[target].read()
        if number not in operations.by_id:
            refuse_open(operations, pair)
            raise OperationError(_AT_ONCE)
        if source not in failures:
            _begin_at_mirror(pair, number, begun)
        return _run(pair, operations.by_id[number], progress or OperationProgress(), failures)


def resume(settings: Settings, *, take_over: bool = False, progress: OperationProgress | None = None) -> Ended:
    """Continue the open operation of the file's clusters; raises `OperationError` if there is none."""
    client_logs.set_up()
    operation, pair, failures = _find_open(settings)
    with closing(pair):
        return _run(pair, operation, progress or OperationProgress(), failures, take_over=take_over)


def abort(settings: Settings, *, take_over: bool = False, progress: OperationProgress | None = None) -> Ended:
    """Undo the open operation; raises `OperationError` if there is none, or applications have begun to move."""
    client_logs.set_up()
    progress = progress or OperationProgress()
    operation, pair, failures = _find_open(settings)
    with closing(pair):
        if not may_be_undone(operation):
            raise OperationError(
                f"{operation.request.kind} {operation.id} cannot be aborted, since applications have begun to move; "
                "continue it, then switch over in the other direction"
            )
        ownership = _ownership(pair, operation, failures)
        ownership.claim(take_over=take_over, say=progress.say)
        try:
            context = _context(pair, ownership, progress)
            return _undone(_steps(operation), context, ownership, progress, ("aborted by the operator", ()))
        finally:
            ownership.release()


def _find_open(settings: Settings) -> tuple[OperationState, ClusterPair, dict[str, str]]:
    """Return the open operation of any pair of the file's clusters, its pair, and which cluster does not answer."""
    reasons: list[str] = []
    for flow in settings.flows:
        pair = ClusterPair.of(settings, flow)
        try:
            operations, failures = pair.read()
        except ClusterError as error:
            reasons.append(str(error))
            pair.close()
            continue
        reasons += failures.values()
        operation = operations.open(pair.aliases)
        if operation is not None and operation.request.target == flow.target.alias:
            if flow.target.alias in failures:
                raise ClusterUnavailable(failures[flow.target.alias], cluster=flow.target.alias)
            return operation, pair, failures
        pair.close()
    raise OperationError("; ".join(["no operation is open", *dict.fromkeys(reasons)]))


def show(settings: Settings) -> tuple[list[OperationState], dict[str, str]]:
    """Return all operations of the file's clusters, the oldest first, and why those of a cluster are unknown.

    Raises `ClusterUnavailable` if none does.
    """
    operations, unread = read_all(settings)
    return sorted(operations.by_id.values(), key=lambda one: one.number), unread


def read_all(settings: Settings) -> tuple[Operations, dict[str, str]]:
    """Return the operations of all pairs of the file's clusters, and by alias why those of a cluster are unknown.

    Raises `ClusterUnavailable` if no cluster of a pair answers.
    """
    client_logs.set_up()
    found = Operations()
    unread: dict[str, str] = {}
    for flow in settings.flows:
        pair = ClusterPair.of(settings, flow)
        with closing(pair):
            operations, failures = pair.read()
            unread |= failures | pair.refused
            found.by_id |= operations.by_id
    return found, unread


def request_of(pair: ClusterPair, kind: OperationKind, terms: Terms) -> Request:
    """Return what an operation would be asked to do; raises `OperationError` for a pattern that does not compile."""
    flow = pair.forward
    for pattern in (terms.topics, terms.groups):
        try:
            matching(pattern)
        except ValueError as error:
            raise OperationError(str(error)) from None
    return Request(
        kind=kind,
        source=flow.source.alias,
        target=flow.target.alias,
        topics=terms.topics,
        groups=terms.groups,
        fence="none" if kind is OperationKind.FAILOVER else _fence(flow, pair.settings),
        switches=flow.switch,
        quiet_s=flow.fence_quiet_seconds,
        drain_timeout_s=terms.drain_timeout_s,
        wait_groups_s=terms.wait_groups_s,
        accepted=terms.accepted,
        stranded=terms.stranded,
        configuration=configuration_hash(flow),
        version=version("mirrorless"),
    )


def _fence(flow: Flow, settings: Settings) -> str:
    source = Admin(flow.source)
    topics = replicated_on(flow, source, partition_counts(source.metadata()))
    return resolved(flow, settings, topics)


def _supersede(one: OperationState, pair: ClusterPair, progress: OperationProgress) -> None:
    """End an operation that was to leave the cluster which is down now: nothing can be undone there.

    Its fence stays recorded, and is removed when applications return.
    """
    pair.logs[one.request.target].append(records.closed(one.id, OperationOutcome.ABORTED, ms=int(time.time() * 1000)))
    one.outcome = OperationOutcome.ABORTED
    fence = f"; its fence may be up on {one.request.source}" if one.standing_fence else ""
    progress.say(f"{one.request.kind} {one.id} is ended by this failover{fence}")


def _close_missed(earlier: Operations, pair: ClusterPair) -> None:
    """Close operations that have ended in a log that has missed it: they would refuse each that begins there."""
    for log in pair.logs.values():
        for one in log.operations.of(pair.aliases):
            known = earlier.by_id[one.id]
            if one.is_open and not known.is_open:
                log.append(records.closed(one.id, known.outcome, ms=int(time.time() * 1000)))
                log.read()


def _begin_at_mirror(pair: ClusterPair, number: str, entry: Entry) -> None:
    """Begin in the other cluster's log too, which decides for the opposite direction: only one of two can be open."""
    mirror = pair.logs[pair.forward.source.alias]
    try:
        mirror.append(entry)
        there = mirror.read()
    except ClusterError:
        return
    if number not in there.by_id:
        log = pair.logs[pair.forward.target.alias]
        log.append(records.closed(number, OperationOutcome.ABORTED, ms=int(time.time() * 1000)))
        refuse_open(there, pair)
        raise OperationError(_AT_ONCE)


def _steps(operation: OperationState) -> tuple[OperationStep, ...]:
    return steps_of(operation.request.kind, operation.request.accepted)


def _ownership(pair: ClusterPair, operation: OperationState, failures: dict[str, str]) -> Ownership:
    mirror = operation.request.source
    return Ownership(operation, pair.logs[operation.request.target], None if mirror in failures else pair.logs[mirror])


def _context(pair: ClusterPair, ownership: Ownership, progress: OperationProgress) -> OperationContext:
    return OperationContext(
        settings=pair.settings,
        forward=pair.forward,
        reverse=pair.reverse,
        operation=ownership.operation,
        check=ownership.check,
        say=progress.say,
        earlier=pair.read()[0],
        writer=ownership.writer,
        logged=pair.every_operation,
        follows_suspect=ownership.follows_suspect,
        unreachable=frozenset(pair.failures),
    )


def _run(
    pair: ClusterPair,
    operation: OperationState,
    progress: OperationProgress,
    failures: dict[str, str],
    *,
    take_over: bool = False,
) -> Ended:
    steps = _steps(operation)
    ownership = _ownership(pair, operation, failures)
    ownership.claim(take_over=take_over, say=progress.say)
    try:
        context = _context(pair, ownership, progress)
        try:
            _attempt(steps, context, ownership, progress)
        except (StepFailed, MirrorlessError, KeyboardInterrupt) as error:
            reason, lines = failure_of(error)
            if not isinstance(error, OwnershipLost) and may_be_undone(ownership.operation):
                return _undone(steps, context, ownership, progress, (reason, lines))
            return Ended(
                operation=ownership.operation, error=reason, lines=lines, warnings=_warnings(ownership, context)
            )
        now_ms = int(time.time() * 1000)
        for number, fence in ownership.operation.data("open").get("lift", {}).items():
            ownership.write(records.lifted(number, fence["topics"], by=operation.id, ms=now_ms))
        ownership.end(OperationOutcome.COMPLETED)
        refused = tuple(ownership.operation.data("groups").get("refused", ()))
        return Ended(
            operation=ownership.operation,
            error=_REFUSED if refused else None,
            lines=refused,
            warnings=_warnings(ownership, context),
        )
    finally:
        ownership.release()


def _warnings(ownership: Ownership, context: OperationContext) -> tuple[str, ...]:
    """Those of all steps, whichever process did them, and of the one that failed here."""
    return tuple(dict.fromkeys([*ownership.operation.warnings, *context.warnings]))


def _attempt(
    steps: tuple[OperationStep, ...], context: OperationContext, ownership: Ownership, progress: OperationProgress
) -> None:
    """Run the steps; a cluster that does not answer is asked again a few times."""
    for attempt in range(_ATTEMPTS):
        try:
            run_steps(steps, context, ownership, report=progress.step)
        except ClusterUnavailable as error:
            if attempt == _ATTEMPTS - 1:
                raise
            progress.say(f"{error}; trying again")
            time.sleep(_RETRY_S)
        else:
            return


def _undone(
    steps: tuple[OperationStep, ...],
    context: OperationContext,
    ownership: Ownership,
    progress: OperationProgress,
    failure: tuple[str, tuple[str, ...]],
) -> Ended:
    """Undo everything, and end the operation; what cannot be undone now stays open."""
    reason, lines = failure
    try:
        undo_steps(steps, context, ownership, report=progress.step)
        ownership.end(OperationOutcome.ABORTED, reason)
    except (StepFailed, MirrorlessError) as error:
        return Ended(
            operation=ownership.operation,
            error=f"{reason}; undoing it failed: {failure_of(error)[0]}",
            lines=lines,
            warnings=_warnings(ownership, context),
        )
    return Ended(
        operation=ownership.operation,
        error=reason,
        lines=lines,
        is_restored=True,
        warnings=_warnings(ownership, context),
    )
