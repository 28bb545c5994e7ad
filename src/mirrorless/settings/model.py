"""A configuration as frozen values: clusters, and flows between them.

Defaults are those of MirrorMaker 2 (release 4.3) and are declared only here. Values are read as a file has them; the
accepted values are in `values`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from mirrorless.errors import FlowNotEnabled
from mirrorless.settings.masking import MaskedMapping
from mirrorless.settings.values import (
    AclPatterns,
    Boolean,
    BytesPerSecond,
    ClientSettings,
    CountOrDefault,
    DefaultsFrom,
    Interval,
    Location,
    NotNegativeInt,
    OffsetReset,
    OnGap,
    Patterns,
    PositiveInt,
    Seconds,
    Text,
    TimestampMs,
    Tolerance,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_POLICY_CLASS: Final = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
# MirrorMaker 2 4.3. The two names with `log.` are broker configs, not topic configs, and so exclude nothing.
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
    # The text under a field is its meaning, for `mirrorless config explain` and docs/configuration.md.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)


class Cluster(_Frozen):
    """One Kafka cluster under its alias.

    `cluster_id` is the operator's name of the cluster in place of the id that it reports. `client` has the Java client
    settings without the alias; `consumer.`, `producer.` and `admin.` prefixes stay and take precedence in that role.
    Neither repr nor `model_dump` shows its secrets; pickle keeps them.
    """

    alias: Text
    bootstrap_servers: Text
    cluster_id: Text | None = None
    client: ClientSettings = Field(default_factory=lambda: MaskedMapping({}))


def _offset_storage_topic(data: dict[str, Any]) -> str:
    return f"mm2-offsets.{data['source'].alias}.internal"


class Flow(_Frozen):
    """One direction between two clusters, with all of its settings. Intervals are in seconds."""

    source: Cluster
    target: Cluster
    topics: Patterns = (".*",)
    """Source topics to replicate: patterns, separated by commas, each for the whole name."""
    topics_exclude: Patterns = (r"mm2.*\.internal", r".*\.replica", "__.*")
    """Source topics to exclude, whatever `topics` says."""
    groups: Patterns = (".*",)
    """Consumer groups whose offsets are translated: patterns, as for topics."""
    groups_exclude: Patterns = ("console-consumer-.*", "connect-.*", "__.*")
    """Consumer groups to exclude, whatever `groups` says."""
    replication_factor: CountOrDefault = 2
    """Replicas of new remote topics; `-1` leaves it to the brokers."""
    tasks_max: PositiveInt = 1
    """Slots: how many workers share the flow's partitions."""
    refresh_topics_enabled: Boolean = True
    """Whether new topics and partitions are detected while running."""
    refresh_topics_interval_seconds: Interval = 600
    """How often to check for new topics and partitions."""
    heartbeats_replication_enabled: Boolean = True
    """Whether heartbeat topics are replicated, whatever the topic filter says."""
    replication_policy_class: Text = DEFAULT_POLICY_CLASS
    """Names remote topics: this class prepends the source's alias, `IdentityReplicationPolicy` keeps the name; with or
    without Java's package; or a custom Python class."""
    replication_policy_separator: Text = "."
    """Separator between alias and topic in the names of remote topics."""
    replication_policy_internal_topic_separator_enabled: Boolean = True
    """Whether internal topics use the separator too (KIP-949)."""
    # Always with dots, whatever the separator: this topic is Connect's, not the policy's.
    offset_storage_topic: Text = Field(default_factory=_offset_storage_topic)
    """The progress topic, on the target."""
    offset_storage_replication_factor: CountOrDefault = 3
    """Replicas of the progress topic."""
    offset_storage_partitions: CountOrDefault = 25
    """Partitions of the progress topic."""
    connector_name: Text = "MirrorSourceConnector"
    """The name under which progress is stored, which is the connector's on Connect; from Connect's JSON."""
    lease_seconds: Seconds = 120.0
    """How long a slot keeps its partitions before they are reassigned. Between two leases, a flow with one slot
    continues to copy; several slots pause for one to two seconds."""
    start_timestamp_ms: TimestampMs | None = None
    """Where partitions without progress begin: at the first record of this time or later; milliseconds since 1970, or
    `2026-01-31T12:00:00Z`."""
    auto_offset_reset: OffsetReset = "earliest"
    """Where partitions without progress begin, if there is no start timestamp: `earliest` or `latest`."""
    errors_tolerance: Tolerance = "none"
    """What happens to a record that cannot be copied: `none` stops its partition only, `all` skips the record, logs
    it, and continues."""
    dead_letter_topic: str | None = None
    """With `errors.tolerance=all`, a topic on the target for the coordinates of skipped records."""
    dead_letter_replication_factor: CountOrDefault = 3
    """Replicas of the topic for skipped records, if it has to be created."""
    on_gap: OnGap = "halt"
    """What happens when records are missing that were not copied (they expired, the topic was recreated, a log was
    truncated): `halt` stops the partition only, `continue` skips the gap."""
    max_bytes_per_second: BytesPerSecond | None = None
    """How much the whole flow may fetch, in bytes per second, divided among its slots; no limit if not set."""
    cloudwatch_topics: Patterns = (".*",)
    """Source topics with metrics per topic in CloudWatch, eight per topic and charged one by one: patterns, as
    for topics; empty for none. Metrics of the flow include all topics. The copy job reads it when it starts."""
    topic_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
    """Selects topics; or a custom Python class."""
    group_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultGroupFilter"
    """Selects consumer groups; or a custom Python class."""
    config_property_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
    """Selects topic configs; or a custom Python class."""
    config_properties_exclude: Patterns = DEFAULT_CONFIG_PROPERTIES_EXCLUDE
    """Topic configs that are not replicated: patterns. Setting it replaces the list."""
    use_defaults_from: DefaultsFrom = "target"
    """For a config at its default on the source: use the target's default (`target`), or set the source's value
    (`source`)."""
    sync_topic_configs_enabled: Boolean = True
    """Whether configs of remote topics follow their source topics; new topics are created with them in any case."""
    sync_topic_configs_interval_seconds: Interval = 600
    """How often configs are compared."""
    sync_topic_acls_enabled: Boolean = True
    """Whether ACLs of source topics are added to their remote topics."""
    sync_topic_acls_interval_seconds: Interval = 600
    """How often ACLs are compared."""
    acls_patterns: AclPatterns = ("literal",)
    """Which ACLs are replicated: `literal`, `prefixed` or both; prefixed only where a replicated topic matches."""
    acls_prune: Boolean = False
    """Removes ACLs that this flow created, while this was `true`, once they are gone from the source; these ACLs are
    recorded in `mm2-acls.<source>.internal` on the target."""
    emit_offset_syncs_enabled: Boolean = True
    """Whether the copy writes offset syncs; without them no offset is translated."""
    offset_lag_max: NotNegativeInt = 100
    """How many records may be copied without a new offset sync; a partition writes at most one sync per second, and
    always one before it becomes idle."""
    offset_syncs_topic_location: Location = "source"
    """The cluster that holds the offset syncs: `source` (`mm2-offset-syncs.<target>.internal`) or `target`
    (`mm2-offset-syncs.<source>.internal`)."""
    offset_syncs_topic_replication_factor: CountOrDefault = 3
    """Replicas of the offset syncs topic."""
    sync_index_records: PositiveInt = 100_000
    """One offset sync that survives compaction is written for every this many source offsets of a partition, for the
    latest 1,024 of them; fewer offsets make translation of an old offset faster."""
    refresh_groups_enabled: Boolean = True
    """Whether new consumer groups are detected; every checkpoint run does."""
    refresh_groups_interval_seconds: Interval = 600
    """Accepted, without effect: every checkpoint run lists the groups."""
    emit_checkpoints_enabled: Boolean = True
    """Whether translated group offsets are written to `<source>.checkpoints.internal` on the target."""
    emit_checkpoints_interval_seconds: Interval = 60
    """How often translated group offsets are written, at least; more often where offset syncs trigger it."""
    checkpoints_topic_replication_factor: CountOrDefault = 3
    """Replicas of the checkpoints topic."""
    sync_group_offsets_enabled: Boolean = False
    """Whether translated offsets are also committed for the groups on the target, while they exist on the source:
    never for a group that is active on the target, never backwards."""
    sync_group_offsets_interval_seconds: Interval = 60
    """How often translated offsets are committed."""
    emit_heartbeats_enabled: Boolean = True
    """Whether heartbeats are written to the target's `heartbeats`, for each pair of clusters, enabled or not."""
    emit_heartbeats_interval_seconds: Interval = 1
    """How often heartbeats are emitted."""
    heartbeats_topic_replication_factor: CountOrDefault = 3
    """Replicas of the heartbeats topic."""
    # From the rest of the file: not settings of this flow, so neither shown nor explained with them.
    _other_aliases: tuple[str, ...] = PrivateAttr(default=())
    _circle: tuple[Flow, ...] = PrivateAttr(default=())

    @property
    def name(self) -> str:
        """The flow as its keys begin: `A->B`."""
        return f"{self.source.alias}->{self.target.alias}"

    def is_default(self, field: str) -> bool:
        """Whether the field is not set, so that its default applies."""
        return field not in self.model_fields_set

    @property
    def aliases(self) -> tuple[str, ...]:
        """Aliases of all clusters of the file, the flow's own two first."""
        return self.source.alias, self.target.alias, *self._other_aliases

    @property
    def circle(self) -> tuple[Flow, ...]:
        """The file's other enabled flows that are part of a directed cycle of clusters with this flow."""
        return self._circle

    def among(self, *, aliases: Iterable[str], circle: Iterable[Flow]) -> Flow:
        """Return this flow with what the rest of the file adds: the aliases of `clusters`, and its `circle`."""
        flow = self.model_copy()
        flow._other_aliases = tuple(alias for alias in aliases if alias not in (self.source.alias, self.target.alias))
        flow._circle = tuple(circle)
        return flow

    @property
    def writes_checkpoints(self) -> bool:
        """Whether checkpoints are written: without offset syncs no offset can be translated."""
        return self.emit_checkpoints_enabled and self.emit_offset_syncs_enabled

    @property
    def connections(self) -> tuple[object, ...]:
        """The settings of a running copy's connections: if one of them changes, the copy has to restart."""
        syncs = self.emit_offset_syncs_enabled, self.offset_syncs_topic_location
        return self.source, self.target, self.offset_storage_topic, self.connector_name, syncs


class Settings(_Frozen):
    """A whole configuration: the clusters that can be reached and the enabled flows, in the order of `clusters`.

    `heartbeats` are the ordered pairs that emit heartbeats to their target, whether the flow is enabled or not: from
    the heartbeats of the reverse direction a cluster learns who is upstream.
    `warnings` are lines for the operator about what was corrected or has no effect; `notes` are MirrorMaker 2's
    settings that have no meaning here.
    """

    file: str
    clusters: tuple[Cluster, ...]
    flows: tuple[Flow, ...]
    heartbeats: tuple[Flow, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def flow(self, name: str) -> Flow:
        """Return the enabled flow of this name (`A->B`, blanks allowed); raises FlowNotEnabled if there is none."""
        wanted = "->".join(part.strip() for part in name.split("->"))
        for flow in self.flows:
            if flow.name == wanted:
                return flow
        enabled = ", ".join(flow.name for flow in self.flows)
        raise FlowNotEnabled(f"this flow is not enabled; enabled: {enabled}", file=self.file, key=f"{wanted}.enabled")
