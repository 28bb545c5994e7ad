"""From an `mm2.properties` file to typed flows: properties -> precedence -> model.

Keys of MirrorMaker 2 that have no counterpart here are accepted silently, so that a running file is taken as it is; a
key that begins with `mirrorless.` and is not known can only be a mistake.
"""

from __future__ import annotations

import difflib
from itertools import product
from typing import TYPE_CHECKING, Final, NoReturn

from pydantic import ValidationError

from mirrorless.errors import ConfigurationError
from mirrorless.settings import precedence, properties
from mirrorless.settings.masking import shown
from mirrorless.settings.model import Cluster, Flow, Settings
from mirrorless.settings.patterns import split_list
from mirrorless.settings.properties import ARROW
from mirrorless.settings.values import boolean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from mirrorless.settings.precedence import Found
    from mirrorless.settings.properties import Entry

CLUSTERS: Final = "clusters"
ENABLED: Final = "enabled"
OWN_PREFIX: Final = "mirrorless."

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
    "errors.tolerance": "errors_tolerance",
    "errors.deadletterqueue.topic.name": "dead_letter_topic",
    "errors.deadletterqueue.topic.replication.factor": "dead_letter_replication_factor",
    "mirrorless.start.timestamp": "start_timestamp_ms",
    "mirrorless.on.gap": "on_gap",
    "mirrorless.max.bytes.per.second": "max_bytes_per_second",
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
}

# Key of the Connect worker -> field of Flow. Set as `key` or as `B.key`, B being the target.
WORKER_KEYS: Final[Mapping[str, str]] = {
    "offset.storage.topic": "offset_storage_topic",
    "offset.storage.replication.factor": "offset_storage_replication_factor",
    "offset.storage.partitions": "offset_storage_partitions",
}

_RESET: Final = "consumer.auto.offset.reset"


def load(path: str | PathLike[str]) -> Settings:
    """Read a configuration file and check all of it that is used.

    Raises ConfigurationError, in one line with file, key and value, for the first thing that cannot be used.
    """
    return _Reader(str(path), properties.read(path)).settings()


class _Reader:
    """The file's entries, its name for errors, and the warnings so far."""

    def __init__(self, file: str, entries: Mapping[str, Entry]) -> None:
        self._file = file
        self._entries = entries
        self._warnings: list[str] = []

    def settings(self) -> Settings:
        aliases = self._aliases()
        self._check_own_keys(aliases)
        self._check_flow_keys(aliases)
        pairs = [(source, target) for source, target in product(aliases, repeat=2) if self._is_enabled(source, target)]
        if not pairs:
            self._refuse_no_flow(aliases)
        clusters = {alias: cluster for alias in aliases if (cluster := self._cluster(alias, pairs)) is not None}
        return Settings(
            file=self._file,
            clusters=tuple(clusters.values()),
            flows=tuple(self._flow(clusters[source], clusters[target]) for source, target in pairs),
            warnings=tuple(self._warnings),
        )

    def _aliases(self) -> tuple[str, ...]:
        found = precedence.first(self._entries, CLUSTERS)
        if found is None:
            self._refuse("is missing; list the aliases of the clusters, as in clusters = A, B", key=CLUSTERS)
        aliases = [alias for part in found.value.split(",") if (alias := part.strip())]
        if not aliases:
            self._refuse(
                "is empty; list the aliases of the clusters, as in clusters = A, B", key=CLUSTERS, value=found.value
            )
        for alias in aliases:
            if aliases.count(alias) > 1:
                self._refuse(
                    f"names {alias} twice; give each cluster an alias of its own", key=CLUSTERS, value=found.value
                )
        return tuple(aliases)

    def _check_own_keys(self, aliases: tuple[str, ...]) -> None:
        known = [key for key in FLOW_KEYS if key.startswith(OWN_PREFIX)]
        for key, entry in self._entries.items():
            scope, own = _own_key(key)
            if own is None or (own in known and (not scope or ARROW in scope)):
                continue
            if scope in aliases and own in known:
                self._refuse(f"is set for a flow, not for a cluster; write {own}", key=key, value=entry.value)
            if not scope or ARROW in scope or scope in aliases:
                # without the prefix, which makes all of them look alike
                names = [name.removeprefix(OWN_PREFIX) for name in known]
                close = difflib.get_close_matches(own.removeprefix(OWN_PREFIX), names, n=1)
                advice = f"did you mean {OWN_PREFIX}{close[0]}?" if close else f"known: {', '.join(known)}"
                self._refuse(f"unknown setting; {advice}", key=key, value=entry.value)

    def _check_flow_keys(self, aliases: tuple[str, ...]) -> None:
        """Refuse keys of flows that cannot exist, which MirrorMaker 2 passes over; one switched off may be anything."""
        for key, entry in self._entries.items():
            flow = _flow_of(key, aliases)
            if flow is None:
                continue
            source, target = flow
            if not self._is_on(f"{source}{ARROW}{target}.{ENABLED}", default=True):
                continue
            for alias in flow:
                if alias not in aliases:
                    self._refuse(
                        f"cluster {alias} is not in clusters = {', '.join(aliases)}; add it there or correct the flow",
                        key=key,
                        value=entry.value,
                    )
            if source == target:
                self._refuse("source and target are the same cluster; remove this flow", key=key, value=entry.value)

    def _is_enabled(self, source: str, target: str) -> bool:
        return source != target and self._is_on(f"{source}{ARROW}{target}.{ENABLED}", default=False)

    def _is_on(self, key: str, *, default: bool) -> bool:
        found = precedence.first(self._entries, key)
        if found is None:
            return default
        try:
            return boolean(found.value) is True
        except ValueError as error:
            self._refuse(str(error), key=key, value=found.value)

    def _cluster(self, alias: str, pairs: list[tuple[str, str]]) -> Cluster | None:
        servers = precedence.bootstrap_servers(self._entries, alias)
        if servers is None or not split_list(servers.value):
            key = f"{alias}.{precedence.BOOTSTRAP_SERVERS}" if servers is None else servers.key
            value = None if servers is None else servers.value
            flow = next((ARROW.join(pair) for pair in pairs if alias in pair), None)
            if flow is not None:
                self._refuse(f"flow {flow} needs it; name the brokers of {alias} as host:port", key=key, value=value)
            self._warnings.append(
                f"{self._file}: {key}: not set; cluster {alias} is in no enabled flow and is left out"
            )
            return None
        return Cluster(
            alias=alias,
            bootstrap_servers=",".join(split_list(servers.value)),
            client=precedence.client_settings(self._entries, alias),
        )

    def _flow(self, source: Cluster, target: Cluster) -> Flow:
        flow = f"{source.alias}{ARROW}{target.alias}"
        looked_up = {
            field: precedence.flow_setting(self._entries, key, flow=flow) for key, field in FLOW_KEYS.items()
        } | {
            field: precedence.worker_setting(self._entries, key, target=target.alias)
            for key, field in WORKER_KEYS.items()
        }
        # The flow's own beats the cluster's, which beats what the flow says of all its consumers (section 2.5).
        places = f"{flow}.source.{_RESET}", f"{source.alias}.{_RESET}", f"{flow}.{_RESET}"
        looked_up["auto_offset_reset"] = precedence.first(self._entries, *places)
        found = {field: setting for field, setting in looked_up.items() if setting is not None}
        texts = {field: setting.value for field, setting in found.items()}
        try:
            return Flow.model_validate({"source": source, "target": target} | texts)
        except ValidationError as errors:
            self._refuse_first(errors, found)

    def _refuse_first(self, errors: ValidationError, found: Mapping[str, Found]) -> NoReturn:
        error = errors.errors(include_url=False, include_input=False)[0]
        setting = found[str(error["loc"][0])]
        reason = error.get("ctx", {}).get("error", error["msg"])
        self._refuse(str(reason), key=setting.key, value=setting.value)

    def _refuse_no_flow(self, aliases: tuple[str, ...]) -> NoReturn:
        if len(aliases) == 1:
            self._refuse("a flow needs two clusters; list both", key=CLUSTERS, value=aliases[0])
        key = f"{aliases[0]}{ARROW}{aliases[1]}.{ENABLED}"
        found = precedence.first(self._entries, key)
        value = None if found is None else found.value
        self._refuse("no flow is enabled; set this one, or another, to true", key=key, value=value)

    def _refuse(self, reason: str, *, key: str, value: str | None = None) -> NoReturn:
        text = None if value is None else shown(key, value)
        raise ConfigurationError(reason, file=self._file, key=key, value=text) from None


def _flow_of(key: str, aliases: tuple[str, ...]) -> tuple[str, str] | None:
    """Return source and target of a key `A->B.setting`, or None; an alias may hold dots if `clusters` lists it so."""
    source, arrow, rest = key.partition(ARROW)
    if not arrow or "." not in rest:
        return None
    listed = [alias for alias in aliases if rest.startswith(f"{alias}.")]
    return source, max(listed, key=len, default=rest.partition(".")[0])


def _own_key(key: str) -> tuple[str, str | None]:
    """Split a key into its scope (a flow, a cluster, empty for everywhere) and the setting, None if it is not ours."""
    if key.startswith(OWN_PREFIX):
        return "", key
    scope, dot, own = key.partition(f".{OWN_PREFIX}")
    return (scope, OWN_PREFIX + own) if dot else (key, None)
