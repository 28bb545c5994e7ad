"""Finds the setting that a misspelled key means: different case, a plural, or another unit.

Two keys mean the same if they consist of the same words: upper or lower case, `.`, `-` or `_` between them, and an `s`
at the end of a word make no difference. A `.ms` instead of `.seconds` is another unit.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from mirrorless.settings.client_keys import (
    ARCHIVE,
    BOOTSTRAP_SERVERS,
    COMMON_CLIENT_KEYS,
    ROLE_KEYS,
    SECURITY_KEYS,
    SECURITY_PREFIXES,
)
from mirrorless.settings.unsupported_keys import NAMES, foreign

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CLUSTER_ALIASES: Final = ("source.cluster.alias", "target.cluster.alias")
"""At top level too where a cluster is called `source` or `target`."""
OWN_PREFIX: Final = "mirrorless."
EARLIER: Final = {"mirrorless.loops": "mirrorless.both.directions"}
"""Earlier names of own settings, which are still read."""

# Names of MirrorMaker 1, and common misspellings.
LEGACY: Final = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
    "topics.whitelist": "topics",
    "topics.include": "topics",
    "whitelist": "topics",
    "blacklist": "topics.exclude",
    "groups.whitelist": "groups",
    "groups.include": "groups",
}

_MS_PER: Final = {"ms": 1, "milli": 1, "milliseconds": 1, "second": 1000, "sec": 1000, "minute": 60_000, "min": 60_000}
_SECOND: Final = "second"
_ROLES: Final = {f"{role}.": names for role, names in ROLE_KEYS.items()}


@dataclass(frozen=True, slots=True)
class Reading:
    """The setting that a key means; `ms_per_unit` is set if its value is not in seconds."""

    key: str
    ms_per_unit: int | None = None

    def in_seconds(self, text: str) -> str | None:
        """Return a value in whole seconds, at least one, rounded up; None if it is not a number."""
        if self.ms_per_unit is None or not re.fullmatch(r"[0-9]{1,15}", text):
            return None
        return str(max(1, math.ceil(int(text) * self.ms_per_unit / 1000)))


class Vocabulary:
    """The keys that are allowed in one kind of place; after a prefix of `nested`, client settings of these names."""

    def __init__(self, keys: Iterable[str], nested: Mapping[str, frozenset[str]]) -> None:
        self._keys = frozenset(keys) | NAMES
        self._by_words = {_words(key): key for key in (*LEGACY, *self._keys) if not key.startswith(OWN_PREFIX)}
        self._nested = nested

    def read(self, key: str) -> Reading | None:
        """Return what a key means; None if it is not known."""
        if key in self._keys:
            return Reading(key)
        if key in LEGACY:
            return Reading(LEGACY[key])
        for prefix, names in self._nested.items():
            if key.lower().startswith(prefix):
                return Reading(prefix + _client_key(key[len(prefix) :], names))
        words = _words(key)
        if found := self._by_words.get(words):
            return Reading(LEGACY.get(found, found))
        if words and (unit := _MS_PER.get(words[-1])) and (found := self._by_words.get((*words[:-1], _SECOND))):
            return Reading(found, ms_per_unit=unit)
        if foreign(key) is not None or key.startswith(SECURITY_PREFIXES):
            return Reading(key)
        return None

    def suggestion(self, key: str) -> str | None:
        """Return the known key of the same words, such as tasks.max for max.tasks, else the most similar one."""
        words = sorted(key.split("."))
        if len(words) > 1 and (same := [one for one in sorted(self._keys) if sorted(one.split(".")) == words]):
            return same[0]
        return next(iter(difflib.get_close_matches(key, sorted(self._keys), n=1, cutoff=0.7)), None)


def cluster_vocabulary(worker_keys: Iterable[str]) -> Vocabulary:
    """Return the vocabulary of keys after a cluster's alias."""
    return Vocabulary({*worker_keys, *COMMON_CLIENT_KEYS, *SECURITY_KEYS, BOOTSTRAP_SERVERS, ARCHIVE}, _ROLES)


def flow_vocabulary(flow_keys: Iterable[str]) -> Vocabulary:
    """Return the vocabulary of keys after a flow's name."""
    nested = {f"{role}.override.": names for role, names in ROLE_KEYS.items()}
    nested |= {f"{side}.cluster.": SECURITY_KEYS | {BOOTSTRAP_SERVERS} for side in ("source", "target")}
    nested |= {f"{side}.{prefix}": names for side in ("source", "target") for prefix, names in _ROLES.items()}
    keys = {*flow_keys, *SECURITY_KEYS, "enabled", "clusters", *CLUSTER_ALIASES}
    return Vocabulary(keys, nested | _ROLES)


def top_vocabulary(flow_keys: Iterable[str], worker_keys: Iterable[str]) -> Vocabulary:
    """Return the vocabulary of keys without a prefix."""
    return Vocabulary(
        {*flow_keys, *worker_keys, *SECURITY_KEYS, "clusters", "enabled", *CLUSTER_ALIASES, BOOTSTRAP_SERVERS}, _ROLES
    )


def _client_key(key: str, names: frozenset[str]) -> str:
    if key in names:
        return key
    return _by_words(names).get(_words(key), key)


@cache
def _by_words(names: frozenset[str]) -> Mapping[tuple[str, ...], str]:
    return {_words(name): name for name in names}


def _words(key: str) -> tuple[str, ...]:
    parts = [part for part in re.split(r"[._\-\s]+", key.lower()) if part]
    return tuple(part.removesuffix("s") if len(part) > 2 else part for part in parts)
