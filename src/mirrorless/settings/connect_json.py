"""Reads connector configurations, as posted to Connect's REST interface, like an mm2.properties file.

Accepted: one connector (`{"name": ..., "config": {...}}`, or its settings alone, as for `PUT .../config`), a list of
connectors, and the response of `GET /connectors?expand=info` (`{"<name>": {"info": {...}}}`), also with
`expand=status`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.client_keys import BOOTSTRAP_SERVERS, SECURITY_PREFIXES
from mirrorless.settings.properties import ARROW, NOBODYS, PropertyEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# In order of precedence, where several connectors of a flow set the same key.
_CONNECTORS: Final = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
_COPIES, _CHECKPOINTS, _BEATS = _CONNECTORS
# Settings of one connector, so that each may have a different value.
_ITS_OWN: Final = ("name", "connector.class", "source.cluster.alias", "target.cluster.alias", "enabled")
# What the other connectors may set for a flow; all else is taken from the MirrorSourceConnector, or the default.
_OF_OTHERS: Final = {
    "MirrorCheckpointConnector": (
        "groups",
        "group.",
        "checkpoints.",
        "emit.checkpoints.",
        "sync.group.offsets.",
        "refresh.groups.",
    ),
    "MirrorHeartbeatConnector": ("heartbeats.", "emit.heartbeats."),
}
_OF_CONNECTIONS: Final = ("source.", "target.", "admin.", "producer.", *SECURITY_PREFIXES, BOOTSTRAP_SERVERS)
# Connect's own settings, which do not affect what is copied.
_OF_CONNECT: Final = (
    "tasks.max",
    "key.converter",
    "value.converter",
    "header.converter",
    "errors.retry.",
    "errors.log.",
)
_WORKER_S: Final = "offset.storage."
_PROGRESS: Final = f"{_WORKER_S}topic"
# KIP-618: a connector's own offsets topic, which Connect reads before the worker's.
_OWN_PROGRESS: Final = "offsets.storage.topic"
_NAME: Final = "mirrorless.connector.name"
_NOT_RUNNING: Final = ("PAUSED", "STOPPED")
_EMIT_CHECKPOINTS: Final = "emit.checkpoints.enabled"
_EMIT_HEARTBEATS: Final = "emit.heartbeats.enabled"


@dataclass(frozen=True, slots=True)
class _Connector:
    """A connector of MirrorMaker 2; `name` is Connect's, None if the file has only the settings."""

    kind: str
    name: str | None
    file: str
    source: str
    target: str
    settings: Mapping[str, str]

    @property
    def called(self) -> str:
        return _called(self.name)

    @property
    def flow(self) -> str:
        return f"{self.source}{ARROW}{self.target}"

    @property
    def is_off(self) -> bool:
        """Whether it does nothing; a disabled MirrorSourceConnector is a flow that is not enabled instead."""
        return self.kind != _COPIES and self.settings.get("enabled", "true").lower() == "false"

    def may_say(self, key: str) -> bool:
        """Whether a setting applies to it: to the other connectors, their own settings and client settings."""
        return self.kind == _COPIES or key.startswith((*_OF_OTHERS[self.kind], *_OF_CONNECTIONS, _WORKER_S))


@dataclass(frozen=True, slots=True)
class Connectors:
    """Entries as of an mm2.properties file, and warnings about the connectors."""

    entries: Mapping[str, PropertyEntry]
    warnings: tuple[str, ...]


def is_json(text: str) -> bool:
    """Whether a text can only be JSON: no setting begins like this."""
    return text.lstrip().startswith(("{", "["))


def read_connectors(texts: Sequence[tuple[str, str]]) -> Connectors:
    """Read files, given as name and text; raises ConfigurationError for what is not a connector of MirrorMaker 2."""
    connectors: list[_Connector] = []
    warnings: list[str] = []
    for file, text in texts:
        value = _parsed(text, file=file)
        warnings += _not_running(value, file=file)
        for name, settings in _found(value, file=file):
            connector = _connector(name, settings, file=file)
            if connector is not None and connector.is_off:
                warnings.append(f"{file}: connector {connector.called}: enabled=false, so the connector is ignored")
            elif connector is None:
                warnings.append(f"{file}: connector {_called(name)}: ignored, not a connector of MirrorMaker 2")
            else:
                connectors.append(connector)
    if not connectors:
        raise ConfigurationError(
            f"the file has no connector of MirrorMaker 2; supported: {', '.join(_CONNECTORS)}", file=texts[0][0]
        )
    connectors.sort(key=lambda connector: _CONNECTORS.index(connector.kind))
    entries: dict[str, PropertyEntry] = {}
    _copying(connectors, warnings)
    aliases = dict.fromkeys(alias for one in connectors for alias in (one.source, one.target))
    entries["clusters"] = PropertyEntry(",".join(aliases), 0, texts[0][0], "source.cluster.alias")
    copied = {connector.flow for connector in connectors if connector.kind == _COPIES}
    for connector in connectors:
        warnings += _add(connector, entries, only_heartbeats=connector.flow not in copied)
        if connector.kind == _COPIES:
            warnings += _go_on(connector, entries)
    _add_absent(connectors, aliases, entries)
    return Connectors(entries, tuple(warnings))


def _go_on(connector: _Connector, entries: dict[str, PropertyEntry]) -> Iterator[str]:
    """Yield warnings where it is not known in which topic Connect keeps the progress."""
    where = f"{connector.file}: connector {connector.called}"
    named = f"{connector.flow}.{_NAME}"
    if connector.name is not None:
        entries.setdefault(named, PropertyEntry(connector.name, NOBODYS, f"{connector.file}#{connector.name}", "name"))
    elif named not in entries:
        yield f"{where}: name is missing; add the connector's name to resume where Connect stopped"
    if f"{connector.target}.{_PROGRESS}" not in entries:
        yield (
            f"{where}: offset.storage.topic is not set, so the copy uses a new progress topic; to resume where "
            "Connect stopped, set it to the worker's offset.storage.topic"
        )


def _parsed(text: str, *, file: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"is not JSON at line {error.lineno}: {error.msg}", file=file) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"is not JSON that can be read: {type(error).__name__}", file=file) from None


def _found(value: object, *, file: str) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Yield the names, if any, and settings of connectors, for every accepted structure of the file."""
    if isinstance(value, list):
        for number, one in enumerate(value, start=1):
            if not isinstance(one, dict):
                raise ConfigurationError(f"element {number} of the list is not a connector", file=file)
            yield from _found(one, file=file)
    elif not isinstance(value, dict):
        raise ConfigurationError("is not a connector", file=file)
    elif isinstance(value.get("config"), dict):
        config = value["config"]
        yield _name(value) or _name(config), config
    elif "connector.class" in value:
        yield _name(value), value
    elif value and all(isinstance(one, dict) for one in value.values()):
        for name, one in value.items():
            inner = one.get("info", one)
            if not isinstance(inner, dict) or not ({"config", "connector.class"} & inner.keys()):
                raise ConfigurationError("has no settings; request it with ?expand=info", file=file, key=_line(name))
            yield from _found({"name": name, "config": inner.get("config", inner)}, file=file)
    else:
        raise ConfigurationError('is not a connector: it has neither "connector.class" nor "config"', file=file)


def _not_running(value: object, *, file: str) -> Iterator[str]:
    """Yield a warning for each connector that Connect has paused or stopped, as `expand=status` shows."""
    for name, one in value.items() if isinstance(value, dict) else ():
        status = one.get("status") if isinstance(one, dict) else None
        connector = status.get("connector") if isinstance(status, dict) else None
        state = connector.get("state") if isinstance(connector, dict) else None
        if state in _NOT_RUNNING:
            yield (
                f"{file}: connector {_line(name)}: is {state} on Connect, which has no effect here; to start without "
                "copying, use mirrorless pause"
            )


def _name(fields: Mapping[str, Any]) -> str | None:
    name = fields.get("name")
    return _line(str(name)) if name else None


def _called(name: str | None) -> str:
    return "without a name" if name is None else name


def _connector(name: str | None, settings: Mapping[str, Any], *, file: str) -> _Connector | None:
    where = f"{file}: connector {_called(name)}"
    texts: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, dict | list):
            raise ConfigurationError("must be a string, a number, true or false", file=where, key=_line(key))
        if value is not None and not (key.strip() == "enabled" and not str(value).strip()):
            texts[key.strip()] = (str(value).lower() if isinstance(value, bool) else str(value)).strip()
    kind = texts.get("connector.class", "").rpartition(".")[2]
    if kind not in _CONNECTORS:
        return None
    source, target = texts.get("source.cluster.alias", ""), texts.get("target.cluster.alias", "target")
    if not source and not texts.get("replication.policy.separator", "."):
        advice = "to keep topic names, name both clusters and set replication.policy.class to IdentityReplicationPolicy"
        raise ConfigurationError(f"is empty, and so is the separator; {advice}", file=where, key="source.cluster.alias")
    if not source:
        raise ConfigurationError("is missing; name the source cluster", file=where, key="source.cluster.alias")
    for key, alias in (("source.cluster.alias", source), ("target.cluster.alias", target)):
        if ARROW in alias or "," in alias or not alias or len(alias.split()) != 1:
            raise ConfigurationError("must be one word without -> and commas", file=where, key=key, value=_line(alias))
    return _Connector(kind, name, file, source, target, texts)


def _copying(connectors: list[_Connector], warnings: list[str]) -> None:
    """Remove flows without a MirrorSourceConnector, except heartbeats; raise if no flow is left."""
    flows = {connector.flow for connector in connectors if connector.kind == _COPIES}
    if not flows:
        one = connectors[0]
        raise ConfigurationError(
            f"{one.kind} does not copy records; add the {_COPIES} of {one.flow}", file=one.file, key=one.called
        )
    aliases = {alias for flow in flows for alias in flow.split(ARROW)}
    for connector in [connector for connector in connectors if connector.flow not in flows]:
        if connector.kind == _BEATS and {connector.source, connector.target} <= aliases:
            continue  # heartbeats that are emitted to a source are copied from there
        connectors.remove(connector)
        warnings.append(
            f"{connector.file}: connector {connector.called}: is ignored, as {connector.flow} has no {_COPIES}"
        )
    for kind in _CONNECTORS:
        for flow in flows:
            same = [connector for connector in connectors if (connector.kind, connector.flow) == (kind, flow)]
            if len(same) > 1:
                names = " and ".join(connector.called for connector in same)
                way = "use a separate configuration file for each" if kind == _COPIES else "merge them into one"
                raise ConfigurationError(f"{names} are both a {kind} of {flow}; {way}", file=same[1].file)


def _add(connector: _Connector, entries: dict[str, PropertyEntry], *, only_heartbeats: bool) -> Iterator[str]:
    place = f"{connector.file}#{connector.called}"
    for key, value in _with_own_progress(connector).items():
        if key in _ITS_OWN and not (key == "enabled" and connector.kind == _COPIES):
            continue
        if only_heartbeats and "heartbeats" not in key:
            continue
        # A connector has no settings of Connect's own topics; here it may, because there is no worker's file.
        full = f"{connector.target if key.startswith(_WORKER_S) else connector.flow}.{key}"
        new = PropertyEntry(value, 0, place, key)
        if full not in entries:
            if connector.may_say(key):
                entries[full] = new
            elif not key.startswith(_OF_CONNECT):
                yield f"{place}: {key}: is ignored, because the {_COPIES} does not set it"
        elif entries[full].value != value:
            if key == _PROGRESS and connector.kind == _COPIES:
                # One flow would copy every topic from the beginning.
                reason = f"{entries[full].file} has {entries[full].value}; use a separate configuration file for each"
                raise ConfigurationError(reason, file=place, key=key, value=value)
            yield f"{place}: {key}: is ignored, because {entries[full].file} sets another value"
    if connector.kind == _COPIES:
        # On Connect, a connector that exists runs.
        entries.setdefault(f"{connector.flow}.enabled", PropertyEntry("true", NOBODYS, place, "enabled"))


def _with_own_progress(connector: _Connector) -> Mapping[str, str]:
    own = connector.settings.get(_OWN_PROGRESS)
    if connector.kind != _COPIES or own is None:
        return connector.settings
    others = {key: value for key, value in connector.settings.items() if key != _OWN_PROGRESS}
    return others | {_PROGRESS: own} if own else others


def _add_absent(connectors: Sequence[_Connector], aliases: Iterable[str], entries: dict[str, PropertyEntry]) -> None:
    """Disable what no connector does; heartbeats are otherwise emitted between any two clusters."""
    present = {(connector.flow, connector.kind) for connector in connectors}
    file = connectors[0].file
    for connector in connectors:
        if connector.kind == _COPIES and (connector.flow, _CHECKPOINTS) not in present:
            place = f"{connector.file}: there is no {_CHECKPOINTS}"
            entries[f"{connector.flow}.{_EMIT_CHECKPOINTS}"] = PropertyEntry("false", NOBODYS, place, _EMIT_CHECKPOINTS)
    for source, target in permutations(aliases, 2):
        flow = f"{source}{ARROW}{target}"
        if (flow, _BEATS) not in present:
            place = f"{file}: there is no {_BEATS}"
            entries[f"{flow}.{_EMIT_HEARTBEATS}"] = PropertyEntry("false", NOBODYS, place, _EMIT_HEARTBEATS)


def _line(text: str) -> str:
    return text if text.isprintable() else repr(text)
