"""Reads a replicator of Amazon MSK, as `aws kafka describe-replicator` and `create-replicator` have it in JSON.

Its meaning is MirrorMaker 2's, which it runs: aliases, patterns, names of topics, groups. It has the ARNs of clusters
instead of their addresses, which have to be added as `bootstrapBrokerString`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.connectors import line
from mirrorless.settings.properties import ARROW, NOBODYS, PropertyEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

_FLOWS: Final = "replicationInfoList"
_POLICIES: Final = {"IDENTICAL": "IdentityReplicationPolicy", "PREFIXED_WITH_SOURCE_CLUSTER_ALIAS": None}
_LISTS: Final = {
    "topicReplication": {"topicsToReplicate": "topics", "topicsToExclude": "topics.exclude"},
    "consumerGroupReplication": {"consumerGroupsToReplicate": "groups", "consumerGroupsToExclude": "groups.exclude"},
}
_SWITCHES: Final = {
    "topicReplication": {
        "copyAccessControlListsForTopics": "sync.topic.acls.enabled",
        "copyTopicConfigurations": "sync.topic.configs.enabled",
        "detectAndCopyNewTopics": "refresh.topics.enabled",
    },
    "consumerGroupReplication": {
        "detectAndCopyNewConsumerGroups": "refresh.groups.enabled",
        "synchroniseConsumerGroupOffsets": "sync.group.offsets.enabled",
    },
}
_IAM: Final = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
_SERVERS: Final = "bootstrapBrokerString"


def is_replicator(value: object) -> bool:
    """Whether parsed JSON is a replicator."""
    return isinstance(value, dict) and isinstance(_lower(value).get(_FLOWS), list)


def read_replicator(value: object, *, file: str) -> tuple[Mapping[str, PropertyEntry], tuple[str, ...]]:
    """Return the entries and warnings; raises ConfigurationError for a replicator that cannot be read."""
    return _MskReplicator(_lower(value), file).read()


def _lower(value: object) -> Any:  # noqa: ANN401 -- whatever JSON can hold
    """Return a value with keys as in the API, whose first letter the command line makes upper case."""
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _lower(one) for key, one in value.items()}
    return [_lower(one) for one in value] if isinstance(value, list) else value


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class _MskReplicator:
    def __init__(self, fields: Mapping[str, Any], file: str) -> None:
        self._fields = fields
        self._file = file
        self._entries: dict[str, PropertyEntry] = {}
        self._warnings: list[str] = []

    def read(self) -> tuple[Mapping[str, PropertyEntry], tuple[str, ...]]:
        """Read clusters, then flows."""
        aliases = [
            self._cluster(number, one) for number, one in enumerate(self._list(self._fields, "kafkaClusters", ""))
        ]
        self._set("clusters", ",".join(aliases), "kafkaClusters")
        # A replicator emits no heartbeats into the clusters of its user.
        self._set("emit.heartbeats.enabled", "false", "as MSK Replicator", line=NOBODYS)
        for number, one in enumerate(self._list(self._fields, _FLOWS, "")):
            self._flow(one, f"{_FLOWS}[{number}]")
        return self._entries, tuple(self._warnings)

    def _cluster(self, number: int, cluster: object) -> str:
        path = f"kafkaClusters[{number}]"
        if not isinstance(cluster, dict):
            raise self._error(path, "must be an object")
        own = cluster.get("apacheKafkaCluster") or cluster.get("amazonMskCluster") or {}
        own = own if isinstance(own, dict) else {}
        alias = cluster.get("kafkaClusterAlias")
        if not isinstance(alias, str) or not alias.split() or len(alias.split()) != 1 or ARROW in alias or "," in alias:
            raise self._error(f"{path}.kafkaClusterAlias", "must be one word without -> and commas")
        servers = own.get(_SERVERS) or cluster.get(_SERVERS)
        arn = own.get("mskClusterArn")
        if not isinstance(servers, str):
            advice = f"aws kafka get-bootstrap-brokers --cluster-arn {line(arn)}" if isinstance(arn, str) else ""
            reason = f"is missing; add the cluster's brokers as host:port{f', from {advice}' if advice else ''}"
            raise self._error(f"{path}.{_SERVERS}", reason)
        self._set(f"{alias}.bootstrap.servers", servers, f"{path}.{_SERVERS}")
        if cluster.get("clientAuthentication") is not None:
            self._warn(f"{path}.clientAuthentication", "is not read; set the client settings of this cluster")
        elif isinstance(arn, str):
            for key, text in _IAM.items():
                self._set(f"{alias}.{key}", text, f"{path}.amazonMskCluster: IAM, as MSK Replicator", line=NOBODYS)
        return alias

    def _flow(self, flow: object, path: str) -> None:
        if not isinstance(flow, dict):
            raise self._error(path, "must be an object")
        ends = [flow.get(f"{side}KafkaClusterAlias") for side in ("source", "target")]
        name = ARROW.join(str(end) for end in ends)
        self._set(f"{name}.enabled", "true", path, line=NOBODYS)
        for part, keys in _LISTS.items():
            fields = _object(flow.get(part))
            for field, key in keys.items():
                if field in fields:
                    patterns = self._list(fields, field, f"{path}.{part}.")
                    self._set(f"{name}.{key}", ",".join(map(str, patterns)), f"{path}.{part}.{field}")
            for field, key in _SWITCHES[part].items():
                if isinstance(fields.get(field), bool):
                    self._set(f"{name}.{key}", str(fields[field]).lower(), f"{path}.{part}.{field}")
        topics = _object(flow.get("topicReplication"))
        self._names(name, topics, f"{path}.topicReplication")
        start = self._word(topics.get("startingPosition"))
        if start in ("LATEST", "EARLIEST"):
            field = f"{path}.topicReplication.startingPosition.type"
            self._set(f"{name}.source.consumer.auto.offset.reset", start.lower(), field)
        if flow.get("targetCompressionType") not in (None, "NONE"):
            self._warn(f"{path}.targetCompressionType", "has no effect: records keep the compression of the source")
        groups = flow.get("consumerGroupReplication")
        if isinstance(groups, dict) and groups.get("consumerGroupOffsetSyncMode") == "ENHANCED":
            self._warn(
                f"{path}.consumerGroupReplication.consumerGroupOffsetSyncMode",
                "is not read: group offsets are translated in both directions where both flows are enabled",
            )

    def _names(self, name: str, topics: Mapping[str, Any], path: str) -> None:
        kind = self._word(topics.get("topicNameConfiguration")) or "PREFIXED_WITH_SOURCE_CLUSTER_ALIAS"
        field = f"{path}.topicNameConfiguration.type"
        if kind not in _POLICIES:
            raise self._error(field, f"must be {' or '.join(_POLICIES)}")
        if (policy := _POLICIES[kind]) is not None:
            self._set(f"{name}.replication.policy.class", policy, field)

    def _word(self, value: object) -> str:
        kind = value.get("type") if isinstance(value, dict) else None
        return kind if isinstance(kind, str) else ""

    def _list(self, fields: Mapping[str, Any], field: str, path: str) -> list[Any]:
        found = fields.get(field)
        if not isinstance(found, list):
            raise self._error(f"{path}{field}", "must be a list")
        return found

    def _set(self, key: str, text: str, written: str, *, line: int = 0) -> None:
        self._entries[key] = PropertyEntry(text, line, self._file, written)

    def _warn(self, path: str, reason: str) -> None:
        self._warnings.append(f"{self._file}: {path}: {reason}")

    def _error(self, path: str, reason: str) -> ConfigurationError:
        return ConfigurationError(reason, file=self._file, key=path)
