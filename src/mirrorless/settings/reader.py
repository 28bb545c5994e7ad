"""Makes clusters and flows of entries with correct keys, with all errors, warnings and notes about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations, product
from typing import TYPE_CHECKING, Final, NoReturn

from pydantic import ValidationError

from mirrorless.errors import ConfigurationError, FlowNotEnabled, one_line
from mirrorless.settings import precedence
from mirrorless.settings.archives import Archives
from mirrorless.settings.client_keys import BOOTSTRAP_SERVERS, CLUSTER_ID, is_client_key
from mirrorless.settings.cluster import Cluster
from mirrorless.settings.combinations import (
    DIRECTIONS,
    SEPARATOR,
    ambiguous_aliases,
    contradictions,
    implied_turns,
    is_earlier_default,
    refused_combinations,
    rivalries,
    shared_addresses,
    shared_topics,
    unnamed_source,
    unused_logins,
)
from mirrorless.settings.connectors import OF_CONNECTORS
from mirrorless.settings.declared_providers import DeclaredProviders
from mirrorless.settings.field_docs import as_text
from mirrorless.settings.key_normalizer import CLUSTERS, without_port
from mirrorless.settings.keys import ENABLED, Keys
from mirrorless.settings.masking import MASK, is_secret, shown, shown_name
from mirrorless.settings.model import FLOW_KEYS, SOURCE_CLIENT_KEYS, WORKER_KEYS, Flow, Settings
from mirrorless.settings.named_clusters import NamedClusters
from mirrorless.settings.patterns import split_list
from mirrorless.settings.properties import ARROW, NOBODYS
from mirrorless.settings.references import placeholder, refers, resolve
from mirrorless.settings.refused_values import refused_values
from mirrorless.settings.replication_cycles import together
from mirrorless.settings.transforms import TRANSFORMS, refusal, routed
from mirrorless.settings.values import boolean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mirrorless.settings.key_normalizer import Tidied
    from mirrorless.settings.precedence import Found, Side
    from mirrorless.settings.properties import PropertyEntry

_BEATS: Final = "emit.heartbeats.enabled"
_OF_HEARTBEATS: Final = ("emit.heartbeats", "heartbeats.topic")


@dataclass(frozen=True, slots=True)
class Effective:
    """The effective value of a setting, masked if secret, and its origin (`default`, or file and line)."""

    key: str
    value: str | None
    origin: str
    written: str | None = None


@dataclass(frozen=True, slots=True)
class Understanding:
    """Everything that was read from a configuration. `settings` is None if `errors` leave nothing usable.

    `flows` has the effective settings of each flow, `clients` those of its two ends, by flow and side. `set_for` has
    what the files set for a flow (its side is empty) and its ends, `entries` what has an effect at all; both may have
    secrets, which repr leaves out.
    """

    settings: Settings | None
    errors: tuple[ConfigurationError, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    flows: Mapping[str, tuple[Effective, ...]] = field(default_factory=dict)
    clients: Mapping[tuple[str, str], tuple[Effective, ...]] = field(default_factory=dict)
    set_for: Mapping[tuple[str, str], Mapping[str, Found]] = field(default_factory=dict, repr=False)
    entries: Mapping[str, PropertyEntry] = field(default_factory=dict, repr=False)


class Reader:
    """Reads normalized entries; errors are collected, so that a check can report all of them."""

    def __init__(
        self,
        location: str,
        tidied: Tidied,
        *,
        warnings: Sequence[str] = (),
    ) -> None:
        self._location = location
        self._entries: Mapping[str, PropertyEntry] = tidied.entries
        self._tidied = tidied
        self._warnings = [*warnings, *tidied.warnings]
        self._notes: list[str] = []
        self._errors: list[ConfigurationError] = []
        self._flows: dict[str, tuple[Effective, ...]] = {}
        self._clients: dict[tuple[str, str], tuple[Effective, ...]] = {}
        self._set_for: dict[tuple[str, str], Mapping[str, Found]] = {}
        self._without_effect: set[str] = set()

    def understand(self) -> Understanding:
        """Read everything."""
        settings = None
        try:
            settings = self._settings()
        except ConfigurationError as error:
            self._errors.append(error)
        return Understanding(
            settings,
            tuple(self._errors),
            tuple(map(one_line, self._warnings)),
            tuple(map(one_line, self._notes)),
            self._flows,
            self._clients,
            self._set_for,
            {key: entry for key, entry in self._entries.items() if key not in self._without_effect},
        )

    def _settings(self) -> Settings | None:
        self._entries = DeclaredProviders(self._entries, file=self._location).renamed()
        aliases = self._aliases()
        archives = Archives.of(self._entries, aliases)
        self._entries, routers = routed(archives.entries)
        named = NamedClusters.of(self._entries, aliases, self._enabled_pairs(aliases))
        self._entries, aliases = named.entries, named.aliases
        self._warnings += named.warnings
        for found, reason in named.refused:
            self._note(reason, key=found.key, entry=found.entry)
        keys = Keys(self._entries, aliases, flow_keys=FLOW_KEYS, worker_keys=WORKER_KEYS)
        told = [*keys.unknown(), *keys.impossible(self._is_on), *keys.without_effect(self._is_on)]
        self._without_effect = {one.name for one in told}
        for one in told:
            entry = self._entries[one.name]
            line = f"{entry.place}: {shown_name(one.name)}={shown(one.name, entry.value)}: {one.reason}"
            match one.severity:
                case "error":
                    listed = one.name.rpartition(".")[2] == TRANSFORMS
                    reason = routers.get(one.name) or refusal(self._entries, one.name) if listed else one.reason
                    self._note(reason, key=one.name, entry=entry)
                case "warning":
                    self._warnings.append(line)
                case "note" if entry.line != NOBODYS:
                    self._notes.append(line)
        pairs = self._enabled_pairs(aliases)
        if not pairs:
            self._refuse_no_flow(aliases)
        every = [flow for pair in pairs if (flow := self._flow(*pair)) is not None]
        archived = tuple(flow for flow in every if archives.is_into(flow.target.alias))
        flows = [flow for flow in every if flow not in archived and not archives.is_left_out(flow.source.alias)]
        flows = together(flows, tuple(alias for alias in aliases if not archives.is_into(alias)))
        for refused in refused_combinations(flows):
            given = self._set_for[refused.flow, ""].get(refused.key)
            self._errors.append(
                self._error(
                    refused.reason,
                    key=f"{refused.flow}.{refused.key}",
                    value=None if given is None else given.value,
                    entry=None if given is None else given.entry,
                )
            )
        of_several = (*implied_turns(flows), *rivalries(flows), *shared_topics(flows), *ambiguous_aliases(flows))
        self._warnings += [f"{self._location}: {line}" for line in of_several]
        if self._errors:
            return None
        kafka = [alias for alias in aliases if alias not in archives.locations]
        clusters = [cluster for alias in kafka if (cluster := self._cluster(alias, every)) is not None]
        of_clusters = (*shared_addresses(clusters), *unused_logins(clusters))
        self._warnings += [f"{self._location}: {line}" for line in of_clusters]
        heartbeats = tuple(self._heartbeats(clusters, flows))
        if self._errors:
            return None
        return Settings(
            file=self._location,
            clusters=tuple(clusters),
            flows=tuple(flows),
            heartbeats=heartbeats,
            archived=archived,
            archives=tuple(archives.locations.items()),
            warnings=tuple(map(one_line, self._warnings)),
            notes=tuple(map(one_line, self._notes)),
        )

    def _aliases(self) -> tuple[str, ...]:
        found = precedence.first(self._entries, CLUSTERS)
        advice = "list the aliases of the clusters, as in clusters = A, B"
        if found is None:
            self._refuse(f"is missing; {advice}", key=CLUSTERS)
        aliases = split_list(self._text(found)) if refers(found.value) else self._tidied.aliases
        if not aliases:
            self._refuse(f"is empty; {advice}", key=CLUSTERS, value=found.value)
        for alias in aliases:
            if aliases.count(alias) > 1:
                self._refuse(
                    f"names {alias} twice; use a different alias for each cluster", key=CLUSTERS, value=found.value
                )
        return aliases

    def _enabled_pairs(self, aliases: Sequence[str]) -> list[tuple[str, str]]:
        return [(source, target) for source, target in product(aliases, repeat=2) if self._is_enabled(source, target)]

    def _is_enabled(self, source: str, target: str) -> bool:
        if source == target:
            return False
        flow = f"{source}{ARROW}{target}"
        # MirrorMaker 2 makes a pair of clusters for its heartbeats, and then `enabled` counts as any top-level key.
        default = self._is_on(ENABLED, default=False)
        if default:
            default = self._is_on(f"{flow}.{_BEATS}", default=self._is_on(_BEATS, default=True))
        return self._is_on(f"{flow}.{ENABLED}", default=default)

    def _is_on(self, key: str, *, default: bool) -> bool:
        found = precedence.first(self._entries, key)
        if found is None:
            return default
        try:
            return boolean(self._text(found)) is True
        except ValueError as error:
            self._refuse(str(error), key=key, value=found.value)

    def _cluster(self, alias: str, flows: Sequence[Flow]) -> Cluster | None:
        """Return a cluster as it is outside of any flow, or as its first flow has it if only flows have its servers."""
        found = precedence.cluster_settings(self._entries, alias)
        servers = found.get(BOOTSTRAP_SERVERS)
        if servers is not None and split_list(servers.value):
            return self._end(alias, {key: setting for key, setting in found.items() if _is_written(key, setting)})
        ends = [end for flow in flows for end in (flow.source, flow.target) if end.alias == alias]
        if not ends:
            self._warnings.append(
                f"{self._location}: {alias}.{BOOTSTRAP_SERVERS}: not set; cluster {alias} is in no enabled flow and is "
                "ignored"
            )
        return ends[0] if ends else None

    def _flow(self, source: str, target: str) -> Flow | None:
        name = f"{source}{ARROW}{target}"
        settings: dict[Side, dict[str, Found]] = {
            "source": precedence.client_settings(self._entries, flow=(source, target), side="source"),
            "target": precedence.client_settings(self._entries, flow=(source, target), side="target"),
        }
        self._check_servers(source, settings["source"], flow=name, side="source")
        self._check_servers(target, settings["target"], flow=name, side="target")
        by_key = {
            key: (field, precedence.flow_setting(self._entries, key, flow=name)) for key, field in FLOW_KEYS.items()
        } | {
            key: (field, precedence.worker_setting(self._entries, key, target=target))
            for key, field in WORKER_KEYS.items()
        }
        if is_earlier_default(by_key[DIRECTIONS][1]):
            by_key[DIRECTIONS] = (FLOW_KEYS[DIRECTIONS], None)
        ends = (*settings["source"].values(), *settings["target"].values())
        refused = list(refused_values((*(one for _, one in by_key.values() if one is not None), *ends)))
        for one, reason in refused:
            self._note(reason, key=one.key, entry=one.entry)
        if refused:
            return None
        by_key |= {
            f"{source}.{key}": (field, settings["source"].pop(key, None)) for key, field in SOURCE_CLIENT_KEYS.items()
        }
        found = {field: setting for field, setting in by_key.values() if setting is not None}
        try:
            texts = {field: self._text(setting) for field, setting in found.items()}
            flow = Flow.model_validate(
                {"source": self._end(source, settings["source"]), "target": self._end(target, settings["target"])}
                | texts
            )
        except ConfigurationError as error:
            self._errors.append(error)
            return None
        except ValidationError as errors:
            self._collect(errors, found)
            return None
        separator = found.get(FLOW_KEYS[SEPARATOR])
        if separator is not None and (unnamed := unnamed_source(flow)) is not None:
            self._note(unnamed, key=separator.key, entry=separator.entry)
        self._warnings += [f"{self._location}: {line}" for line in contradictions(flow)]
        self._flows[name] = tuple(
            Effective(key, _effective(flow, field, setting), *_origin(setting))
            for key, (field, setting) in by_key.items()
        )
        self._set_for[name, ""] = {key: setting for key, (_, setting) in by_key.items() if setting is not None}
        for side, end in settings.items():
            self._set_for[name, side] = end
            self._clients[name, side] = tuple(
                Effective(key, shown(key, setting.value), *_origin(setting)) for key, setting in sorted(end.items())
            )
        return flow

    def _heartbeats(self, clusters: Sequence[Cluster], flows: Sequence[Flow]) -> Iterator[Flow]:
        """Every ordered pair that emits heartbeats; of a disabled pair only the settings of heartbeats are used."""
        enabled = {flow.name: flow for flow in flows}
        for source, target in permutations(clusters, 2):
            name = f"{source.alias}{ARROW}{target.alias}"
            flow = enabled.get(name)
            if flow is None:
                found = {
                    field: setting
                    for key, field in FLOW_KEYS.items()
                    if key.startswith(_OF_HEARTBEATS)
                    and (setting := precedence.flow_setting(self._entries, key, flow=name)) is not None
                }
                try:
                    texts = {field: self._text(setting) for field, setting in found.items()}
                    flow = Flow.model_validate({"source": source, "target": target} | texts)
                except ValidationError as errors:
                    self._collect(errors, found)
                    continue
            if flow.emit_heartbeats_enabled:
                yield flow

    def _check_servers(self, alias: str, settings: Mapping[str, Found], *, flow: str, side: Side) -> None:
        servers = precedence.bootstrap_servers(settings)
        advice = f"flow {flow} needs it; name the brokers of {alias} as host:port"
        if servers is None:
            of_connectors = self._entries[CLUSTERS].written == OF_CONNECTORS
            error = self._error(advice, key=f"{f'{side}.cluster' if of_connectors else alias}.{BOOTSTRAP_SERVERS}")
        elif not split_list(servers.value):
            error = self._error(advice, key=servers.key, value=servers.value, entry=servers.entry)
        elif placeholder(servers.value, secret=False) is not None:
            return  # refused as such
        elif not refers(servers.value) and (wrong := without_port(servers.value)) is not None:
            advice = f"{wrong or 'an empty address'} is not host:port"
            error = self._error(advice, key=servers.key, value=servers.value, entry=servers.entry)
        else:
            return
        if str(error) not in map(str, self._errors):
            self._errors.append(error)

    def _end(self, alias: str, settings: Mapping[str, Found]) -> Cluster:
        servers = precedence.bootstrap_servers(settings)
        client = {key: setting.value for key, setting in settings.items() if key != BOOTSTRAP_SERVERS}
        named = settings.get(CLUSTER_ID)
        if named is not None and not named.value.strip():
            self._refuse("is empty; set a name for the cluster, or remove the line", key=named.key, value=named.value)
        return Cluster(
            alias=alias,
            cluster_id=None if named is None else self._text(named).strip(),
            bootstrap_servers=",".join(split_list(servers.value)) if servers else "missing:0",
            client={key: value for key, value in client.items() if is_client_key(key)},
        )

    def _text(self, found: Found) -> str:
        return resolve(found.value, key=found.entry.written or found.key, file=found.entry.file or self._location)

    def _collect(self, errors: ValidationError, found: Mapping[str, Found]) -> None:
        for error in errors.errors(include_url=False, include_input=False):
            setting = found.get(str(error["loc"][0]))
            if setting is None:  # a default that is derived from other settings could not be made
                continue
            reason = str(error.get("ctx", {}).get("error", error["msg"]))
            if refers(setting.value):
                reason = "the value that it refers to is not valid for this setting"  # the reason may quote it
            self._note(reason, key=setting.key, entry=setting.entry)

    def _refuse_no_flow(self, aliases: tuple[str, ...]) -> NoReturn:
        if len(aliases) == 1:
            self._refuse("a flow needs two clusters; list both", key=CLUSTERS, value=aliases[0])
        key = f"{aliases[0]}{ARROW}{aliases[1]}.{ENABLED}"
        found = precedence.first(self._entries, key)
        value = None if found is None else found.value
        error = self._error(
            "no flow is enabled; set this one, or another, to true",
            key=key,
            value=value,
            entry=self._entries.get(key),
        )
        raise FlowNotEnabled(error.reason, file=error.file, line=error.line, key=error.key, value=error.value)

    def _note(self, reason: str, *, key: str, entry: PropertyEntry) -> None:
        """Collect an error and continue."""
        error = self._error(reason, key=key, value=entry.value, entry=entry)
        if str(error) not in map(str, self._errors):
            self._errors.append(error)

    def _refuse(self, reason: str, *, key: str, value: str | None = None) -> NoReturn:
        raise self._error(reason, key=key, value=value, entry=self._entries.get(key)) from None

    def _error(
        self, reason: str, *, key: str, value: str | None = None, entry: PropertyEntry | None = None
    ) -> ConfigurationError:
        secret = is_secret(key) or (entry is not None and is_secret(entry.written or ""))
        text = None if value is None else MASK if secret else shown(key, value)
        file = entry.file if entry is not None and entry.file else self._location
        line = entry.line if entry is not None and entry.line > 0 else None
        shown_key = shown_name((entry and entry.written) or key)
        return ConfigurationError(reason, file=file, line=line, key=shown_key, value=text)


def _is_written(key: str, setting: Found) -> bool:
    """Whether a cluster's key is set itself, and not derived for a role from a key for all roles."""
    return setting.key.endswith(f".{key}") or setting.key == key


def _effective(flow: Flow, field: str, setting: Found | None) -> str | None:
    value = as_text(getattr(flow, field))
    if setting is None:
        return value
    return shown(setting.key, setting.value if refers(setting.value) else value or "")


def _origin(setting: Found | None) -> tuple[str, str | None]:
    if setting is None:
        return "default", None
    return setting.entry.place or "?", setting.entry.written or setting.key
