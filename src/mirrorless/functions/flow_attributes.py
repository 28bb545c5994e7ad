"""What the templates have to know of a configuration: attributes of the custom resource `Custom::MirrorlessFlow`.

IAM policies, triggers and schedules cannot read the configuration file, so a deployment reads it once and passes on
what it says. `mirrorless run` takes the same attributes. Values are texts, as CloudFormation has them.
"""

from __future__ import annotations

import hashlib
import math
import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mirrorless.clusters.internal_topics import offset_syncs_topic, replicated_heartbeats
from mirrorless.errors import ConfigurationError
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.settings import Cluster, Flow, Settings

SELF_MANAGED: Final = "self-managed"
"""Event source of a trigger whose cluster is not on MSK: its bootstrap servers."""
_MOST_SERVERS: Final = 10
"""Lambda refuses more bootstrap servers of a trigger."""
ANY: Final = (".*",)
_BEGINS: Final = re.compile(r"(?:[\w-](?![*?{]))*(?!.*\|)")
"""The literal beginning of a pattern; of one with alternatives, nothing."""
_WITHOUT_SECRET: Final = frozenset({"IAM", "NONE"})
_SASL: Final = {
    "AWS_MSK_IAM": "IAM",
    "SCRAM-SHA-512": "SASL_SCRAM_512_AUTH",
    "SCRAM-SHA-256": "SASL_SCRAM_256_AUTH",
    "PLAIN": "BASIC_AUTH",
}
_IAM_HANDLER: Final = "IAMOAuthBearerLoginCallbackHandler"


class FlowProperties(BaseModel):
    """Properties of the custom resource; `flow` is empty where the configuration has one pair of clusters.

    `source_trigger` and `target_trigger` are what triggers may poll that cluster by: an ARN, `SELF_MANAGED`, or
    nothing.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    config_location: str = Field(alias="ConfigLocation")
    flow: str = Field(default="", alias="Flow")
    reverse: Literal["true", "false"] = Field(default="false", alias="Reverse")
    topics: str = Field(default="*", alias="Topics")
    groups: str = Field(default="*", alias="Groups")
    reverse_topics: str = Field(default="*", alias="ReverseTopics")
    source_trigger: str = Field(default="", alias="SourceTrigger")
    source_secret: str = Field(default="", alias="SourceSecretArn")
    source_root_ca: str = Field(default="", alias="SourceRootCaSecretArn")
    target_trigger: str = Field(default="", alias="TargetTrigger")
    target_secret: str = Field(default="", alias="TargetSecretArn")
    target_root_ca: str = Field(default="", alias="TargetRootCaSecretArn")


def select_flow(settings: Settings, properties: FlowProperties) -> Flow:
    """Return the flow that a stack is for; raises `ConfigurationError` or `FlowNotEnabled`."""
    name = properties.flow
    if not name:
        pairs = {frozenset((flow.source.alias, flow.target.alias)) for flow in settings.flows}
        if len(pairs) > 1:
            enabled = ", ".join(flow.name for flow in settings.flows)
            raise ConfigurationError(
                f"has several pairs of clusters; set the parameter Flow to one of: {enabled}", file=settings.file
            )
        name = settings.flows[0].name
    flow = settings.flow(name)
    return settings.flow(f"{flow.target.alias}->{flow.source.alias}") if properties.reverse == "true" else flow


def attributes(settings: Settings, properties: FlowProperties) -> dict[str, str]:
    """Return every attribute of the custom resource that the configuration decides."""
    flow = select_flow(settings, properties)
    back = next((one for one in settings.flows if one.name == f"{flow.target.alias}->{flow.source.alias}"), None)
    syncs = offset_syncs_topic(flow)
    internal = flow.replication_policy_internal_topic_separator_enabled
    topics = _pattern(properties.topics, _selected(flow))
    reverse_topics = _pattern(properties.reverse_topics, ANY if back is None else _selected(back))
    return {
        "Flow": flow.name,
        "SourceAlias": flow.source.alias,
        "SourceAuthentication": authentication(flow.source),
        "TargetAlias": flow.target.alias,
        "TargetAuthentication": authentication(flow.target),
        "RemoteTopics": _remote(flow, flow.source.alias, topics),
        "ReverseRemoteTopics": _remote(back or flow, flow.target.alias, reverse_topics),
        "Topics": topics,
        "Groups": _pattern(properties.groups, flow.groups if _is_default(flow.group_filter_class) else ANY),
        "ReverseTopics": reverse_topics,
        "Separator": flow.replication_policy_separator,
        "InternalSeparator": flow.replication_policy_separator if internal else ".",
        "OffsetSyncsLocation": flow.offset_syncs_topic_location,
        "ProgressTopic": flow.offset_storage_topic,
        "ReverseProgressTopic": "" if back is None else back.offset_storage_topic,
        "DeadLetterTopic": flow.dead_letter_topic or "",
        "StartGroup": flow.start_group or "",
        "SyncGroupOffsets": _text(flow.sync_group_offsets_enabled),
        "SyncAcls": _text(flow.sync_topic_acls_enabled),
        "PruneAcls": _text(flow.acls_prune),
        "SyncKinds": _text(bool(flow.sync_kinds)),
        "SyncTopicDeletes": _text(flow.sync_topic_deletes),
        "Offsets": flow.offsets,
        "ReverseEnabled": _text(back is not None),
        "Heartbeats": _text(flow.emit_heartbeats_enabled and flow.heartbeats_replication_enabled),
        "TopicDiscoveryRate": rate(flow.refresh_topics_interval_seconds),
        "ConfigSyncRate": rate(flow.sync_topic_configs_interval_seconds),
        "AclSyncRate": rate(flow.sync_topic_acls_interval_seconds),
        "CheckpointRate": rate(flow.emit_checkpoints_interval_seconds),
        **_trigger("OffsetSyncs", syncs.name, syncs.cluster, flow, properties),
        **_trigger("Heartbeats", replicated_heartbeats(flow), flow.target, flow, properties),
    }


def _remote(flow: Flow, alias: str, topics: str) -> str:
    """Return the IAM pattern of the remote topics; the names that rules give to several topics may begin anyhow."""
    renames = bool(flow.topics_rename) or flow.inverts is not None
    return policy_for(flow).format_remote_topic(alias, "*" if renames and "*" in topics else topics)


def _selected(flow: Flow) -> Sequence[str]:
    return flow.topics if _is_default(flow.topic_filter_class) else ANY


def _is_default(class_name: str) -> bool:
    """Whether a filter is by patterns; what a custom one selects is not known."""
    return class_name.rpartition(".")[2] in ("DefaultTopicFilter", "DefaultGroupFilter")


def _pattern(given: str, patterns: Sequence[str]) -> str:
    """Return an IAM pattern of names: the parameter, or else what the settings' patterns have in common."""
    if given != "*" or not patterns:
        return given
    begins = [_BEGINS.match(one) for one in patterns]
    literal = [match[0] if match is not None else "" for match in begins]
    if len(patterns) == 1 and literal[0] == patterns[0]:
        return literal[0]
    common = takewhile(lambda letters: len(set(letters)) == 1, zip(*literal, strict=False))
    return "".join(letters[0] for letters in common) + "*"


def authentication(cluster: Cluster) -> str:
    """Return how a cluster's clients log in, by Lambda's names; `IAM` and `NONE` need no secret."""
    client = cluster.client
    protocol = client.get("security.protocol", "PLAINTEXT").upper()
    mechanism = client.get("sasl.mechanism", "").upper() if protocol.startswith("SASL_") else ""
    if mechanism == "OAUTHBEARER" and any(value.endswith(_IAM_HANDLER) for value in client.values()):
        return "IAM"
    if mechanism:
        return _SASL.get(mechanism, mechanism)
    has_certificate = "ssl.keystore.type" in client or "ssl.keystore.location" in client
    return "CLIENT_CERTIFICATE_TLS_AUTH" if protocol == "SSL" and has_certificate else "NONE"


def rate(seconds: int) -> str:
    """Return EventBridge's expression of an interval: whole minutes, one at least."""
    minutes = max(1, math.ceil(seconds / 60))
    return "rate(1 minute)" if minutes == 1 else f"rate({minutes} minutes)"


def _trigger(name: str, topic: str, cluster: Cluster, flow: Flow, properties: FlowProperties) -> dict[str, str]:
    """Attributes of one trigger; its event source is empty where Lambda cannot poll the cluster.

    The id changes with what is polled. Since when that is so (seconds since 1970) is known to the custom resource.
    """
    on_source = cluster.alias == flow.source.alias
    source = properties.source_trigger if on_source else properties.target_trigger
    secret = properties.source_secret if on_source else properties.target_secret
    login = authentication(cluster)
    can_log_in = login in _WITHOUT_SECRET or (secret and login in {*_SASL.values(), "CLIENT_CERTIFICATE_TLS_AUTH"})
    servers = ",".join([part.strip() for part in cluster.bootstrap_servers.split(",")][:_MOST_SERVERS])
    polled = (topic, source, servers if source == SELF_MANAGED else "")
    return {
        f"{name}Topic": topic,
        f"{name}Id": hashlib.sha256(repr(polled).encode()).hexdigest()[:8],
        f"{name}Since": "",
        f"{name}EventSource": source if can_log_in else "",
        f"{name}BootstrapServers": servers,
        f"{name}Authentication": login,
        f"{name}SecretArn": "" if login in _WITHOUT_SECRET else secret,
        f"{name}RootCaSecretArn": properties.source_root_ca if on_source else properties.target_root_ca,
    }


def _text(value: bool) -> str:
    return "true" if value else "false"
