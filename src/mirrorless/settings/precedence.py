"""Precedence of settings that may be set in several places: MirrorMaker 2's `MirrorMakerConfig`.

- a flow's setting: `A->B.key`, then `key`
- a client of a flow, later wins: `source.cluster.k` for security only, `consumer.k`, `source.consumer.k`, where the
  cluster's own `A.consumer.k` counts as `source.consumer.k` and the flow's `A->B.source.consumer.k` beats it
- the producer that writes the copy: `B.producer.k`, then `A->B.producer.override.k`, which wins
- the Connect worker's storage topics: `key`, then `B.key`, B being the target: here the top level wins
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from mirrorless.settings.client_keys import (
    BOOTSTRAP_SERVERS,
    CLUSTER_ID,
    COMMON_CLIENT_KEYS,
    ROLE_PREFIXES,
    ROLES,
    is_connection_key,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings.properties import PropertyEntry

Side = Literal["source", "target"]
_OVERRIDE: Final = "producer.override."


@dataclass(frozen=True, slots=True)
class Found:
    """A setting as the file has it: the full key, for errors, and the entry."""

    key: str
    entry: PropertyEntry

    @property
    def value(self) -> str:
        """The text of the entry; it may be a secret."""
        return self.entry.value


def first(entries: Mapping[str, PropertyEntry], *keys: str) -> Found | None:
    """Return the first of these keys that the file has."""
    return next((Found(key, entries[key]) for key in keys if key in entries), None)


def flow_setting(entries: Mapping[str, PropertyEntry], key: str, *, flow: str) -> Found | None:
    """Look up a setting of a flow, given by its name (`A->B`)."""
    return first(entries, f"{flow}.{key}", key)


def worker_setting(entries: Mapping[str, PropertyEntry], key: str, *, target: str) -> Found | None:
    """Look up a setting that MirrorMaker 2 gives to the Connect worker of the target."""
    return first(entries, key, f"{target}.{key}")


def cluster_settings(entries: Mapping[str, PropertyEntry], alias: str) -> dict[str, Found]:
    """Collect the client settings of a cluster from its own keys and the top level (`clusterProps`)."""
    own = _behind(entries, f"{alias}.")
    shared = {key: Found(key, entry) for key, entry in entries.items() if is_connection_key(key)}
    found = {key: setting for key, setting in own.items() if _belongs(key)}
    for settings in ({key: setting for key, setting in own.items() if is_connection_key(key)}, shared):
        for key, setting in settings.items():
            for prefix in ROLE_PREFIXES:
                found.setdefault(prefix + key, setting)
    return shared | found


def client_settings(entries: Mapping[str, PropertyEntry], *, flow: tuple[str, str], side: Side) -> dict[str, Found]:
    """Collect the client settings of one end of a flow.

    The keys are without alias and side; `consumer.`, `producer.` and `admin.` prefixes stay on keys of one role.
    """
    alias = flow[0] if side == "source" else flow[1]
    cluster = cluster_settings(entries, alias)
    connector = {
        (f"{side}.{key}" if key.startswith(ROLE_PREFIXES) else f"{side}.cluster.{key}"): setting
        for key, setting in cluster.items()
    } | _behind(entries, f"{flow[0]}->{flow[1]}.")
    every = _stripped(connector, f"{side}.cluster.")
    found = {key: setting for key, setting in every.items() if not key.startswith(ROLE_PREFIXES) and _belongs(key)}
    for role in ROLES:
        mine = _stripped(connector, f"{role}.") if (side, role) != ("target", "producer") else {}
        mine = {key: setting for key, setting in mine.items() if not key.startswith("override.")}
        mine |= _stripped(connector, f"{side}.{role}.")
        if (side, role) == ("target", "producer"):
            mine = _stripped(cluster, "producer.") | _stripped(connector, _OVERRIDE)
        found |= {f"{role}.{key}": setting for key, setting in mine.items()}
    return _without_repetition(found)


def _behind(entries: Mapping[str, PropertyEntry], prefix: str) -> dict[str, Found]:
    return {key[len(prefix) :]: Found(key, entry) for key, entry in entries.items() if key.startswith(prefix)}


def _stripped(settings: Mapping[str, Found], prefix: str) -> dict[str, Found]:
    return {key[len(prefix) :]: setting for key, setting in settings.items() if key.startswith(prefix)}


def _belongs(key: str) -> bool:
    return key in COMMON_CLIENT_KEYS or key == CLUSTER_ID or is_connection_key(key) or key.startswith(ROLE_PREFIXES)


def _without_repetition(settings: Mapping[str, Found]) -> dict[str, Found]:
    """Drop settings of one role that repeat, from the same line, a setting of all roles."""
    return {
        key: setting
        for key, setting in settings.items()
        if not key.startswith(ROLE_PREFIXES) or settings.get(key.partition(".")[2]) != setting
    }


def bootstrap_servers(settings: Mapping[str, Found]) -> Found | None:
    """Return the bootstrap servers of a cluster, from its client settings."""
    return settings.get(BOOTSTRAP_SERVERS) or next(
        (settings[key] for prefix in ROLE_PREFIXES if (key := prefix + BOOTSTRAP_SERVERS) in settings), None
    )
