"""What each step of an operation would change, and whether its checks pass; writes nothing."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.target_state import OperationWriter
from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import OperationError
from mirrorless.metadata.service_records import replicated_on
from mirrorless.modes import Modes
from mirrorless.offsets.failover_plan import failover_plan
from mirrorless.operation_log.records import OperationKind, OperationState
from mirrorless.operations.cluster_pair import ClusterPair
from mirrorless.operations.fences import resolved
from mirrorless.operations.refusals import admitted
from mirrorless.operations.results import count_of
from mirrorless.operations.run import request_of
from mirrorless.operations.steps.context import OperationContext, StepFailed, matching
from mirrorless.operations.steps.failover import copied_topics
from mirrorless.operations.steps.preflight import PreflightStep
from mirrorless.operations.steps.stranded import StrandedStep
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.operations.refusals import Terms
    from mirrorless.settings import Settings


def preflight_lines(settings: Settings, kind: OperationKind, target: str, terms: Terms) -> list[str]:
    """Refuse what may not begin, run the checks of the preflight, and return its lines: the result, each warning.

    All of it only reads. A failover has no preflight.

    Raises `StepFailed` with what failed, ConfigurationError, `OperationError`, `ClusterError`.
    """
    pair = ClusterPair.to(settings, target, terms.source)
    with closing(pair):
        earlier, superseded = admitted(pair, kind, terms)
        if kind is OperationKind.FAILOVER:
            ends = None if superseded is None else f"  ends {superseded.request.kind} {superseded.id}, which is open"
            return [] if ends is None else [ends]
        request = request_of(pair, kind, terms)
        context = OperationContext(
            settings=settings,
            forward=pair.forward,
            reverse=pair.reverse,
            operation=OperationState(id="dry run", request=request, created_ms=int(time.time() * 1000)),
            check=lambda: None,
            say=lambda _: None,
            earlier=earlier,
            writer=OperationWriter(0, 0),
            logged=pair.every_operation,
        )
        step = PreflightStep(terms.accepted)
        try:
            data = step.act(context, {})
        except OperationError as error:  # of a switch
            raise StepFailed(str(error), []) from error
        return [f"  preflight: {step.text(data)}", *(f"    warning: {line}" for line in data["warnings"])]


def dry_run_lines(settings: Settings, kind: OperationKind, target: str, terms: Terms) -> Iterator[str]:
    """Yield a line for each step but the preflight. Raises ConfigurationError, `OperationError`, `ClusterError`."""
    pair = ClusterPair.to(settings, target, terms.source)
    with closing(pair):
        wants = matching(terms.topics)
        flow, policy = pair.forward, policy_for(pair.forward)
        target_admin = Admin(flow.target)
        source, there = flow.source.alias, partition_counts(target_admin.metadata())
        forecast = failover_plan(flow, groups=matching(terms.groups))
        groups = {one.group for one in forecast.forecasts}
        again = sum(one.read_again or 0 for one in forecast.forecasts)
        skipped = sum(one.skipped for one in forecast.forecasts)
        yield f"{kind} from {source} to {target}"
        if kind is not OperationKind.FAILOVER:
            source_admin = Admin(flow.source)
            counts = partition_counts(source_admin.metadata())
            topics = [
                topic
                for topic in replicated_on(flow, source_admin, counts)
                if wants(topic) and not policy.is_heartbeats_topic(topic)
            ]
            if kind is OperationKind.FAILBACK:
                yield f"  stranded: {StrandedStep.way(flow, terms.stranded)} what {target} has and {source} lacks"
            fence = resolved(flow, settings, topics)
            yield f"  fence: {fence} on {count_of(len(topics), 'topic')} of {source}"
            yield f"  drain: waits for open transactions and the copy, at most {terms.drain_timeout_s:g} s"
        else:
            topics = [topic for topic in copied_topics(flow, target_admin) if wants(topic)]
        modes = Modes(flow)
        missing = [topic for topic in modes.second_names(topics) if modes.name_there(topic) not in there]
        lag = sum(one.not_copied or 0 for one in forecast.forecasts)
        read = f"{count_of(again, 'record')} would be read again now"
        if skipped:
            read += f", up to {count_of(skipped, 'record')} skipped"
        yield f"  groups: commits offsets of {count_of(len(groups), 'group')}; {read}"
        if kind is not OperationKind.FAILOVER:
            yield f"  verify fence: {flow.fence_quiet_seconds:g} s without a new record"
        yield f"  open: creates {count_of(len(missing), 'topic')} on {target}, adds the ACLs that are missing there"
        yield f"  switch clients: {', '.join(flow.switch) or 'mirrorless.switch is not set'}"
        way_back = f"none: {settings.file} has no flow from {target} to {source}"
        yield f"  way back: {way_back if pair.reverse is None else pair.reverse.name}"
        if lag:
            yield f"  not copied yet: {count_of(lag, 'record')}"
