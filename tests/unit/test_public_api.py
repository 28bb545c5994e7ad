"""The names that users may import, with the names of their arguments: removing or renaming one breaks their code."""

from __future__ import annotations

import importlib
import inspect
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import pytest
from pydantic import BaseModel

import mirrorless

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

MODULES: Final = ("client", "errors", "filters", "policy", "settings")
FIELDS: Final = {
    "Cluster": {"alias", "bootstrap_servers"},
    "Flow": {"aliases", "groups", "name", "source", "target", "topics"},
    "Settings": {"clusters", "file", "flow", "flows", "warnings"},
}
"""What of the models custom policies and filters may read; the rest of them may change."""
SIGNATURES: Final = """
client.NOT_REACHABLE
client.MirrorClient(cluster, *, policy=)
client.MirrorClient.checkpoint_topics()
client.MirrorClient.checkpoints(remote_alias)
client.MirrorClient.heartbeat_topics()
client.MirrorClient.remote_topics(source_alias=)
client.MirrorClient.replication_hops(upstream_alias)
client.MirrorClient.translate_offsets(remote_alias, group)
client.MirrorClient.translate_offsets_of(remote_alias, groups)
client.MirrorClient.upstream_clusters()
errors.AppendRefused(reason, *, topic, partition, offset=)
errors.AwsError(*args)
errors.ClusterError(reason, *, cluster, code=)
errors.ClusterUnavailable(reason, *, cluster, code=)
errors.ConfigurationError(reason, *, file=, line=, key=, value=)
errors.CopiedClusterIdError(*, flow, cluster_id, aliases, brokers)
errors.CorruptBatch(reason, *, topic, partition, offset=)
errors.FlowNotEnabled(reason, *, file=, line=, key=, value=)
errors.FlowPaused(*, flow, state, topic)
errors.Gap(reason, *, kind, topic, partition, offset=, records=)
errors.GapKind.RETENTION
errors.GapKind.TRUNCATED
errors.GapKind.CREATED_AGAIN
errors.GapKind.TARGET_LOST
errors.GapKind.TARGET_HOLE
errors.GapKind.UNEXPLAINED
errors.GapKind.MISPLACED
errors.Loop(reason, *, topic, partition, offset=)
errors.LoopError(*, flow, path, topic, more=, lacking=)
errors.MirrorMaker2MayRun(reason, *, cluster, code=)
errors.MirrorMaker2Runs(reason, *, cluster, code=)
errors.MirrorlessError(*args)
errors.OperationError(*args)
errors.PartitionError(reason, *, topic, partition, offset=)
errors.PrerequisiteError(*args)
errors.SameClusterError(*, flow, cluster_id)
errors.UnsupportedBatch(reason, *, topic, partition, offset=)
filters.ConfigFilter
filters.ConfigFilter.selects(name)
filters.ConfigFilter.selects_default(name)
filters.ConfigPropertyFilter(exclude, defaults=)
filters.ConfigPropertyFilter.of(flow)
filters.ConfigPropertyFilter.selects(name)
filters.ConfigPropertyFilter.selects_default(name)
filters.GroupFilter(include, exclude)
filters.GroupFilter.of(flow)
filters.GroupFilter.refusal(name)
filters.GroupFilter.selects(name)
filters.NameFilter
filters.NameFilter.selects(name)
filters.TopicFilter(include, exclude)
filters.TopicFilter.of(flow)
filters.TopicFilter.refusal(name)
filters.TopicFilter.selects(name)
filters.config_filter_for(flow)
filters.group_filter_for(flow)
filters.topic_filter_for(flow)
policy.DefaultReplicationPolicy(*, separator=, internal_separator=, aliases=)
policy.DefaultReplicationPolicy.checkpoints_topic(alias)
policy.DefaultReplicationPolicy.format_remote_topic(source_alias, topic)
policy.DefaultReplicationPolicy.heartbeats_topic()
policy.DefaultReplicationPolicy.is_checkpoints_topic(topic)
policy.DefaultReplicationPolicy.is_cycle(topic, target_alias)
policy.DefaultReplicationPolicy.is_heartbeats_topic(topic)
policy.DefaultReplicationPolicy.is_internal_topic(topic)
policy.DefaultReplicationPolicy.of(flow)
policy.DefaultReplicationPolicy.offset_syncs_topic(alias)
policy.DefaultReplicationPolicy.original_topic(topic)
policy.DefaultReplicationPolicy.topic_source(topic)
policy.DefaultReplicationPolicy.upstream_topic(topic)
policy.IdentityReplicationPolicy(source_alias, *, separator=, internal_separator=, aliases=)
policy.IdentityReplicationPolicy.checkpoints_topic(alias)
policy.IdentityReplicationPolicy.format_remote_topic(source_alias, topic)
policy.IdentityReplicationPolicy.heartbeats_topic()
policy.IdentityReplicationPolicy.is_checkpoints_topic(topic)
policy.IdentityReplicationPolicy.is_cycle(topic, target_alias)
policy.IdentityReplicationPolicy.is_heartbeats_topic(topic)
policy.IdentityReplicationPolicy.is_internal_topic(topic)
policy.IdentityReplicationPolicy.of(flow)
policy.IdentityReplicationPolicy.offset_syncs_topic(alias)
policy.IdentityReplicationPolicy.original_topic(topic)
policy.IdentityReplicationPolicy.topic_source(topic)
policy.IdentityReplicationPolicy.upstream_topic(topic)
policy.ReplicationPolicy
policy.ReplicationPolicy.checkpoints_topic(alias)
policy.ReplicationPolicy.format_remote_topic(source_alias, topic)
policy.ReplicationPolicy.heartbeats_topic()
policy.ReplicationPolicy.is_checkpoints_topic(topic)
policy.ReplicationPolicy.is_cycle(topic, target_alias)
policy.ReplicationPolicy.is_heartbeats_topic(topic)
policy.ReplicationPolicy.is_internal_topic(topic)
policy.ReplicationPolicy.offset_syncs_topic(alias)
policy.ReplicationPolicy.original_topic(topic)
policy.ReplicationPolicy.topic_source(topic)
policy.ReplicationPolicy.upstream_topic(topic)
policy.policy_for(flow)
settings.Cluster
settings.Flow
settings.Settings
settings.load(*files)
"""


def parameters(value: Any) -> str:  # noqa: ANN401 -- whatever can be called
    try:
        signature = inspect.signature(value)
    except ValueError:  # an exception without a constructor of its own
        return "*args"
    names = []
    seen_star = False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not seen_star:
            names.append("*")
            seen_star = True
        if one.kind is one.VAR_POSITIONAL:
            seen_star = True
        mark = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        names.append(f"{mark}{one.name}{'' if one.default is one.empty else '='}")
    return ", ".join(names)


def members(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401 -- whatever a module has
    if not inspect.isclass(value):
        yield f"{name}({parameters(value)})" if callable(value) else name
        return
    if issubclass(value, Enum):
        yield from (f"{name}.{one}" for one in value.__members__)
        return
    if issubclass(value, BaseModel):
        yield name
        return
    yield name if getattr(value, "_is_protocol", False) else f"{name}({parameters(value)})"
    for attribute in sorted(dir(value)):
        owner = next((one for one in value.__mro__ if attribute in vars(one)), object)
        if attribute.startswith("_") or not owner.__module__.startswith("mirrorless."):
            continue
        found = inspect.getattr_static(value, attribute)
        method = getattr(value, attribute, None)
        if isinstance(found, classmethod | staticmethod):
            yield f"{name}.{attribute}({parameters(method)})"
        elif inspect.isfunction(found):
            yield f"{name}.{attribute}({parameters(method).removeprefix('self').removeprefix(', ')})"
        elif isinstance(found, property):
            yield f"{name}.{attribute}"


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"mirrorless.{name}")


def test_the_public_names_and_their_arguments() -> None:
    found = [
        line
        for module in MODULES
        for name in module_of(module).__all__
        for line in members(f"{module}.{name}", getattr(module_of(module), name))
    ]
    assert found == SIGNATURES.strip().splitlines()


@pytest.mark.parametrize("module", MODULES)
def test_the_package_names_its_public_modules(module: str) -> None:
    assert f"`mirrorless.{module}`" in (mirrorless.__doc__ or "")


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_models_have_what_custom_classes_read(name: str) -> None:
    model: type[BaseModel] = getattr(module_of("settings"), name)
    assert {*model.model_fields, *dir(model)} >= FIELDS[name]
