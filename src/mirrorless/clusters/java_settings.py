"""Reads one cluster's Java client settings in one role; settings that were not read are refused in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NoReturn

from mirrorless.errors import ConfigurationError
from mirrorless.settings.client_keys import (
    BOOTSTRAP_SERVERS,
    COMMON_CLIENT_KEYS,
    CONSUMER_KEYS,
    PRODUCER_KEYS,
    ROLE_PREFIXES,
)
from mirrorless.settings.masking import shown
from mirrorless.settings.references import refers, resolve

if TYPE_CHECKING:
    from mirrorless.settings import Cluster

Role = Literal["admin", "consumer", "producer"]


HONOURED_COMMON_KEYS: Final = frozenset(
    {
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
    }
)

# These only tune Java's clients, or are decided elsewhere here; the copier works differently, so they are ignored.
TUNING_KEYS: Final = (COMMON_CLIENT_KEYS - HONOURED_COMMON_KEYS) | CONSUMER_KEYS | PRODUCER_KEYS


class JavaSettings:
    """The settings that apply in this role: `<role>.key` beats `key`. Every one that is read counts as supported.

    All errors are ConfigurationError with the key as the file has it, and with the value unless it is or may be a
    secret.
    """

    def __init__(self, cluster: Cluster, role: Role) -> None:
        prefix = f"{role}."
        plain = {key: key for key in cluster.client if not key.startswith(ROLE_PREFIXES)}
        own = {key.removeprefix(prefix): key for key in cluster.client if key.startswith(prefix)}
        self._alias = cluster.alias
        self._keys = {BOOTSTRAP_SERVERS: BOOTSTRAP_SERVERS} | plain | own
        self._values = {BOOTSTRAP_SERVERS: cluster.bootstrap_servers} | dict(cluster.client)
        self._rest = set(self._keys)

    def raw(self, key: str) -> str | None:
        """Return the text without blanks around it, with references resolved; None if it is not set.

        Java trims passwords too, after resolving references (`ConfigDef.parseType`): a mounted secret may end
        in a line break.
        """
        self._rest.discard(key)
        if key not in self._keys:
            return None
        full = self._keys[key]
        return resolve(self._values[full], key=f"{self._alias}.{full}").strip()

    def text(self, key: str) -> str | None:
        """Return the text as `raw` does; None if it is not set or empty."""
        return self.raw(key) or None

    def choice(self, key: str, *, default: str, allowed: tuple[str, ...]) -> str:
        """Return one of the allowed words in upper case; refuses others, the default too if it is not allowed."""
        word = (self.text(key) or default).upper()
        if word not in allowed:
            # The value of a reference is never shown.
            what = "the referenced value" if refers(self._values.get(self._keys.get(key, key), "")) else word
            self.refuse(key, f"{what} is not supported; use {' or '.join(allowed)}", default=default)
        return word

    def number(self, key: str, *, least: int, greatest: int | None = None) -> int | None:
        """Return a whole number within the bounds; None if it is not set."""
        text = self.text(key)
        if text is None:
            return None
        bounds = f"{least} or more" if greatest is None else f"{least} to {greatest}"
        try:
            number = int(text)
        except ValueError:
            self.refuse(key, f"must be a whole number, {bounds}")
        if number < least or (greatest is not None and number > greatest):
            self.refuse(key, f"must be {bounds}")
        return number

    def pass_over(self, *, prefix: str) -> None:
        """Count everything with this prefix as supported, because it has no effect."""
        self._rest = {key for key in self._rest if not key.startswith(prefix)}

    def refuse(self, key: str, reason: str, *, default: str | None = None) -> NoReturn:
        """Raise ConfigurationError about this setting; `default` is the value that applies if it is not set."""
        full = self._keys.get(key, key)
        value = self._values.get(full, default)
        text = None if value is None else shown(full, value)
        raise ConfigurationError(reason, key=f"{self._alias}.{full}", value=text) from None

    def refuse_rest(self) -> None:
        """Refuse the first setting that was neither read nor only tunes."""
        for key in sorted(self._rest - TUNING_KEYS):
            full = f"{self._alias}.{self._keys[key]}"
            # An unknown setting's value may be anything, also a secret.
            raise ConfigurationError("this setting is not supported here; remove it", key=full, value=None)
