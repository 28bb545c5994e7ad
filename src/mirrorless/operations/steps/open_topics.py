"""Prepares the cluster that applications move to: topics to write to, rights, and no fence of an earlier operation."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.acls import Acl, AclResource, NoAcls, acls_of, create_acls
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.side_by_side import each
from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import ClusterError
from mirrorless.filters import group_filter_for
from mirrorless.metadata.actions import CreateTopic
from mirrorless.metadata.config_plan import creation_config
from mirrorless.metadata.fences import MAX_BYTES, deny_write
from mirrorless.metadata.serverless import target_filter
from mirrorless.metadata.topic_creation import create
from mirrorless.modes import Modes
from mirrorless.operation_log.records import only
from mirrorless.operations.fences import fence_of
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import OperationStep, StepFailed
from mirrorless.operations.steps.fence import changing_fence
from mirrorless.operations.turns import copied_ends, start_paused, stop_flow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mirrorless.operations.steps.context import OperationContext

_VISIBLE_S: Final = 60.0


class OpenStep(OperationStep):
    """With default names writers find their topics under the same name, next to the remote topics.

    `create` are topics with partitions and configs, `acls` those to be added by kind of resource, `lift` the fences of
    earlier operations on these topics of this cluster. A flow that keeps names is stopped first; `ends` is where its
    copies end then.
    """

    name = "open"

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Compare topics and ACLs of both clusters."""
        counts, modes = context.recorded_counts(), Modes(context.forward)
        named_twice = modes.second_names(counts)
        if not named_twice and "fence" in context.operation.steps:
            _refuse_new(context, counts)
        there = partition_counts(context.target.metadata())
        names = {topic: modes.name_there(topic) for topic in counts}
        missing = [topic for topic in named_twice if names[topic] not in there]
        fewer = [
            f"{names[topic]} has {count_of(there[names[topic]], 'partition')} on {context.forward.target.alias}, and "
            f"{count} on {context.forward.source.alias}: keys map to other partitions"
            for topic, count in counts.items()
            if there.get(names[topic], count) != count
        ]
        acls = self._acls(context, counts)
        configs = self._configs(context, missing)
        return {
            "create": {names[topic]: [counts[topic], config] for topic, config in configs.items()},
            "acls": {kind.name: [asdict(acl) for acl in some] for kind, some in acls.items()},
            "lift": _to_lift(context, names.values()),
            "fewer": fewer,
            "stops": modes.ends_with_a_move,
        }

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Stop the flow if it keeps names, lift earlier fences, create topics, add ACLs."""
        context.check()
        ends = {}
        if planned["stops"]:
            stop_flow(context)
            ends = copied_ends(context, drained="drain" in context.operation.steps)
        for fence in planned["lift"].values():
            with changing_fence(context, context.forward.target, fence):
                fence_of(fence["fence"], context.forward.target, context.target).remove(fence["planned"])
            start_paused(context.settings, fence.get("paused", []), by=context.writer)
        self._create(context, planned["create"])
        for kind, some in planned["acls"].items():
            answers = create_acls(context.target, [Acl(**one) for one in some], AclResource[kind])
            refused = [f"{acl}: {refusal.text}" for acl, refusal in answers.items() if refusal is not None]
            if refused:
                raise ClusterError(f"adding ACLs failed: {refused[0]}", cluster=context.forward.target.alias)
        context.warnings += planned["fewer"]
        return planned | {"ends": ends}

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        acls = sum(map(len, data["acls"].values()))
        parts = [f"{count_of(len(data['create']), 'topic')} created", f"{count_of(acls, 'ACL')} added"]
        if data["stops"]:
            parts.append("the flow stopped")
        if data["lift"]:
            parts.append("the fence of an earlier move removed")
        return ", ".join(parts)

    def _configs(self, context: OperationContext, topics: list[str]) -> dict[str, dict[str, str]]:
        return configs_of_source(context, topics)

    def _acls(self, context: OperationContext, counts: dict[str, int]) -> dict[AclResource, list[Acl]]:
        return acls_of_source(context, counts)

    def _create(self, context: OperationContext, wanted: dict[str, list[Any]]) -> None:
        flow = context.forward
        actions = [
            CreateTopic(
                topic=topic,
                partitions=partitions,
                replication_factor=flow.replication_factor,
                config=config,
                reason=f"applications of {flow.source.alias} write to it",
            )
            for topic, (partitions, config) in wanted.items()
        ]
        outcomes = create(context.target, actions) if actions else {}
        for topic, (error, note) in outcomes.items():
            if error is not None:
                raise ClusterError(f"creating {topic} failed: {error}", cluster=flow.target.alias)
            if note is not None:
                context.warnings.append(f"{topic}: {note}")
        until = time.monotonic() + _VISIBLE_S
        while not wanted.keys() <= partition_counts(context.target.metadata()).keys():
            if not context.wait(until):
                raise StepFailed(f"new topics are not visible on {flow.target.alias} after {_VISIBLE_S:.0f} s")


def _refuse_new(context: OperationContext, recorded: dict[str, int]) -> None:
    """Raise `StepFailed` for topics and partitions that were created since the fence: they are not blocked."""
    more = [topic for topic, count in context.counts().items() if count != recorded.get(topic)]
    if more:
        raise StepFailed("topics or partitions were created meanwhile; try again", more)


def configs_of_source(context: OperationContext, topics: list[str]) -> dict[str, dict[str, str]]:
    """Return configs of new topics: the source's, as they were before the fence."""
    found, failed = topic_configs(context.source, topics)
    for topic, refusal in failed.items():
        raise ClusterError(
            f"reading the configs of {topic} failed: {refusal.text}", cluster=context.forward.source.alias
        )
    chosen = target_filter(context.forward, on_creation=True)
    before = _planned(context).get("before", {})
    configs: dict[str, dict[str, str]] = {}
    for topic, one in found.items():
        configs[topic] = creation_config(chosen, one)
        if topic in before:
            configs[topic].pop(MAX_BYTES, None)
            if before[topic] is not None:
                configs[topic][MAX_BYTES] = before[topic]
    return configs


def acls_of_source(context: OperationContext, counts: Iterable[str]) -> dict[AclResource, list[Acl]]:
    """Return what the target lacks of the source's ACLs on topics, groups and transactional ids."""
    topics, modes = set(counts), Modes(context.forward)
    selects = group_filter_for(context.forward).selects
    fence = {deny_write(topic) for topic in _planned(context).get("denied", ())}
    fence |= {
        acl for one in context.earlier.fences_on(context.forward.source.alias) for acl in _denials(one.standing_fence)
    }
    theirs = {
        acl for one in context.earlier.fences_on(context.forward.target.alias) for acl in _denials(one.standing_fence)
    }
    chosen: dict[AclResource, Callable[[Acl], bool]] = {
        AclResource.TOPIC: lambda acl: acl.pattern == "LITERAL" and acl.topic in topics,
        AclResource.GROUP: lambda acl: acl.pattern != "LITERAL" or acl.topic == "*" or selects(acl.topic),
        AclResource.TRANSACTIONAL_ID: lambda _: True,
    }
    wanted: dict[AclResource, list[Acl]] = {}
    for kind, is_wanted in chosen.items():
        here, there = each([partial(acls_of, one, kind) for one in (context.forward.source, context.forward.target)])
        if isinstance(here, NoAcls) or isinstance(there, NoAcls):
            none = here if isinstance(here, NoAcls) else there
            assert isinstance(none, NoAcls)
            if none.lacks_right:
                context.warnings.append(f"no ACL is added: {none.reason}")
            return {}
        found = {acl for acl in here - fence if is_wanted(acl)}
        if kind is AclResource.TOPIC:
            found |= set(_narrowed(here - fence, topics))
            found = {replace(acl, topic=modes.name_there(acl.topic)) for acl in found}
        wanted[kind] = sorted(found - (there - theirs))
    return wanted


def _narrowed(acls: Iterable[Acl], topics: Iterable[str]) -> Iterator[Acl]:
    """Yield for each topic the literal ACLs that say the same as those on prefixes and on every topic."""
    wide = [acl for acl in acls if acl.pattern == "PREFIXED" or (acl.pattern, acl.topic) == ("LITERAL", "*")]
    for topic in topics:
        for acl in wide:
            if acl.pattern == "LITERAL" or topic.startswith(acl.topic):
                yield replace(acl, topic=topic, pattern="LITERAL")


def _to_lift(context: OperationContext, topics: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The fences of earlier operations on these topics of the target, by operation."""
    wanted = set(topics)
    found: dict[str, dict[str, Any]] = {}
    for one in context.earlier.fences_on(context.forward.target.alias):
        fence = one.standing_fence
        if shared := sorted(wanted & fence["topics"].keys()):
            found[one.id] = {
                "fence": fence["fence"],
                "topics": shared,
                "planned": only(fence["planned"], shared),
                "paused": fence.get("paused", []),
            }
    return found


def _planned(context: OperationContext) -> dict[str, Any]:
    planned: dict[str, Any] = context.operation.data("fence").get("planned", {})
    return planned


def _denials(fence: dict[str, Any]) -> list[Acl]:
    return [deny_write(topic) for topic in fence["planned"].get("denied", ())]
