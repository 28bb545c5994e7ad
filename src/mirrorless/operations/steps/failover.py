"""The steps of a failover: the source is down, or abandoned, so everything comes from the target where it can."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.groups import Activity, Committed, GroupOffsets, list_groups
from mirrorless.clusters.topics import last_stable_offsets, log_starts, partition_counts
from mirrorless.copy.progress.topic import ProgressTopic
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.filters import replicated_topics
from mirrorless.metadata.config_plan import creation_config
from mirrorless.metadata.serverless import target_filter
from mirrorless.offsets.failover_plan import failover_plan, newest_timestamps
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import StepFailed, places_of
from mirrorless.operations.steps.groups import GroupsStep, packed
from mirrorless.operations.steps.open_topics import OpenStep, acls_of_source, configs_of_source
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from mirrorless.clusters.acls import Acl, AclResource
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.failover_plan import Forecast
    from mirrorless.operations.steps.context import OperationContext


_ANSWER_S: Final = 5.0


class RecordStep:
    """Records what the target has. `topics` are the source's with their partitions, as remote topics show them.

    `ends` are the remote topics' ends, `newest_ms` the timestamps of their newest records (ms since 1970).
    """

    name = "record"

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Read the remote topics."""
        flow, policy = context.forward, policy_for(context.forward)
        there = partition_counts(context.target.metadata())
        with closing(ProgressTopic(flow, context.target)) as progress:
            copied = sorted({topic for topic, _ in progress.read()})
        remote = {topic: policy.format_remote_topic(flow.source.alias, topic) for topic in copied}
        selects = replicated_topics(flow)
        counts = {
            topic: there[name]
            for topic, name in remote.items()
            if name in there and selects(topic) and context.wants(topic) and not policy.is_heartbeats_topic(topic)
        }
        if not counts:
            raise StepFailed(f"nothing that matches was copied from {flow.source.alias} to {flow.target.alias}")
        remote = {topic: remote[topic] for topic in counts}
        places = [(remote[topic], partition) for topic, partition in places_of(counts)]
        ends, _ = last_stable_offsets(context.target, places)
        newest = newest_timestamps(context.target, places)
        return {
            "topics": counts,
            "remote": remote,
            "ends": {
                topic: [ends.get((name, number), 0) for number in range(counts[topic])]
                for topic, name in remote.items()
            },
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

    def undo(self, context: OperationContext, data: dict[str, Any]) -> None:
        """Nothing was changed."""

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

    def _acls(self, context: OperationContext, counts: dict[str, int]) -> tuple[dict[AclResource, list[Acl]], str]:
        reason = f"{context.forward.source.alias} does not answer"
        if context.operation.data("record")["source_answers"]:
            try:
                return acls_of_source(context, counts)
            except ClusterError as error:
                reason = str(error)
        reason = f"no ACL is added: {reason}; grant WRITE to applications yourself"
        context.warnings.append(reason)
        return {}, reason


class FailoverGroupsStep(GroupsStep):
    """Groups continue from the translation of their last known position, without waiting for members to leave."""

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Forecast, and choose what may be committed: never back, never beyond the end, no group with members."""
        answers = context.operation.data("record")["source_answers"]
        forecast = failover_plan(context.forward, groups=context.wants_group, asks_source=answers)
        context.warnings += forecast.troubles
        remote = set(context.operation.data("record")["remote"].values())
        some = [one for one in forecast.forecasts if one.remote_topic in remote]
        activity, _ = list_groups(context.target)
        places = {(one.remote_topic, one.partition) for one in some}
        ends, _ = last_stable_offsets(context.target, places)
        starts, _ = log_starts(context.target, places)
        before = _committed_on_target(context, sorted({one.group for one in some}))
        wanted: dict[str, dict[TopicPartition, Committed]] = {}
        again: dict[str, int] = {}
        on_target: set[str] = set()
        for one in some:
            place = (one.remote_topic, one.partition)
            if one.target_offset is None or place not in ends:
                continue
            if activity.get(one.group) is Activity.ACTIVE:
                on_target.add(one.group)
                continue
            again[one.group] = again.get(one.group, 0) + _read_again(one, ends[place])
            offset = min(max(one.target_offset, starts.get(place, 0)), ends[place])
            last = before.get(one.group, {}).get(place)
            if last is None or last.offset < offset:
                wanted.setdefault(one.group, {})[place] = Committed(offset, one.metadata)
        return {
            "wanted": packed(wanted),
            "before": packed(
                {
                    group: {place: before[group][place] for place in offsets if place in before.get(group, {})}
                    for group, offsets in wanted.items()
                }
            ),
            "created": [group for group in wanted if group not in activity],
            "read_again": again,
            "staying": {},
            "on_target": sorted(on_target),
            "untranslated": [
                f"group {one.group}: {one.topic}-{one.partition} at {one.source_offset}: {one.how}"
                for one in some
                if one.target_offset is None
            ],
            "troubles": list(forecast.troubles),
        }


def _read_again(one: Forecast, end: int) -> int:
    """The maximum number of records; without the source everything after the last checkpoint."""
    if one.read_again is not None:
        return one.read_again
    return max(0, end - (one.target_offset or 0))


def _committed_on_target(context: OperationContext, groups: list[str]) -> dict[str, dict[TopicPartition, Committed]]:
    with closing(GroupOffsets(context.forward.target)) as offsets:
        return {group: some for group, some in offsets.committed(groups) if not isinstance(some, str)}
