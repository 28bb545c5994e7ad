"""The steps of a failover: the source is down, or abandoned, so everything comes from the target where it can."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.filters import replicated_topics
from mirrorless.metadata.config_plan import creation_config
from mirrorless.metadata.serverless import target_filter
from mirrorless.modes import Modes
from mirrorless.offsets.failover_plan import failover_plan, newest_timestamps
from mirrorless.operation_log.records import EVERYTHING
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import OperationStep, StepFailed, places_of
from mirrorless.operations.steps.groups import GroupsStep, moves
from mirrorless.operations.steps.open_topics import OpenStep, acls_of_source, configs_of_source
from mirrorless.policy import policy_for
from mirrorless.progress.topic import ProgressTopic

if TYPE_CHECKING:
    from mirrorless.clusters.acls import Acl, AclResource
    from mirrorless.clusters.admin import Admin
    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.settings import Flow


_ANSWER_S: Final = 5.0


def copied_topics(flow: Flow, target: Admin) -> dict[str, int]:
    """Return the source topics of which the target has a copy, with its partitions; heartbeats are left out.

    Only the target is asked. Raises `ClusterUnavailable`.
    """
    policy, selects = policy_for(flow), replicated_topics(flow)
    there = partition_counts(target.metadata())
    with closing(ProgressTopic(flow, target, must_exist=False)) as progress:
        copied = sorted({topic for topic, _ in progress.read()})
    return {
        topic: there[name]
        for topic in copied
        if (name := policy.format_remote_topic(flow.source.alias, topic)) in there
        and selects(topic)
        and not policy.is_heartbeats_topic(topic)
    }


class RecordStep(OperationStep):
    """Records what the target has. `topics` are the source's with their partitions, as remote topics show them.

    `remote` are the remote topics, `newest_ms` the timestamps of their newest records (ms since 1970, 0 without any).
    """

    name = "record"

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Read the remote topics."""
        flow, policy = context.forward, policy_for(context.forward)
        copied = copied_topics(flow, context.target)
        counts = {topic: count for topic, count in copied.items() if context.wants(topic)}
        if not counts:
            raise StepFailed(f"nothing that matches was copied from {flow.source.alias} to {flow.target.alias}")
        remote = {topic: policy.format_remote_topic(flow.source.alias, topic) for topic in counts}
        newest = newest_timestamps(
            context.target, [(remote[topic], partition) for topic, partition in places_of(counts)]
        )
        return {
            "topics": counts,
            "remote": remote,
            "newest_ms": {
                topic: max((newest.get((name, number), 0) for number in range(counts[topic])), default=0)
                for topic, name in remote.items()
            },
            "ms": int(time.time() * 1000),
        }

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Say if the source answers: then a switchover would lose nothing."""
        if context.forward.source.alias in context.unreachable:
            return planned | {"source_answers": False}
        try:
            context.source.metadata(timeout_s=_ANSWER_S)
        except ClusterUnavailable:
            return planned | {"source_answers": False}
        context.warnings.append(
            f"{context.forward.source.alias} answers: writers there are not blocked; a switchover would lose nothing"
        )
        return planned | {"source_answers": True}

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        with_records = [ms for ms in data["newest_ms"].values() if ms]
        age = f", newest record {max(0, data['ms'] - max(with_records)) / 1000:,.1f} s old" if with_records else ""
        return f"{count_of(len(data['topics']), 'topic')}{age}"


class FailoverOpenStep(OpenStep):
    """As in a switchover, from the remote topics where the source does not answer."""

    def _configs(self, context: OperationContext, topics: list[str]) -> dict[str, dict[str, str]]:
        if context.operation.data("record")["source_answers"]:
            try:
                return configs_of_source(context, topics)
            except ClusterError as error:
                context.warnings.append(f"configs are those of the remote topics: {error}")
        remote = context.operation.data("record")["remote"]
        found, failed = topic_configs(context.target, [remote[topic] for topic in topics])
        for name, refusal in failed.items():
            alias = context.forward.target.alias
            raise ClusterError(f"reading the configs of {name} failed: {refusal.text}", cluster=alias)
        chosen = target_filter(context.forward, on_creation=True)
        return {topic: creation_config(chosen, found[remote[topic]]) for topic in topics}

    def _acls(self, context: OperationContext, counts: dict[str, int]) -> dict[AclResource, list[Acl]]:
        reason = f"{context.forward.source.alias} does not answer"
        if context.operation.data("record")["source_answers"]:
            try:
                return acls_of_source(context, counts)
            except ClusterError as error:
                reason = str(error)
        reason = f"no ACL is added: {reason}; grant WRITE to applications yourself"
        context.warnings.append(reason)
        return {}


class FailoverGroupsStep(GroupsStep):
    """Groups continue from the translation of their last known position, without waiting for members to leave."""

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Forecast, and choose what may be committed: no group with members, none that would skip records by it."""
        record = context.operation.data("record")
        forecast = failover_plan(context.forward, groups=context.wants_group, asks_source=record["source_answers"])
        context.warnings += forecast.troubles
        policy, remote = policy_for(context.forward), set(record["remote"].values())
        modes = Modes(context.forward)
        home = {name for topic in record["remote"] for name in (policy.original_topic(topic), modes.name_there(topic))}
        everything = context.request.topics == EVERYTHING
        return moves(
            context,
            [
                one
                for one in forecast.forecasts
                if one.remote_topic in remote or (one.returns and (everything or one.remote_topic in home))
            ],
        )
