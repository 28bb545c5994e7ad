"""Which of several places a setting is taken from (MirrorMaker 2's `MirrorMakerConfig`).

- a flow's setting: `A->B.key`, then `key`
- a cluster's client setting: `A.key`, then `key` for security, TLS and SASL only; role prefixes are left for the client
  to resolve
- the Connect worker's storage topics: `key`, then `B.key`, B being the target: here the top level wins
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings.properties import Entry

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"

SECURITY_PREFIXES: Final = ("security.", "ssl.", "sasl.")
ROLE_PREFIXES: Final = ("consumer.", "producer.", "admin.")

# What consumers, producers and admin clients have in common (CommonClientConfigs). Behind an alias there are also
# settings of the Connect worker, so a key is a client's only if it is named here or has one of the prefixes above.
COMMON_CLIENT_KEYS: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """A setting as the file has it: the full key, for errors, and the entry."""

    key: str
    entry: Entry

    @property
    def value(self) -> str:
        """The text of the entry; it may be a secret."""
        return self.entry.value


def first(entries: Mapping[str, Entry], *keys: str) -> Found | None:
    """Return the first of these keys that the file has."""
    return next((Found(key, entries[key]) for key in keys if key in entries), None)


def flow_setting(entries: Mapping[str, Entry], key: str, *, flow: str) -> Found | None:
    """Look up a setting of a flow, given by its name (`A->B`)."""
    return first(entries, f"{flow}.{key}", key)


def worker_setting(entries: Mapping[str, Entry], key: str, *, target: str) -> Found | None:
    """Look up a setting that MirrorMaker 2 gives to the Connect worker of the target."""
    return first(entries, key, f"{target}.{key}")


def bootstrap_servers(entries: Mapping[str, Entry], alias: str) -> Found | None:
    """Look up where the cluster is."""
    return first(entries, f"{alias}.{BOOTSTRAP_SERVERS}", BOOTSTRAP_SERVERS)


def client_settings(entries: Mapping[str, Entry], alias: str) -> dict[str, str]:
    """Collect the Java client settings of a cluster, without its alias and without the bootstrap servers."""
    shared = {key: entry.value for key, entry in entries.items() if key.startswith(SECURITY_PREFIXES)}
    prefix = f"{alias}."
    own = {key.removeprefix(prefix): entry.value for key, entry in entries.items() if key.startswith(prefix)}
    return shared | {key: value for key, value in own.items() if _is_client_setting(key)}


def _is_client_setting(key: str) -> bool:
    return key in COMMON_CLIENT_KEYS or key.startswith(SECURITY_PREFIXES + ROLE_PREFIXES)
