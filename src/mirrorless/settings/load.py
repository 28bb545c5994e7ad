"""Reads a configuration file in any accepted form into typed flows: text -> spelling -> precedence -> model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings import connect_json, locations, mirrormaker1, properties
from mirrorless.settings.field_docs import pattern_keys
from mirrorless.settings.key_normalizer import KeyNormalizer
from mirrorless.settings.reader import Reader, Understanding

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from mirrorless.settings.model import Settings
    from mirrorless.settings.properties import PropertyEntry

# Key of a flow -> field of Flow. Set as `A->B.key` or as `key`.
FLOW_KEYS: Final[Mapping[str, str]] = {
    "topics": "topics",
    "topics.exclude": "topics_exclude",
    "groups": "groups",
    "groups.exclude": "groups_exclude",
    "replication.factor": "replication_factor",
    "tasks.max": "tasks_max",
    "refresh.topics.enabled": "refresh_topics_enabled",
    "refresh.topics.interval.seconds": "refresh_topics_interval_seconds",
    "heartbeats.replication.enabled": "heartbeats_replication_enabled",
    "replication.policy.class": "replication_policy_class",
    "replication.policy.separator": "replication_policy_separator",
    "replication.policy.internal.topic.separator.enabled": "replication_policy_internal_topic_separator_enabled",
    "mirrorless.lease.seconds": "lease_seconds",
    "mirrorless.connector.name": "connector_name",
    "errors.tolerance": "errors_tolerance",
    "errors.deadletterqueue.topic.name": "dead_letter_topic",
    "errors.deadletterqueue.topic.replication.factor": "dead_letter_replication_factor",
    "mirrorless.start.timestamp": "start_timestamp_ms",
    "mirrorless.on.gap": "on_gap",
    "mirrorless.max.bytes.per.second": "max_bytes_per_second",
    "mirrorless.cloudwatch.topics": "cloudwatch_topics",
    "topic.filter.class": "topic_filter_class",
    "group.filter.class": "group_filter_class",
    "config.property.filter.class": "config_property_filter_class",
    "config.properties.exclude": "config_properties_exclude",
    "use.defaults.from": "use_defaults_from",
    "sync.topic.configs.enabled": "sync_topic_configs_enabled",
    "sync.topic.configs.interval.seconds": "sync_topic_configs_interval_seconds",
    "sync.topic.acls.enabled": "sync_topic_acls_enabled",
    "sync.topic.acls.interval.seconds": "sync_topic_acls_interval_seconds",
    "mirrorless.acls.patterns": "acls_patterns",
    "mirrorless.acls.prune": "acls_prune",
    "emit.offset-syncs.enabled": "emit_offset_syncs_enabled",
    "offset.lag.max": "offset_lag_max",
    "offset-syncs.topic.location": "offset_syncs_topic_location",
    "offset-syncs.topic.replication.factor": "offset_syncs_topic_replication_factor",
    "mirrorless.sync.index.records": "sync_index_records",
    "refresh.groups.enabled": "refresh_groups_enabled",
    "refresh.groups.interval.seconds": "refresh_groups_interval_seconds",
    "emit.checkpoints.enabled": "emit_checkpoints_enabled",
    "emit.checkpoints.interval.seconds": "emit_checkpoints_interval_seconds",
    "checkpoints.topic.replication.factor": "checkpoints_topic_replication_factor",
    "sync.group.offsets.enabled": "sync_group_offsets_enabled",
    "sync.group.offsets.interval.seconds": "sync_group_offsets_interval_seconds",
    "emit.heartbeats.enabled": "emit_heartbeats_enabled",
    "emit.heartbeats.interval.seconds": "emit_heartbeats_interval_seconds",
    "heartbeats.topic.replication.factor": "heartbeats_topic_replication_factor",
}

# Key of the Connect worker -> field of Flow. Set as `key` or as `B.key`, B being the target.
WORKER_KEYS: Final[Mapping[str, str]] = {
    "offset.storage.topic": "offset_storage_topic",
    "offset.storage.replication.factor": "offset_storage_replication_factor",
    "offset.storage.partitions": "offset_storage_partitions",
}


def load(*files: str | PathLike[str]) -> Settings:
    """Read a configuration and check everything that is used.

    `files` is an mm2.properties, or one or several files of Connect's JSON; or the value of `Settings.file`, which
    stands for all of them. Raises ConfigurationError, in one line with file, key and value, for the first error.
    """
    understood = understand(*files)
    if understood.settings is None or understood.errors:
        raise understood.errors[0]
    return understood.settings


def understand(*files: str | PathLike[str]) -> Understanding:
    """Read a configuration as `load` does, but return all errors, warnings and notes; raises nothing."""
    location = locations.together(files)
    try:
        entries, warnings = _entries(location)
        return Reader(
            location,
            _spelling().tidy(entries),
            flow_keys=FLOW_KEYS,
            worker_keys=WORKER_KEYS,
            warnings=warnings,
        ).understand()
    except ConfigurationError as error:
        return Understanding(settings=None, errors=(error,))


def _entries(location: str) -> tuple[Mapping[str, PropertyEntry], tuple[str, ...]]:
    if location.startswith(mirrormaker1.PREFIX):
        return mirrormaker1.read_mirrormaker1(location)
    texts = [(file, locations.read(file)) for file in locations.apart(location)]
    if any(connect_json.is_json(text) for _, text in texts):
        found = connect_json.read_connectors(texts)
        return found.entries, found.warnings
    if len(texts) > 1:
        raise ConfigurationError("several files must be Connect's JSON; give one mm2.properties", file=texts[1][0])
    return properties.parse(texts[0][1], file=texts[0][0]), ()


@cache
def _spelling() -> KeyNormalizer:
    return KeyNormalizer(flow_keys=FLOW_KEYS, worker_keys=WORKER_KEYS, pattern_keys=pattern_keys(FLOW_KEYS))
