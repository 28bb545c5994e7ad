"""What a configuration says, as frozen values: clusters, and flows between them.

Defaults are those of MirrorMaker 2 (release 4.3) and stand here once. Texts are taken as a file has them; what they may
be is in `values`.
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
    # What stands under a field is its meaning, for `mirrorless config explain` and docs/configuration.md.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)


class Cluster(_Frozen):
    """One Kafka cluster under its alias.

    `cluster_id` is what the operator calls it in place of the id that it reports. `client` holds the Java client
    settings without the alias; `consumer.`, `producer.` and `admin.` prefixes stay and beat the plain key in that role.
    Neither repr nor `model_dump` shows its secrets; pickle keeps them.
    """

    alias: Text
    bootstrap_servers: Text
    cluster_id: Text | None = None
    client: ClientSettings = Field(default_factory=lambda: MaskedMapping({}))


def _offset_storage_topic(data: dict[str, Any]) -> str:
    return f"mm2-offsets.{data['source'].alias}.internal"


class Flow(_Frozen):
    """One direction between two clusters, with everything that is set for it. Intervals are in seconds."""

    source: Cluster
    target: Cluster
    topics: Patterns = (".*",)
    """Source topics to replicate: patterns, separated by commas, each for the whole name."""
    topics_exclude: Patterns = (r"mm2.*\.internal", r".*\.replica", "__.*")
    """Source topics that are left out, whatever `topics` says."""
    groups: Patterns = (".*",)
    """Consumer groups whose offsets are translated: patterns, as for topics."""
    groups_exclude: Patterns = ("console-consumer-.*", "connect-.*", "__.*")
    """Consumer groups that are left out, whatever `groups` says."""
    replication_factor: CountOrDefault = 2
    """Replicas of new remote topics; `-1` leaves it to the brokers."""
    tasks_max: PositiveInt = 1
    """Slots: how many workers share the flow's partitions."""
    refresh_topics_enabled: Boolean = True
    """Whether new topics and partitions are looked for while running."""
    refresh_topics_interval_seconds: Interval = 600
    """How often new topics and partitions are looked for."""
    heartbeats_replication_enabled: Boolean = True
    """Heartbeat topics are replicated whatever the filter says."""
    replication_policy_class: Text = DEFAULT_POLICY_CLASS
    """How remote topics are named: this one puts the source's alias in front, `IdentityReplicationPolicy` does not;
    with or without Java's package."""
    replication_policy_separator: Text = "."
    """What stands between alias and topic in the names of remote topics."""
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
    """The name under which progress is kept, which is the connector's on Connect; Connect's JSON says it."""
    lease_seconds: Seconds = 120.0
    """How long a slot keeps its partitions before they are dealt anew. Between two leases a flow's only slot copies on;
    several pause for one to two seconds."""
    start_timestamp_ms: TimestampMs | None = None
    """Where partitions without progress begin: at the first record of this time or later; milliseconds since 1970, or
    `2026-01-31T12:00:00Z`."""
    auto_offset_reset: OffsetReset = "earliest"
    """Where partitions without progress begin, unless a timestamp says it: `earliest` or `latest`."""
    errors_tolerance: Tolerance = "none"
    """What happens with a record that cannot go over: `none` stops this partition only, `all` leaves the record out,
    says which, and goes on."""
    dead_letter_topic: str | None = None
    """With `errors.tolerance=all`, a topic on the target for the coordinates of what was left out."""
    dead_letter_replication_factor: CountOrDefault = 3
    """Replicas of the topic for what was left out, if it has to be created."""
    on_gap: OnGap = "halt"
    """What happens where records are missing that were never copied (retention was faster, the topic was created again,
    a log was cut): `halt` stops this partition only, `continue` goes on at the first record left."""
    max_bytes_per_second: BytesPerSecond | None = None
    """How much the whole flow may fetch, in bytes per second, divided among its slots; no limit if it is not set."""
    cloudwatch_topics: Patterns = (".*",)
    """Source topics with metrics of their own in CloudWatch while they lag or fail, which are six each and paid for one
    by one: patterns, as for topics; empty for none. The flow's own metrics are of all topics. The copy job reads it
    when it starts."""
    topic_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
    """Which topics are selected; or a class of your own."""
    group_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultGroupFilter"
    """Which consumer groups are selected; or a class of your own."""
    config_property_filter_class: Text = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
    """Which topic configs go over; or a class of your own."""
    config_properties_exclude: Patterns = DEFAULT_CONFIG_PROPERTIES_EXCLUDE
    """Topic configs that are left to the target: patterns. Setting it replaces the list."""
    use_defaults_from: DefaultsFrom = "target"
    """Whether a config at its default on the source is at the target's own default (`target`), or set to the source's
    value (`source`)."""
    sync_topic_configs_enabled: Boolean = True
    """Whether configs of remote topics follow their source topics; new ones are created with them in any case."""
    sync_topic_configs_interval_seconds: Interval = 600
    """How often configs are compared."""
    sync_topic_acls_enabled: Boolean = True
    """Whether ACLs of source topics are added to their remote topics."""
    sync_topic_acls_interval_seconds: Interval = 600
    """How often ACLs are compared."""
    acls_patterns: AclPatterns = ("literal",)
    """Which ACLs go over: `literal`, `prefixed` or both; prefixed ones only where a replicated topic begins so."""
    acls_prune: Boolean = False
    """Removes ACLs that this flow created, while it was `true`, once they are gone from the source; which those are
    is kept in `mm2-acls.<source>.internal` on the target."""
    emit_offset_syncs_enabled: Boolean = True
    """Whether the copy notes which source offset went to which target offset; without it no offset is translated."""
    offset_lag_max: NotNegativeInt = 100
    """How many records may go over without a new offset sync; a sync is written at most once a second a partition,
    and always before it falls quiet."""
    offset_syncs_topic_location: Location = "source"
    """The cluster that holds the offset syncs: `source` (`mm2-offset-syncs.<target>.internal`) or `target`
    (`mm2-offset-syncs.<source>.internal`)."""
    offset_syncs_topic_replication_factor: CountOrDefault = 3
    """Replicas of the offset syncs topic."""
    sync_index_records: PositiveInt = 100_000
    """An offset sync that outlives compaction is kept for every so many source offsets of a partition, the latest
    1,024 of them; the fewer, the shorter the walks to translate an old offset."""
    refresh_groups_enabled: Boolean = True
    """Whether new consumer groups are looked for; every pass of the checkpoints does."""
    refresh_groups_interval_seconds: Interval = 600
    """Accepted, and sooner than asked for: every pass lists the groups."""
    emit_checkpoints_enabled: Boolean = True
    """Whether translated group offsets are written to `<source>.checkpoints.internal` on the target."""
    emit_checkpoints_interval_seconds: Interval = 60
    """How often translated group offsets are written, at least; where offset syncs trigger it, more often."""
    checkpoints_topic_replication_factor: CountOrDefault = 3
    """Replicas of the checkpoints topic."""
    sync_group_offsets_enabled: Boolean = False
    """Whether translated offsets are also committed for the groups on the target, as long as they are on the source:
    never for a group that is active there, never backwards."""
    sync_group_offsets_interval_seconds: Interval = 60
    """How often translated offsets are committed."""
    emit_heartbeats_enabled: Boolean = True
    """Whether a record goes into the target's `heartbeats`, for every ordered pair of clusters, enabled or not."""
    emit_heartbeats_interval_seconds: Interval = 1
    """How often heartbeats are sent."""
    heartbeats_topic_replication_factor: CountOrDefault = 3
    """Replicas of the heartbeats topic."""
    # What the rest of the file adds: not settings of this flow, so neither shown nor explained with them.
    _other_aliases: tuple[str, ...] = PrivateAttr(default=())
    _circle: tuple[Flow, ...] = PrivateAttr(default=())

    @property
    def name(self) -> str:
        """The flow as its keys begin: `A->B`."""
        return f"{self.source.alias}->{self.target.alias}"

    def is_default(self, field: str) -> bool:
        """Whether nothing sets this field, so that its default counts."""
        return field not in self.model_fields_set

    @property
    def aliases(self) -> tuple[str, ...]:
        """Aliases of all clusters of the file, the flow's own two first."""
        return self.source.alias, self.target.alias, *self._other_aliases

    @property
    def circle(self) -> tuple[Flow, ...]:
        """The file's other enabled flows that lie on a directed cycle of clusters with this one."""
        return self._circle

    def among(self, *, aliases: Iterable[str], circle: Iterable[Flow]) -> Flow:
        """Return this flow with what the rest of the file adds: the aliases of `clusters`, and its `circle`."""
        flow = self.model_copy()
        flow._other_aliases = tuple(alias for alias in aliases if alias not in (self.source.alias, self.target.alias))
        flow._circle = tuple(circle)
        return flow

    @property
    def writes_checkpoints(self) -> bool:
        """Whether checkpoints are written: without offset syncs there is nothing to translate by."""
        return self.emit_checkpoints_enabled and self.emit_offset_syncs_enabled

    @property
    def connections(self) -> tuple[object, ...]:
        """What a running copy is connected with: where one of these changes, it has to begin anew."""
        syncs = self.emit_offset_syncs_enabled, self.offset_syncs_topic_location
        return self.source, self.target, self.offset_storage_topic, self.connector_name, syncs


class Settings(_Frozen):
    """A whole configuration: the clusters that can be reached and the enabled flows, in the order of `clusters`.

    `heartbeats` are the ordered pairs that send a sign of life to their target, be the flow enabled or not: from the
    heartbeats of the way back a cluster learns who is upstream (reference, section 2.5).
    `warnings` are lines for the operator about what was read otherwise than it is written, or has no effect; `notes`
    are MirrorMaker 2's settings that make no sense here.
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
        raise FlowNotEnabled(f"no such flow is enabled; enabled: {enabled}", file=self.file, key=f"{wanted}.enabled")
