"""What a configuration says, as frozen values: clusters, and flows between them.

Defaults are those of MirrorMaker 2 (release 4.3) and stand here once. Texts are taken as a file has them; what they may
be is in `values`.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from mirrorless.errors import ConfigurationError
from mirrorless.settings.masking import MaskedMapping
from mirrorless.settings.values import (
    AclPatterns,
    Boolean,
    BytesPerSecond,
    ClientSettings,
    CountOrDefault,
    DefaultsFrom,
    OffsetReset,
    OnGap,
    Patterns,
    PositiveInt,
    Seconds,
    Text,
    TimestampMs,
    Tolerance,
)

DEFAULT_POLICY_CLASS: Final = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
# MirrorMaker 2 4.3. The two names with `log.` are the brokers', not the topics', and so exclude nothing.
DEFAULT_CONFIG_PROPERTIES_EXCLUDE: Final = (
    r"follower\.replication\.throttled\.replicas",
    r"leader\.replication\.throttled\.replicas",
    r"message\.timestamp\.difference\.max\.ms",
    r"log\.message\.timestamp\.before\.max\.ms",
    r"log\.message\.timestamp\.after\.max\.ms",
    r"message\.timestamp\.type",
    r"unclean\.leader\.election\.enable",
    r"min\.insync\.replicas",
)


class _Frozen(BaseModel):
    # A value that pydantic refuses may be a secret: it stays out of the error's text.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Cluster(_Frozen):
    """One Kafka cluster under its alias.

    `client` holds the Java client settings without the alias; `consumer.`, `producer.` and `admin.` prefixes stay and
    beat the plain key in that role. Neither repr nor `model_dump` shows its secrets; pickle keeps them.
    """

    alias: Text
    bootstrap_servers: Text
    client: ClientSettings = Field(default_factory=lambda: MaskedMapping({}))


def _offset_storage_topic(data: dict[str, Any]) -> str:
    return f"mm2-offsets.{data['source'].alias}.internal"


class Flow(_Frozen):
    """One direction between two clusters, with everything that is set for it. Intervals are in seconds."""

    source: Cluster
    target: Cluster
    topics: Patterns = (".*",)
    topics_exclude: Patterns = (r"mm2.*\.internal", r".*\.replica", "__.*")
    groups: Patterns = (".*",)
    groups_exclude: Patterns = ("console-consumer-.*", "connect-.*", "__.*")
    replication_factor: CountOrDefault = 2
    tasks_max: PositiveInt = 1
    refresh_topics_enabled: Boolean = True
    refresh_topics_interval_seconds: PositiveInt = 600
    heartbeats_replication_enabled: Boolean = True
    replication_policy_class: Text = DEFAULT_POLICY_CLASS
    replication_policy_separator: Text = "."
    replication_policy_internal_topic_separator_enabled: Boolean = True
    # Always with dots, whatever the separator: this topic is Connect's, not the policy's.
    offset_storage_topic: Text = Field(default_factory=_offset_storage_topic)
    offset_storage_replication_factor: CountOrDefault = 3
    offset_storage_partitions: CountOrDefault = 25
    lease_seconds: Seconds = 30.0
    start_timestamp_ms: TimestampMs | None = None
    auto_offset_reset: OffsetReset = "earliest"
    errors_tolerance: Tolerance = "none"
    dead_letter_topic: str | None = None
    dead_letter_replication_factor: CountOrDefault = 3
    on_gap: OnGap = "halt"
    max_bytes_per_second: BytesPerSecond | None = None
    topic_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
    group_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultGroupFilter"
    config_property_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
    config_properties_exclude: Patterns = DEFAULT_CONFIG_PROPERTIES_EXCLUDE
    use_defaults_from: DefaultsFrom = "target"
    sync_topic_configs_enabled: Boolean = True
    sync_topic_configs_interval_seconds: PositiveInt = 600
    sync_topic_acls_enabled: Boolean = True
    sync_topic_acls_interval_seconds: PositiveInt = 600
    acls_patterns: AclPatterns = ("literal",)
    acls_prune: Boolean = False

    @property
    def name(self) -> str:
        """The flow as its keys begin: `A->B`."""
        return f"{self.source.alias}->{self.target.alias}"

    @property
    def connections(self) -> tuple[Cluster, Cluster, str]:
        """What a running copy is connected with: where one of these changes, it has to begin anew."""
        return self.source, self.target, self.offset_storage_topic


class Settings(_Frozen):
    """A whole configuration: the clusters that can be reached and the enabled flows, in the order of `clusters`.

    `warnings` are lines for the operator about what was accepted but has no effect.
    """

    file: str
    clusters: tuple[Cluster, ...]
    flows: tuple[Flow, ...]
    warnings: tuple[str, ...] = ()

    def flow(self, name: str) -> Flow:
        """Return the enabled flow of this name (`A->B`, blanks allowed); raises ConfigurationError if there is none."""
        wanted = "->".join(part.strip() for part in name.split("->"))
        for flow in self.flows:
            if flow.name == wanted:
                return flow
        enabled = ", ".join(flow.name for flow in self.flows)
        raise ConfigurationError(
            f"no such flow is enabled; enabled: {enabled}", file=self.file, key=f"{wanted}.enabled"
        )
