"""Writes a configuration in any form as one mm2.properties, or as Connect's JSON, with the same flows.

What has no effect is left out. Secrets become references. What was written is read again and compared before it is
returned. A file that was written keeps its comments, so converting it again changes nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings import locations
from mirrorless.settings.classes import JAVA_PACKAGE
from mirrorless.settings.client_keys import ROLE_PREFIXES, is_client_key
from mirrorless.settings.connectors import CONNECTORS, OF_OTHERS
from mirrorless.settings.key_normalizer import CLUSTERS, take_apart
from mirrorless.settings.load import understand_texts
from mirrorless.settings.masking import MASK, is_secret, shown, shown_name
from mirrorless.settings.model import FLOW_KEYS, WORKER_KEYS
from mirrorless.settings.properties import ARROW
from mirrorless.settings.references import refers, without_references
from mirrorless.settings.vocabulary import cluster_vocabulary, flow_vocabulary, top_vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.settings.precedence import Found
    from mirrorless.settings.properties import PropertyEntry
    from mirrorless.settings.reader import Understanding

MARK: Final = "# Written by mirrorless config convert. A comment names the origin of the next line."
_SOURCE, _CHECKPOINT, _HEARTBEAT = CONNECTORS
_ENABLED, _NAME = "enabled", "mirrorless.connector.name"
_BEATS: Final = ("emit.heartbeats", "heartbeats.topic")
_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_OPTION: Final = re.compile(r"\s+(\w+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s;\"']*)")
_LOGIN: Final = re.compile(rf"\s*[\w.]+LoginModule\s+required((?:{_OPTION.pattern})*)\s*;?\s*")
_USERS: Final = ("username", "clientid")
_NOT_SECRET: Final = frozenset(
    ["username", "clientid", "scope", "awsprofilename", "awsrolearn", "awsstsregion", "awsrolesessionname"]
)


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of a file, and the environment variables that have to be set, by the settings that refer to them."""

    text: str
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Written:
    value: str
    origin: str


def to_properties(understood: Understanding) -> Converted:
    """Return an mm2.properties; raises the first error of a configuration that has any."""
    different = ""
    for with_common in (True, False):
        secrets = EnvironmentSecrets()
        text = _Properties(understood, secrets, with_common=with_common).text()
        different = _difference(understood, text)
        if not different:
            return Converted(text, secrets.names)
    raise ConfigurationError(f"cannot be written as mm2.properties with the same flows: {different}")


def to_json(understood: Understanding) -> Converted:
    """Return a list of connectors as JSON; raises the first error of a configuration that has any."""
    if understood.settings is None:
        raise understood.errors[0]
    secrets = EnvironmentSecrets()
    connectors = list(_connectors(understood, secrets))
    text = json.dumps(connectors, indent=2) + "\n"
    if different := _difference(understood, text):
        raise ConfigurationError(f"cannot be written as connectors with the same flows: {different}")
    return Converted(text, secrets.names)


def _difference(understood: Understanding, text: str) -> str:
    """Return what would be read differently from a text, with its origin; empty if nothing would."""
    again = understand_texts([("converted", text)])
    if again.settings is None:
        return again.errors[0].reason
    wanted, found = _meaning(understood), _meaning(again)
    for name in wanted.keys() | found.keys():
        here, there = wanted.get(name, {}), found.get(name, {})
        for key in sorted(here.keys() | there.keys()):
            if here.get(key) != there.get(key):
                return f"{name}: {key} ({_origin_of(understood, name, key)})"
    return ""


def _origin_of(understood: Understanding, name: str, key: str) -> str:
    flow, _, side = name.partition(" ")
    table = understood.clients.get((flow, side), ()) if side else understood.flows.get(flow, ())
    return next((one.origin for one in table if one.key == key), "default")


def _meaning(understood: Understanding) -> dict[str, Any]:
    """Return everything that has an effect, with masked secrets."""
    found: dict[str, Any] = {name: {one.key: one.value for one in table} for name, table in understood.flows.items()}
    for (name, side), table in understood.clients.items():
        effective = _effective(understood, name, side)
        found[f"{name} {side}"] = {one.key: one.value for one in table if one.key in effective}
    beats = understood.settings.heartbeats if understood.settings is not None else ()
    found["heartbeats"] = {
        pair.name: (pair.emit_heartbeats_interval_seconds, pair.heartbeats_topic_replication_factor) for pair in beats
    }
    return found


def _effective(understood: Understanding, name: str, side: str) -> dict[str, Found]:
    """Return what the files set for one end of a flow and has an effect."""
    settings = understood.set_for[name, side]
    return {key: found for key, found in settings.items() if found.key in understood.entries}


class _Properties:
    """The lines of an mm2.properties; `with_common` writes what all flows of a cluster share once, for the cluster."""

    def __init__(self, understood: Understanding, secrets: EnvironmentSecrets, *, with_common: bool) -> None:
        if understood.settings is None:
            raise understood.errors[0]
        self._settings = understood.settings
        self._flows = tuple(flow.name for flow in understood.settings.flows)
        self._aliases = tuple(
            dict.fromkeys(
                [cluster.alias for cluster in understood.settings.clusters]
                + [alias for name in self._flows for alias in name.split(ARROW)]
            )
        )
        self._origins = _Origins()
        self._secrets = secrets
        self._entries = self._kept(understood.entries)
        if with_common:
            self._share()

    def text(self) -> str:
        """Return the whole file."""
        scopes: dict[str, dict[str, _Written]] = {scope: {} for scope in (*self._aliases, "", *self._flows)}
        for (scope, setting), entry in self._entries.items():
            scopes.setdefault(scope, {})[setting] = entry
        lines = [MARK, f"{CLUSTERS} = {', '.join(self._aliases)}"]
        for scope, settings in scopes.items():
            enabled = [f"{scope}.{_ENABLED} = true"] if scope in self._flows else []
            if settings or enabled:
                lines += ["", *enabled]
            for setting, entry in settings.items():
                key = f"{scope}.{setting}" if scope else setting
                value = _escaped(self._secrets.replaced(key, entry.value))
                lines += [f"# {entry.origin}", f"{key} = {value}".rstrip(" ")]
        return "\n".join(lines) + "\n"

    def _kept(self, entries: Mapping[str, PropertyEntry]) -> dict[tuple[str, str], _Written]:
        """Return the entries that have an effect, by scope and setting."""
        found = {}
        for name, entry in entries.items():
            key = take_apart(name, self._aliases)
            if self._has_effect(key.scope, key.setting):
                found[key.scope, key.setting] = _Written(entry.value, self._origins.of(entry, name))
        return found

    def _has_effect(self, scope: str, setting: str) -> bool:
        if setting in (CLUSTERS, _ENABLED) or setting.endswith("cluster.alias"):
            return False
        if ARROW in scope:
            source, _, target = scope.partition(ARROW)
            exists = source in self._aliases and target in self._aliases and source != target
            known = flow_vocabulary(FLOW_KEYS).read(setting) is not None
            return exists and known and (scope in self._flows or setting.startswith(_BEATS))
        if scope:
            return setting.startswith("mirrorless.") or cluster_vocabulary(WORKER_KEYS).read(setting) is not None
        return setting.startswith("mirrorless.") or top_vocabulary(FLOW_KEYS, WORKER_KEYS).read(setting) is not None

    def _share(self) -> None:
        """Write `A.key` instead of `A->B.source.cluster.key` where each flow of A has the same value."""
        shared: dict[tuple[str, str], list[tuple[tuple[str, str], _Written]]] = {}
        for (scope, setting), entry in self._entries.items():
            for side, alias in zip(("source", "target"), scope.split(ARROW), strict=False) if ARROW in scope else ():
                prefix = f"{side}.cluster."
                inner = setting.removeprefix(prefix)
                if inner != setting and is_client_key(inner) and not inner.startswith(ROLE_PREFIXES):
                    shared.setdefault((alias, inner), []).append(((scope, setting), entry))
        for (alias, setting), found in shared.items():
            flows = [name for name in self._flows if alias in name.split(ARROW)]
            values = {entry.value for _, entry in found}
            if len(values) == 1 and len(found) == len(flows) and (alias, setting) not in self._entries:
                for place, _ in found:
                    del self._entries[place]
                self._entries[alias, setting] = found[0][1]


class _Origins:
    """Where entries come from; for files that were written by a conversion, where it found them."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def of(self, entry: PropertyEntry, name: str) -> str:
        """Return the origin of an entry in one line."""
        if entry.line > 0 and (comment := self._comment(entry)) is not None:
            return comment
        written = "" if entry.written in (None, name) else f" {shown_name(entry.written or '')}"
        text = f"{entry.place}{written}"
        return text if text.isprintable() else repr(text)

    def _comment(self, entry: PropertyEntry) -> str | None:
        file = entry.file or ""
        if file not in self._lines:
            text = locations.read(file) if Path(file).is_file() or ":" in file else ""
            self._lines[file] = text.splitlines() if text.startswith(MARK) else []
        lines = self._lines[file]
        above = lines[entry.line - 2] if 2 <= entry.line <= len(lines) else ""
        return above.removeprefix("# ") if above.startswith("# ") else None


def _escaped(value: str) -> str:
    text = "".join(_ESCAPES.get(sign) or (sign if " " <= sign <= "~" else _unicode(sign)) for sign in value)
    return re.sub(r"^ ", r"\\ ", text)


def _unicode(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _connectors(understood: Understanding, secrets: EnvironmentSecrets) -> Iterator[dict[str, Any]]:
    settings = understood.settings
    assert settings is not None
    for flow in sorted(settings.flows, key=lambda flow: flow.name):
        own = {key: found.value for key, found in understood.set_for[flow.name, ""].items() if key != _NAME}
        reset = f"{flow.source.alias}.consumer.auto.offset.reset"
        if reset in own:
            own["source.consumer.auto.offset.reset"] = own.pop(reset)
        ends = _ends(understood, flow.name, secrets)
        beats = {key: own.pop(key) for key in tuple(own) if key.startswith(_BEATS)}
        checkpoints = {key: value for key, value in own.items() if key.startswith(OF_OTHERS[_CHECKPOINT])}
        rest = {key: value for key, value in own.items() if key not in checkpoints}
        yield _connector(flow.connector_name, _SOURCE, ends | rest)
        if flow.emit_checkpoints_enabled:
            yield _connector(f"{flow.name}.checkpoint", _CHECKPOINT, ends | checkpoints)
        if flow.emit_heartbeats_enabled:
            yield _connector(f"{flow.name}.heartbeat", _HEARTBEAT, ends | beats)
    names = {flow.name for flow in settings.flows}
    # In an order that does not depend on that of the clusters, which this form does not have.
    for pair in sorted(settings.heartbeats, key=lambda pair: pair.name):
        if pair.name not in names:
            ends = {"source.cluster.alias": pair.source.alias, "target.cluster.alias": pair.target.alias}
            for side, cluster in (("source", pair.source), ("target", pair.target)):
                ends[f"{side}.cluster.bootstrap.servers"] = cluster.bootstrap_servers
            beats = {
                "emit.heartbeats.interval.seconds": str(pair.emit_heartbeats_interval_seconds),
                "heartbeats.topic.replication.factor": str(pair.heartbeats_topic_replication_factor),
            }
            yield _connector(f"{pair.name}.heartbeat", _HEARTBEAT, ends | beats)


def _ends(understood: Understanding, name: str, secrets: EnvironmentSecrets) -> dict[str, str]:
    found = dict(zip(("source.cluster.alias", "target.cluster.alias"), name.split(ARROW), strict=True))
    for side in ("source", "target"):
        for key, setting in _effective(understood, name, side).items():
            role, _, inner = key.partition(".")
            full = f"{side}.cluster.{key}"
            if role in ("consumer", "admin", "producer"):
                full = f"producer.override.{inner}" if (side, role) == ("target", "producer") else f"{side}.{key}"
            alias = found[f"{side}.cluster.alias"]
            value = secrets.replaced(f"{alias}.{key}", setting.value)
            found[full] = value
    return found


def _connector(name: str, kind: str, config: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "config": {"connector.class": f"{JAVA_PACKAGE}{kind}", **config}}


class EnvironmentSecrets:
    """Names an environment variable for each secret that a file has as text; `names` are those, by their settings."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def replaced(self, key: str, value: str) -> str:
        """Return the value as it may be written: itself, or a reference."""
        if not is_plain_secret(key, value):
            return value
        if key not in self.names:
            name = base = re.sub(r"\W+", "_", key).strip("_").upper()
            number = 1
            while name in self.names.values():
                number += 1
                name = f"{base}_{number}"
            self.names[key] = name
        return f"${{env:{self.names[key]}}}"


def is_plain_secret(key: str, value: str) -> bool:
    """Whether a value contains a secret, and not only references to it."""
    if shown(key, value) != MASK and not is_secret(key):
        return False
    if not key.lower().endswith("jaas.config"):
        return bool(without_references(value).strip())
    login = _LOGIN.fullmatch(value)
    if login is None:
        return bool(without_references(value).strip())
    options = [(name.lower(), text.strip("\"'")) for name, text in _OPTION.findall(login[1])]
    referred = any(name not in _NOT_SECRET and refers(text) for name, text in options)
    if any(name in _USERS for name, _ in options) and not referred:
        return True  # the secret of this user is missing, or is where the name should be
    return any(name not in _NOT_SECRET and without_references(text).strip() for name, text in options)
