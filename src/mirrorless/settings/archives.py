"""Clusters that are archives: `<alias>.archive` in place of bootstrap servers.

An archive is read at an address where a process serves it (`mirrorless archive`). `MIRRORLESS_ARCHIVES` says where, as
`vault=127.0.0.1:40000`, to this process and those that it starts; flows from an archive that is not served are left
out, as are flows into one from everything but the archive's own commands.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mirrorless.settings.client_keys import ARCHIVE, BOOTSTRAP_SERVERS
from mirrorless.settings.properties import ARROW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings.properties import PropertyEntry

SERVED_VARIABLE: Final = "MIRRORLESS_ARCHIVES"
_NOWHERE: Final = "archive.invalid:9092"
_DEFAULTS: Final = {"offset-syncs.topic.location": "target", "sync.group.offsets.enabled": "true"}
"""Of a flow from an archive, which cannot be written, and whose groups are what a restore is for."""


@dataclass(frozen=True, slots=True)
class Archives:
    """The archives of a configuration, by alias; `entries` have addresses in their place."""

    entries: Mapping[str, PropertyEntry]
    locations: Mapping[str, str] = field(default_factory=dict)
    served: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entries: Mapping[str, PropertyEntry], aliases: tuple[str, ...]) -> Archives:
        """Find them, and give each an address."""
        named = {alias: entries[key] for alias in aliases if (key := f"{alias}.{ARCHIVE}") in entries}
        if not named:
            return cls(entries)
        served = served_archives()
        made = {name: one for name, one in entries.items() if name not in {f"{alias}.{ARCHIVE}" for alias in named}}
        for alias, entry in named.items():
            made[f"{alias}.{BOOTSTRAP_SERVERS}"] = replace(entry, value=served.get(alias, _NOWHERE))
            for target in aliases:
                for key, value in _DEFAULTS.items():
                    flow_key = f"{alias}{ARROW}{target}.{key}"
                    if target != alias and flow_key not in made and key not in made:
                        made[flow_key] = replace(entry, value=value)
        return cls(
            made,
            {alias: entry.value.strip() for alias, entry in named.items()},
            frozenset(served.keys() & named.keys()),
        )

    def is_into(self, target: str) -> bool:
        """Whether a flow to this cluster archives."""
        return target in self.locations

    def is_left_out(self, source: str) -> bool:
        """Whether flows from this cluster cannot be read now."""
        return source in self.locations and source not in self.served


def served_archives() -> dict[str, str]:
    """Return the addresses of archives that are served, by alias."""
    pairs = (one.partition("=") for one in os.environ.get(SERVED_VARIABLE, "").split(",") if one)
    return {alias.strip(): address.strip() for alias, _, address in pairs}
