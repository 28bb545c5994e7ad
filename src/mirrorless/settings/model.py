"""A configuration as frozen values: flows between clusters.

Defaults are those of MirrorMaker 2 (release 4.3) and are declared only here. Values are read as a file has them; the
accepted values are in `values`.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import ConfigDict, Field, PrivateAttr

from mirrorless.errors import ConfigurationError, FlowNotEnabled
from mirrorless.settings.cluster import Cluster, Frozen
from mirrorless.settings.values import (
    AclPatterns,
    Boolean,
    BothDirections,
    BytesPerSecond,
    CountOrDefault,
    DefaultsFrom,
    Engine,
    ExcludedTopics,
    Fence,
    Folder,
    Interval,
    Location,
    Names,
    NotNegativeInt,
    OffsetReset,
    OffsetsMode,
    OnGap,
    Patterns,
    PositiveInt,
    Renames,
    Scope,
    Seconds,
    Separator,
    Switches,
    Text,
    TimestampMs,
    Tolerance,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


_OF_DEDICATED_MODE: Final = re.compile(r"mm2-offsets\.(.+)\.internal")


def _offset_storage_topic(data: dict[str, Any]) -> str:
    return f"mm2-offsets.{data['source'].alias}.internal"


class Flow(Frozen):
    """One direction between two clusters, with everything that is set for it. Intervals are in seconds.

    A setting is declared here and nowhere else: its key as the field's alias, what it may be, its default, its meaning.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, loc_by_alias=False)

    source: Cluster
    target: Cluster
    topics: Patterns = Field((".*",), alias="topics")
    """Source topics to replicate: patterns, separated by commas, each for the whole name."""
    topics_exclude: ExcludedTopics = Field((r"mm2.*\.internal", r".*\.replica", "__.*"), alias="topics.exclude")
    """Source topics to exclude, whatever `topics` says."""
    groups: Patterns = Field((".*",), alias="groups")
    """Consumer groups whose offsets are translated: patterns, as for topics."""
    groups_exclude: Patterns = Field(("console-consumer-.*", "connect-.*", "__.*"), alias="groups.exclude")
    """Consumer groups to exclude, whatever `groups` says."""
    replication_factor: CountOrDefault = Field(2, alias="replication.factor")
    """Replicas of new remote topics; `-1` leaves it to the brokers."""
    tasks_max: PositiveInt = Field(1, alias="tasks.max")
    """Slots: how many workers share the flow's partitions."""
    refresh_topics_enabled: Boolean = Field(True, alias="refresh.topics.enabled")
    """Whether new topics and partitions are detected while running."""
    refresh_topics_interval_seconds: Interval = Field(600, alias="refresh.topics.interval.seconds")
    """How often to check for new topics and partitions."""
    heartbeats_replication_enabled: Boolean = Field(True, alias="heartbeats.replication.enabled")
    """Whether heartbeat topics are replicated, whatever the topic filter says."""
    replication_policy_class: Text = Field(DEFAULT_POLICY_CLASS, alias="replication.policy.class")
    """Names remote topics: this class prepends the source's alias, `IdentityReplicationPolicy` keeps the name; with or
    without Java's package; or a custom Python class."""
    replication_policy_separator: Separator = Field(".", alias="replication.policy.separator")
    """Separator between alias and topic in the names of remote topics; it may be empty with
    `IdentityReplicationPolicy`."""
    replication_policy_internal_topic_separator_enabled: Boolean = Field(
        True, alias="replication.policy.internal.topic.separator.enabled"
    )
    """Whether internal topics use the separator too (KIP-949)."""
    topics_rename: Renames = Field((), alias="mirrorless.topics.rename")
    """Names of topics before the policy is applied: rules `pattern -> name`, separated by commas, each for the whole
    name; the first that matches counts, and `$1` is the pattern's first group. The flow in the other direction has the
    inverse by itself."""
    # Always with dots, whatever the separator: this topic is Connect's, not the policy's.
    offset_storage_topic: Annotated[Text, Scope.WORKER] = Field(
        default_factory=_offset_storage_topic, alias="offset.storage.topic"
    )
    """The progress topic, on the target."""
    offset_storage_replication_factor: Annotated[CountOrDefault, Scope.WORKER] = Field(
        3, alias="offset.storage.replication.factor"
    )
    """Replicas of the progress topic."""
    offset_storage_partitions: Annotated[CountOrDefault, Scope.WORKER] = Field(25, alias="offset.storage.partitions")
    """Partitions of the progress topic."""
    connector_name: Text = Field("MirrorSourceConnector", alias="mirrorless.connector.name")
    """The name under which progress is stored, which is the connector's on Connect; from Connect's JSON."""
    progress_alias_set: str | None = Field(None, alias="mirrorless.progress.alias")
    """The source's alias in the keys of progress, and of the topic of checkpoints, if it is not that of `clusters`; it
    may be empty, as MirrorMaker 2 writes it with an empty `source.cluster.alias`."""
    lease_seconds: Seconds = Field(120.0, alias="mirrorless.lease.seconds")
    """How long a slot keeps its partitions before they are reassigned. Between two leases, a flow with one slot
    continues to copy; several slots pause for one to two seconds."""
    engine: Engine = Field("auto", alias="mirrorless.engine")
    """What copies the flow: `functions` (the `copy` function, or the process of `mirrorless run`), `spark` (the copy
    job), or `auto`: functions, and Spark for a backlog that is too large for them."""
    spark_start_backlog_seconds: Seconds = Field(600.0, alias="mirrorless.spark.start.backlog.seconds")
    """With `auto`, Spark is started when the functions would need longer than this for the backlog."""
    spark_stop_caught_up_seconds: Seconds = Field(900.0, alias="mirrorless.spark.stop.caught.up.seconds")
    """With `auto`, Spark is stopped when it has been caught up for so long."""
    archive_object_seconds: Seconds = Field(60.0, alias="mirrorless.archive.object.seconds")
    """Of a flow into an archive: after how long fetched batches become an object, which is what a restore may lack."""
    copy_tick_seconds: Seconds = Field(60.0, alias="mirrorless.copy.tick.seconds")
    """How often the `copy` function is invoked, which is the schedule of its deployment; an invocation copies until
    the next one is ready, at most for nearly twice as long."""
    copy_idle_exit: Boolean = Field(False, alias="mirrorless.copy.idle.exit")
    """Whether an invocation of `copy` ends when only heartbeats have arrived for five seconds: cheaper for idle flows,
    but a record may wait for the next invocation."""
    offsets: OffsetsMode = Field("dense", alias="mirrorless.offsets")
    """Offsets of remote records: `dense` gives them consecutive offsets, `identical` those that they have on the
    source, with any broker as the target; needs an empty remote topic to begin with."""
    offsets_identical_topics: Patterns = Field((".*",), alias="mirrorless.offsets.identical.topics")
    """With `mirrorless.offsets=identical`, the source topics that it applies to: patterns, as for topics."""
    offsets_holes_max: PositiveInt = Field(1_000_000, alias="mirrorless.offsets.holes.max")
    """With `mirrorless.offsets=identical`, the longest run of offsets without a record that is reproduced after the
    first record of a partition; each such offset takes 78 bytes on the target. The partition stops at a longer one, and
    `mirrorless plan` reports a partition that has more such offsets in all."""
    offsets_holes_per_second: PositiveInt = Field(200, alias="mirrorless.offsets.holes.per.second")
    """With `mirrorless.offsets=identical`, `mirrorless plan` reports a partition that gets more offsets without a
    record than this per second; each transaction has one, its marker, which costs two round trips to the target."""
    start_timestamp_ms: TimestampMs | None = Field(None, alias="mirrorless.start.timestamp")
    """Where partitions without progress begin: at the first record of this time or later; milliseconds since 1970, or
    `2026-01-31T12:00:00Z`."""
    start_group: str | None = Field(None, alias="mirrorless.start.group")
    """A consumer group of the source: partitions without progress begin at its committed offset, those where it has
    none as without this setting. For a topic that another tool has copied under this group."""
    auto_offset_reset: Annotated[OffsetReset, Scope.SOURCE_CLIENT] = Field(
        "earliest", alias="consumer.auto.offset.reset"
    )
    """Where partitions without progress begin, if there is no start timestamp: `earliest` or `latest`."""
    errors_tolerance: Tolerance = Field("none", alias="errors.tolerance")
    """What happens to a record that cannot be copied: `none` stops its partition only, `all` skips the record, logs
    it, and continues."""
    dead_letter_topic: str | None = Field(None, alias="errors.deadletterqueue.topic.name")
    """With `errors.tolerance=all`, a topic on the target for the coordinates of skipped records."""
    dead_letter_replication_factor: CountOrDefault = Field(3, alias="errors.deadletterqueue.topic.replication.factor")
    """Replicas of the topic for skipped records, if it has to be created."""
    on_gap: OnGap = Field("halt", alias="mirrorless.on.gap")
    """What happens when records are missing that were not copied (they expired, the topic was recreated, a log was
    truncated): `halt` stops the partition only, `continue` skips the gap."""
    max_bytes_per_second: BytesPerSecond | None = Field(None, alias="mirrorless.max.bytes.per.second")
    """How much the whole flow may fetch, in bytes per second, divided among its slots; no limit if not set."""
    cloudwatch_topics: Patterns = Field((".*",), alias="mirrorless.cloudwatch.topics")
    """Source topics with metrics per topic in CloudWatch while they lag or fail, six per topic and charged one by one:
    patterns, as for topics; empty for none. Metrics of the flow include all topics. The copy job reads it when it
    starts."""
    topic_filter_class: Text = Field("org.apache.kafka.connect.mirror.DefaultTopicFilter", alias="topic.filter.class")
    """Selects topics; or a custom Python class."""
    group_filter_class: Text = Field("org.apache.kafka.connect.mirror.DefaultGroupFilter", alias="group.filter.class")
    """Selects consumer groups; or a custom Python class."""
    config_property_filter_class: Text = Field(
        "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter", alias="config.property.filter.class"
    )
    """Selects topic configs; or a custom Python class."""
    config_properties_exclude: Patterns = Field(DEFAULT_CONFIG_PROPERTIES_EXCLUDE, alias="config.properties.exclude")
    """Topic configs that are not replicated: patterns. Setting it replaces the list."""
    use_defaults_from: DefaultsFrom = Field("target", alias="use.defaults.from")
    """For a config at its default on the source: use the target's default (`target`), or set the source's value
    (`source`)."""
    sync_topic_configs_enabled: Boolean = Field(True, alias="sync.topic.configs.enabled")
    """Whether configs of remote topics follow their source topics; new topics are created with them in any case."""
    sync_topic_configs_interval_seconds: Interval = Field(600, alias="sync.topic.configs.interval.seconds")
    """How often configs are compared."""
    sync_topic_acls_enabled: Boolean = Field(True, alias="sync.topic.acls.enabled")
    """Whether ACLs of source topics are added to their remote topics."""
    sync_topic_acls_interval_seconds: Interval = Field(600, alias="sync.topic.acls.interval.seconds")
    """How often ACLs are compared."""
    acls_patterns: AclPatterns = Field(("literal",), alias="mirrorless.acls.patterns")
    """Which ACLs are replicated: `literal`, `prefixed` or both; prefixed only where a replicated topic matches."""
    acls_prune: Boolean = Field(False, alias="mirrorless.acls.prune")
    """Removes ACLs that this flow created, while this was `true`, once they are gone from the source; these ACLs are
    recorded in `mm2-acls.<source>.internal` on the target."""
    sync_kinds: Names = Field((), alias="mirrorless.sync.kinds")
    """What the flow also sets on its target, at the interval of ACLs: names of the kinds of rights and limits, such as
    `quotas`, separated by commas. What differs and is not set is reported by `plan`, `verify` and `drill`."""
    emit_offset_syncs_enabled: Boolean = Field(True, alias="emit.offset-syncs.enabled")
    """Whether the copy writes offset syncs; without them no offset is translated."""
    offset_lag_max: NotNegativeInt = Field(100, alias="offset.lag.max")
    """How many records may be copied without a new offset sync; a partition writes at most one sync per second, and
    always one before it becomes idle."""
    offset_syncs_topic_location: Location = Field("source", alias="offset-syncs.topic.location")
    """The cluster that holds the offset syncs: `source` (`mm2-offset-syncs.<target>.internal`) or `target`
    (`mm2-offset-syncs.<source>.internal`)."""
    offset_syncs_topic_replication_factor: CountOrDefault = Field(3, alias="offset-syncs.topic.replication.factor")
    """Replicas of the offset syncs topic."""
    sync_index_records: PositiveInt = Field(100_000, alias="mirrorless.sync.index.records")
    """One offset sync that survives compaction is written for every this many source offsets of a partition, for the
    latest 1,024 of them; fewer offsets make translation of an old offset faster."""
    refresh_groups_enabled: Boolean = Field(True, alias="refresh.groups.enabled")
    """Whether new consumer groups are detected; every checkpoint run does."""
    refresh_groups_interval_seconds: Interval = Field(600, alias="refresh.groups.interval.seconds")
    """Accepted, without effect: every checkpoint run lists the groups."""
    emit_checkpoints_enabled: Boolean = Field(True, alias="emit.checkpoints.enabled")
    """Whether translated group offsets are written to `<source>.checkpoints.internal` on the target."""
    emit_checkpoints_interval_seconds: Interval = Field(60, alias="emit.checkpoints.interval.seconds")
    """How often translated group offsets are written, at least; more often where offset syncs trigger it."""
    checkpoints_topic_replication_factor: CountOrDefault = Field(3, alias="checkpoints.topic.replication.factor")
    """Replicas of the checkpoints topic."""
    sync_group_offsets_enabled: Boolean = Field(False, alias="sync.group.offsets.enabled")
    """Whether translated offsets are also committed for the groups on the target, while they exist on the source:
    never for a group that is active on the target, never backwards."""
    sync_group_offsets_interval_seconds: Interval = Field(60, alias="sync.group.offsets.interval.seconds")
    """How often translated offsets are committed."""
    emit_heartbeats_enabled: Boolean = Field(True, alias="emit.heartbeats.enabled")
    """Whether heartbeats are written to the target's `heartbeats`, for each pair of clusters, enabled or not."""
    emit_heartbeats_interval_seconds: Interval = Field(1, alias="emit.heartbeats.interval.seconds")
    """How often heartbeats are emitted."""
    heartbeats_topic_replication_factor: CountOrDefault = Field(3, alias="heartbeats.topic.replication.factor")
    """Replicas of the heartbeats topic."""
    rpo_seconds: Seconds | None = Field(None, alias="mirrorless.rpo.seconds")
    """Limit for `mirrorless drill`: how old the oldest record that is not copied yet, and the last heartbeat, may be;
    no limit if not set."""
    rto_seconds: Seconds | None = Field(None, alias="mirrorless.rto.seconds")
    """Limit for `mirrorless drill`: how long the measured part of a failover may take; no limit if not set."""
    drill_reports: Folder | None = Field(None, alias="mirrorless.drill.reports")
    """Where `mirrorless drill` stores its reports, and the live page finds them: a folder, or `s3://bucket/prefix`;
    not stored if not set."""
    fence: Fence = Field("auto", alias="mirrorless.fence")
    """How a switchover blocks writers on the source: `acl` (DENY WRITE), `config` (`max.message.bytes`),
    `command:PATH`, `none`, or `auto`: `acl` where the cluster has an authorizer and clients do not log in with IAM,
    else `config`."""
    fence_quiet_seconds: Seconds = Field(10.0, alias="mirrorless.fence.quiet.seconds")
    """How long no record may arrive on the source after the fence before a switchover continues."""
    switch: Switches = Field((), alias="mirrorless.switch")
    """What a switchover tells clients by, separated by commas: `ssm:/PARAMETER`, `route53:ZONE/NAME`, `file:PATH`,
    `http:URL`, `command:PATH`."""
    both_directions: BothDirections | None = Field(None, alias="mirrorless.both.directions")
    """What flows in both directions do with a topic whose name both keep: `refuse` to copy it (the default); take
    `turns`, so that only the flow from the cluster that applications write to copies; or `skip` what a flow has copied,
    so that each copies only records written to its own source."""
    active_cluster: str | None = Field(None, alias="mirrorless.active.cluster")
    """With `mirrorless.both.directions=turns`, the cluster that applications write to at first: only the flow from it
    copies, until an operation moves the applications. Later the operations say which it is."""
    paused_by_file: Boolean = Field(False, alias="mirrorless.paused")
    """Whether the flow is paused by the file, whatever `mirrorless resume` says; Strimzi's `state` sets it."""
    # From the rest of the file: not settings of this flow, so neither shown nor explained with them.
    _other_aliases: tuple[str, ...] = PrivateAttr(default=())
    _circle: tuple[Flow, ...] = PrivateAttr(default=())
    _beside: tuple[Flow, ...] = PrivateAttr(default=())
    _inverts: Flow | None = PrivateAttr(default=None)

    @property
    def name(self) -> str:
        """The flow as its keys begin: `A->B`."""
        return f"{self.source.alias}->{self.target.alias}"

    def is_default(self, field: str) -> bool:
        """Whether the field is not set, so that its default applies."""
        return field not in self.model_fields_set

    @property
    def progress_alias(self) -> str:
        """The source's alias in the keys of progress; it may be empty."""
        return self.source.alias if self.progress_alias_set is None else self.progress_alias_set

    @property
    def worker_alias(self) -> str:
        """The source's alias in the names of MirrorMaker 2's worker, of which the progress topic is one."""
        named = _OF_DEDICATED_MODE.fullmatch(self.offset_storage_topic)
        return self.source.alias if named is None else named[1]

    @property
    def aliases(self) -> tuple[str, ...]:
        """Aliases of all clusters of the file, the flow's own two first."""
        return self.source.alias, self.target.alias, *self._other_aliases

    @property
    def circle(self) -> tuple[Flow, ...]:
        """The file's other enabled flows that are part of a directed cycle of clusters with this flow."""
        return self._circle

    @property
    def beside(self) -> tuple[Flow, ...]:
        """The file's other enabled flows to the same target."""
        return self._beside

    @property
    def inverts(self) -> Flow | None:
        """The flow in the other direction if it renames topics: this one gives them their names back."""
        return self._inverts

    def inverting(self, other: Flow) -> Flow:
        """Return this flow with the inverse of the rules of the flow in the other direction."""
        flow = self.model_copy()
        flow._inverts = other
        return flow

    def among(self, *, aliases: Iterable[str], circle: Iterable[Flow], beside: Iterable[Flow] = ()) -> Flow:
        """Return this flow with what the rest of the file adds: the aliases of `clusters`, `circle` and `beside`."""
        flow = self.model_copy()
        flow._other_aliases = tuple(alias for alias in aliases if alias not in (self.source.alias, self.target.alias))
        flow._circle = tuple(circle)
        flow._beside = tuple(beside)
        return flow

    @property
    def directions(self) -> str:
        """`mirrorless.both.directions`; where it is not set, flows with an active cluster take turns."""
        return self.both_directions or ("refuse" if self.active_cluster is None else "turns")

    @property
    def writes_checkpoints(self) -> bool:
        """Whether checkpoints are written: without offset syncs no offset can be translated."""
        return self.emit_checkpoints_enabled and self.emit_offset_syncs_enabled

    @property
    def connections(self) -> tuple[object, ...]:
        """The settings of a running copy's connections: if one of them changes, the copy has to restart."""
        syncs = self.emit_offset_syncs_enabled, self.offset_syncs_topic_location
        return self.source, self.target, self.offset_storage_topic, self.connector_name, syncs, self.paused_by_file


def _keys(scope: Scope) -> dict[str, str]:
    """Keys of the settings of one scope, each with its field."""
    found: dict[str, str] = {}
    for field, info in Flow.model_fields.items():
        marks = [mark for mark in info.metadata if isinstance(mark, Scope)] or [Scope.FLOW]
        if info.alias is not None and scope in marks:
            found[info.alias] = field
    return found


FLOW_KEYS: Final[Mapping[str, str]] = _keys(Scope.FLOW)
"""Key of a flow -> field of Flow. Set as `A->B.key` or as `key`."""
WORKER_KEYS: Final[Mapping[str, str]] = _keys(Scope.WORKER)
"""Key of the Connect worker -> field of Flow. Set as `key` or as `B.key`, B being the target."""
SOURCE_CLIENT_KEYS: Final[Mapping[str, str]] = _keys(Scope.SOURCE_CLIENT)
"""Key of the source's clients -> field of Flow. Set as `A.key` or as `A->B.source.key`, A being the source."""


class Settings(Frozen):
    """A whole configuration: the clusters that can be reached and the enabled flows, in the order of `clusters`.

    `heartbeats` are the ordered pairs that emit heartbeats to their target, whether the flow is enabled or not: from
    the heartbeats of the reverse direction a cluster learns who is upstream.
    `archived` are the enabled flows into archives, which are not among `flows`; `archives` has the location of each
    archive with its alias. `warnings` are lines for the operator about what was corrected or has no effect; `notes` are
    MirrorMaker 2's settings that have no meaning here.
    """

    file: str
    clusters: tuple[Cluster, ...]
    flows: tuple[Flow, ...]
    heartbeats: tuple[Flow, ...] = ()
    archived: tuple[Flow, ...] = ()
    archives: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def with_engine(self, engine: str) -> Settings:
        """Return the configuration with this engine for every flow; raises ConfigurationError for an unknown one."""
        if engine not in ("auto", "functions", "spark"):
            raise ConfigurationError("must be auto or functions or spark", key="mirrorless.engine", value=engine)
        flows = tuple(flow.model_copy(update={"engine": engine}) for flow in self.flows)
        return self.model_copy(update={"flows": flows})

    def with_flow(self, name: str) -> Settings:
        """Return the configuration with this flow only, which may lead into an archive; raises as `flow`."""
        into = tuple(flow for flow in self.archived if flow.name == name)
        return self.model_copy(update={"flows": () if into else (self.flow(name),), "archived": into})

    def flow(self, name: str) -> Flow:
        """Return the enabled flow of this name (`A->B`, blanks allowed); raises FlowNotEnabled if there is none."""
        wanted = "->".join(part.strip() for part in name.split("->"))
        for flow in self.flows:
            if flow.name == wanted:
                return flow
        enabled = ", ".join(flow.name for flow in self.flows)
        if not {cluster.alias for cluster in self.clusters} >= set(wanted.split("->")) or "->" not in wanted:
            close = difflib.get_close_matches(wanted, [flow.name for flow in self.flows], n=1)
            advice = f"did you mean {close[0]}? enabled" if close else "enabled"
            raise FlowNotEnabled(f"no such flow; {advice}: {enabled}", file=self.file, key="flow", value=wanted)
        raise FlowNotEnabled(f"this flow is not enabled; enabled: {enabled}", file=self.file, key=f"{wanted}.enabled")
