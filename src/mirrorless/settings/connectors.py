"""Makes entries as of an mm2.properties file of connectors, as Connect runs them, and of its worker's settings.

If several connectors of a flow set the same key, the MirrorSourceConnector wins. What the worker sets for the producer
of its connectors and for its offsets topic is the target cluster's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.client_keys import BOOTSTRAP_SERVERS, SECURITY_PREFIXES, is_connection_key
from mirrorless.settings.key_normalizer import addresses
from mirrorless.settings.masking import shown
from mirrorless.settings.named_clusters import without_alias
from mirrorless.settings.properties import ARROW, NOBODYS, PropertyEntry
from mirrorless.settings.unsupported_keys import foreign

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# In order of precedence, where several connectors of a flow set the same key.
CONNECTORS: Final = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
_COPIES, _CHECKPOINTS, _BEATS = CONNECTORS
# Settings of one connector, so that each may have a different value.
_ITS_OWN: Final = ("name", "connector.class", "source.cluster.alias", "target.cluster.alias", "enabled")
# What the other connectors may set for a flow; all else is taken from the MirrorSourceConnector, or the default.
OF_OTHERS: Final = {
    _CHECKPOINTS: (
        "groups",
        "group.",
        "checkpoints.",
        "emit.checkpoints.",
        "sync.group.offsets.",
        "refresh.groups.",
    ),
    _BEATS: ("heartbeats.", "emit.heartbeats."),
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
_FILE_OF_OFFSETS: Final = "offset.storage.file.filename"
_TARGET_SERVERS: Final = "target.cluster.bootstrap.servers"
_PROGRESS: Final = f"{_WORKER_S}topic"
# KIP-618: a connector's own offsets topic, which Connect reads before the worker's.
_OWN_PROGRESS: Final = "offsets.storage.topic"
_NAMELESS: Final = "source"
_NAME: Final = "mirrorless.connector.name"
OF_CONNECTORS: Final = "source.cluster.alias"
"""The key that the clusters of connectors come from, where a file has no `clusters`."""
PAUSED: Final = "mirrorless.paused"
_EMIT_CHECKPOINTS: Final = "emit.checkpoints.enabled"
_EMIT_HEARTBEATS: Final = "emit.heartbeats.enabled"


@dataclass(frozen=True, slots=True)
class Worker:
    """The settings of a Connect worker, with their places."""

    settings: Mapping[str, PropertyEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector of MirrorMaker 2; `name` is Connect's, None if the file has only the settings.

    `where` names it in messages; `settings` have their place in the file. `worker` is set if it is a part of the file.
    """

    kind: str
    name: str | None
    file: str
    source: str
    target: str
    where: str
    settings: Mapping[str, PropertyEntry]
    worker: Worker | None = None

    @property
    def called(self) -> str:
        """The name for messages."""
        return called(self.name)

    def value(self, key: str) -> str:
        """Return a setting, empty if it is not set."""
        return self.settings[key].value if key in self.settings else ""

    @property
    def flow(self) -> str:
        """The flow's name."""
        return f"{self.source}{ARROW}{self.target}"

    @property
    def is_off(self) -> bool:
        """Whether it does nothing; a disabled MirrorSourceConnector is a flow that is not enabled instead."""
        return not self.copies and (self.value("enabled").lower() == "false" or PAUSED in self.settings)

    @property
    def copies(self) -> bool:
        """Whether it is a MirrorSourceConnector."""
        return self.kind == _COPIES

    def may_say(self, key: str) -> bool:
        """Whether a setting applies to it: to the other connectors, their own settings and client settings."""
        return self.kind == _COPIES or key.startswith((*OF_OTHERS[self.kind], *_OF_CONNECTIONS, _WORKER_S))


@dataclass(frozen=True, slots=True)
class Connectors:
    """Entries as of an mm2.properties file, and warnings about the connectors."""

    entries: Mapping[str, PropertyEntry]
    warnings: tuple[str, ...]


def connector_of(name: str | None, settings: Mapping[str, PropertyEntry], *, file: str, where: str) -> Connector | None:
    """Return a connector; None if its class is not MirrorMaker 2's. Raises ConfigurationError for wrong aliases."""
    settings = {key: entry for key, entry in settings.items() if key != "enabled" or entry.value}
    texts = {key: entry.value for key, entry in settings.items()}
    kind = texts.get("connector.class", "").rpartition(".")[2]
    if kind not in CONNECTORS:
        return None
    source, target = texts.get("source.cluster.alias", ""), texts.get("target.cluster.alias") or "target"
    if not source:
        if OF_CONNECTORS not in texts:
            raise ConfigurationError("is missing; name the source cluster", file=where, key=OF_CONNECTORS)
        kept = without_alias(texts.get("replication.policy.class"), texts.get("replication.policy.separator"))
        if isinstance(kept, str):
            raise ConfigurationError(kept, file=where, key=OF_CONNECTORS)
        source = _NAMELESS
        if kind == _COPIES:
            settings |= {key: replace(settings[OF_CONNECTORS], value=value) for key, value in kept.items()}
    for key, alias in (("source.cluster.alias", source), ("target.cluster.alias", target)):
        if ARROW in alias or "," in alias or not alias or len(alias.split()) != 1:
            reason = "must be one word without -> and commas"
            raise ConfigurationError(reason, file=where, key=key, value=shown(key, alias))
    return Connector(kind, name, file, source, target, where, settings)


def merge(
    connectors: list[Connector], *, file: str, worker: Worker | None = None, warnings: Iterable[str]
) -> Connectors:
    """Return the entries of all connectors; raises ConfigurationError if none of them copies records."""
    told = list(warnings)
    for connector in [connector for connector in connectors if connector.is_off]:
        connectors.remove(connector)
        paused = connector.settings.get(PAUSED)
        why = f"{connector.where}: enabled=false" if paused is None else f"{paused.place}: {paused.written}"
        told.append(f"{why}, so the connector is ignored")
    if not connectors:
        raise ConfigurationError(
            f"the file has no connector of MirrorMaker 2; supported: {', '.join(CONNECTORS)}", file=file
        )
    connectors.sort(key=lambda connector: CONNECTORS.index(connector.kind))
    entries: dict[str, PropertyEntry] = {}
    _copying(connectors, told)
    aliases = dict.fromkeys(alias for one in connectors for alias in (one.source, one.target))
    entries["clusters"] = PropertyEntry(",".join(aliases), 0, file, OF_CONNECTORS)
    copied = {connector.flow for connector in connectors if connector.kind == _COPIES}
    copying = [connector for connector in connectors if connector.kind == _COPIES]
    for connector in connectors:
        told += _add(connector, entries, only_heartbeats=connector.flow not in copied)
    for connector in copying:
        told += _of_worker(connector, connector.worker or worker or Worker(), entries)
    for connector in copying:
        told += _go_on(connector, entries)
    _add_absent(connectors, aliases, entries)
    return Connectors(entries, tuple(dict.fromkeys(told)))


def text_of(value: Any, *, key: str, where: str) -> str | None:  # noqa: ANN401 -- whatever JSON can hold
    """Return a value of a connector as Connect reads it, None for null; raises ConfigurationError for objects."""
    if isinstance(value, dict | list):
        raise ConfigurationError("must be a string, a number, true or false", file=where, key=line(key))
    if value is None:
        return None
    return (str(value).lower() if isinstance(value, bool) else str(value)).strip()


def called(name: str | None) -> str:
    """Return a connector's name for messages."""
    return "without a name" if name is None else name


def line(text: str) -> str:
    """Return a text for messages in one line."""
    return text if text.isprintable() else repr(text)


def _of_worker(connector: Connector, worker: Worker, entries: dict[str, PropertyEntry]) -> Iterator[str]:
    """Add what the worker sets for this connector's flow, and yield warnings about the worker."""
    servers = worker.settings.get(BOOTSTRAP_SERVERS)
    own = connector.value(_TARGET_SERVERS)
    if servers is not None and own and set(addresses(servers.value)).isdisjoint(addresses(own)):
        yield (
            f"{servers.place}: {BOOTSTRAP_SERVERS}={servers.value}: the worker writes to these brokers, but "
            f"{connector.called} has {_TARGET_SERVERS}={own}, which is used"
        )
    if _FILE_OF_OFFSETS in worker.settings:
        entry = worker.settings[_FILE_OF_OFFSETS]
        yield (
            f"{entry.place}: {_FILE_OF_OFFSETS}={entry.value}: progress in a file is not read, so the copy begins as "
            "configured by auto.offset.reset and mirrorless.start.timestamp"
        )
    for key, entry in worker.settings.items():
        if key == _FILE_OF_OFFSETS:
            continue
        new = replace(entry, written=entry.written or key)
        if key.startswith("config.providers"):
            entries.setdefault(key, new)
        elif is_connection_key(key):
            # The worker's own connection, to the same cluster: used where the connector names no brokers.
            if not own:
                entries.setdefault(f"{connector.flow}.target.cluster.{key}", new)
        elif key.startswith(("producer.", _WORKER_S)) or foreign(key) is not None:
            entries.setdefault(f"{connector.target}.{key}", new)


def _go_on(connector: Connector, entries: dict[str, PropertyEntry]) -> Iterator[str]:
    """Yield warnings where it is not known in which topic Connect keeps the progress."""
    where = connector.where
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


def _copying(connectors: list[Connector], warnings: list[str]) -> None:
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
        warnings.append(f"{connector.where}: is ignored, as {connector.flow} has no {_COPIES}")
    for kind in CONNECTORS:
        for flow in flows:
            same = [connector for connector in connectors if (connector.kind, connector.flow) == (kind, flow)]
            if len(same) > 1:
                names = " and ".join(connector.called for connector in same)
                way = "use a separate configuration file for each" if kind == _COPIES else "merge them into one"
                raise ConfigurationError(f"{names} are both a {kind} of {flow}; {way}", file=same[1].file)


def _add(connector: Connector, entries: dict[str, PropertyEntry], *, only_heartbeats: bool) -> Iterator[str]:
    for key, new in _with_own_progress(connector).items():
        if key in _ITS_OWN and not (key == "enabled" and connector.kind == _COPIES):
            continue
        if only_heartbeats and "heartbeats" not in key:
            continue
        # A connector has no settings of Connect's own topics; here it may, because there may be no worker's file.
        full = f"{connector.target if key.startswith(_WORKER_S) else connector.flow}.{key}"
        written = new.written or key
        if full not in entries:
            if connector.may_say(key):
                entries[full] = new
            elif not key.startswith(_OF_CONNECT):
                yield f"{new.place}: {written}: is ignored, because the {_COPIES} does not set it"
        elif entries[full].value != new.value:
            if key == _PROGRESS and connector.kind == _COPIES:
                # One flow would copy every topic from the beginning.
                reason = f"{entries[full].place} has {entries[full].value}; use a separate configuration file for each"
                raise ConfigurationError(reason, file=new.place, key=written, value=new.value)
            yield f"{new.place}: {written}: is ignored, because {entries[full].place} sets another value"
    if connector.kind == _COPIES:
        # On Connect, a connector that exists runs.
        place = f"{connector.file}#{connector.called}"
        entries.setdefault(f"{connector.flow}.enabled", PropertyEntry("true", NOBODYS, place, "enabled"))


def _with_own_progress(connector: Connector) -> Mapping[str, PropertyEntry]:
    own = connector.settings.get(_OWN_PROGRESS)
    if connector.kind != _COPIES or own is None:
        return connector.settings
    others = {key: entry for key, entry in connector.settings.items() if key != _OWN_PROGRESS}
    return others | {_PROGRESS: own} if own.value else others


def _add_absent(connectors: Sequence[Connector], aliases: Iterable[str], entries: dict[str, PropertyEntry]) -> None:
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
