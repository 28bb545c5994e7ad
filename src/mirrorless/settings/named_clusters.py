"""`source.cluster.alias` and `target.cluster.alias` in an mm2.properties, at top level or for a flow.

MirrorMaker 2 reads them in place of the aliases of `clusters`, for all that its connectors name: remote topics,
checkpoints, offset syncs, heartbeats and the keys of progress. Its worker's topics keep the alias of `clusters`. So the
cluster gets the name that they set, in every key of the file, and the progress topic keeps its own.

An empty alias and an empty separator keep topic names: then the policy is IdentityReplicationPolicy, and progress is
found under the empty alias.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from mirrorless.settings.key_normalizer import CLUSTERS, take_apart
from mirrorless.settings.precedence import Found, flow_setting
from mirrorless.settings.properties import ARROW, NOBODYS, PropertyEntry
from mirrorless.settings.vocabulary import CLUSTER_ALIASES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_POLICY: Final = "replication.policy.class"
_SEPARATOR: Final = "replication.policy.separator"
_PROGRESS: Final = "offset.storage.topic"
_DEFAULT, _IDENTITY = "DefaultReplicationPolicy", "IdentityReplicationPolicy"
_OWN_FILE: Final = "give each of these flows a file of its own"

_PROGRESS_ALIAS: Final = "mirrorless.progress.alias"
Pair = tuple[str, str]
Side = Literal["source", "target"]
_SIDES: Final[tuple[Side, Side]] = ("source", "target")


@dataclass(slots=True)
class NamedClusters:
    """Entries and aliases as they are read, with warnings, and refusals: a setting and the reason."""

    entries: Mapping[str, PropertyEntry]
    aliases: tuple[str, ...]
    warnings: list[str] = field(default_factory=list)
    refused: list[tuple[Found, str]] = field(default_factory=list)

    @classmethod
    def of(cls, entries: Mapping[str, PropertyEntry], aliases: tuple[str, ...], pairs: Sequence[Pair]) -> NamedClusters:
        """Read both settings for the enabled flows, given as pairs of aliases."""
        made = cls(entries, aliases)
        names: dict[str, Found] = {}
        for side in _SIDES:
            setting = CLUSTER_ALIASES[_SIDES.index(side)]
            every = {pair: flow_setting(entries, setting, flow=ARROW.join(pair)) for pair in pairs}
            said = {pair: found for pair, found in every.items() if found is not None}
            for pair, found in said.items():
                alias = pair[_SIDES.index(side)]
                if found.value.strip() == alias:
                    continue
                if not found.value.strip():
                    made._without_name(side, found, pair)
                elif (reason := made._refusal(side, pair, said, pairs)) is not None:
                    made.refused.append((found, reason))
                elif any(one.value.strip() == found.value.strip() for other, one in names.items() if other != alias):
                    made.refused.append((found, f"is the name of two clusters; name {alias} by an alias of its own"))
                else:
                    names[alias] = found
        made.entries = {name: one for name, one in made.entries.items() if not _is_alias(name, aliases)}
        if names and not made.refused:
            made._rename(names, pairs)
        return made

    def _refusal(self, side: Side, pair: Pair, said: Mapping[Pair, Found], pairs: Sequence[Pair]) -> str | None:
        """Return why a cluster cannot have the name that a flow gives it."""
        at = _SIDES.index(side)
        alias, name = pair[at], said[pair].value.strip()
        alike = [one for one, found in said.items() if found.value.strip() == name]
        if ARROW in name or "," in name or len(name.split()) != 1:
            return "must be one word without -> and commas"
        if len({one[at] for one in alike}) > 1:
            return f"MirrorMaker 2 names the {side} of {_listed(alike)} by it; {_OWN_FILE}"
        if name in self.aliases:
            return f"is the alias of another cluster; name {alias} by an alias of its own"
        others = [one for one in pairs if alias in one and one not in alike]
        if others:
            return f"MirrorMaker 2 calls {alias} so in {_listed(alike)}, and {alias} in {_listed(others)}; {_OWN_FILE}"
        rivals = [one for one in pairs if side == "source" and one[1] == pair[1] and one != pair]
        if rivals and not self._has_progress_topic(pair[1]):
            topic = f"set {pair[1]}.{_PROGRESS} for one of them"
            return (
                f"{_listed([pair, *rivals])} have separate progress topics in MirrorMaker 2; {_OWN_FILE}, and {topic}"
            )
        return None

    def _has_progress_topic(self, target: str) -> bool:
        return _PROGRESS in self.entries or f"{target}.{_PROGRESS}" in self.entries

    def _without_name(self, side: Side, found: Found, pair: Pair) -> None:
        flow = ARROW.join(pair)
        if side == "target":
            self.warnings.append(
                f"{found.entry.place}: {found.key}=: MirrorMaker 2 names its offset syncs by it; here they are named "
                f"by {pair[1]}, so offsets of records that MirrorMaker 2 copied are not translated"
            )
            return
        policy = flow_setting(self.entries, _POLICY, flow=flow)
        separator = flow_setting(self.entries, _SEPARATOR, flow=flow)
        kept = without_alias(*(None if one is None else one.value for one in (policy, separator)))
        if isinstance(kept, str):
            self.refused.append((found, kept))
            return
        self.entries = {**self.entries} | {
            f"{flow}.{key}": PropertyEntry(value, found.entry.line, found.entry.file, found.key)
            for key, value in kept.items()
        }
        names = f"{flow} keeps topic names, by {_IDENTITY}" if _POLICY in kept else f"{flow} has no name for its source"
        self.warnings.append(
            f"{found.entry.place}: {found.key}=: {names}, and progress is read and written with an empty alias, as by "
            "MirrorMaker 2"
        )

    def _rename(self, names: Mapping[str, Found], pairs: Sequence[Pair]) -> None:
        called = {alias: found.value.strip() for alias, found in names.items()}
        renamed: dict[str, PropertyEntry] = {}
        for name, entry in self.entries.items():
            key = take_apart(name, self.aliases)
            scope = ARROW.join(called.get(alias, alias) for alias in key.scope.split(ARROW))
            full = f"{scope}.{key.setting}" if scope else key.setting
            renamed[full] = entry if full == name else replace(entry, written=entry.written or name)
        for alias, found in names.items():
            what = "topics and progress" if found.key.endswith(CLUSTER_ALIASES[0]) else "offset syncs and heartbeats"
            self.warnings.append(
                f"{found.entry.place}: {found.key}={called[alias]}: cluster {alias} is called {called[alias]} here, "
                f"because MirrorMaker 2 names {what} by it"
            )
        for source, target in pairs:
            if source in called and not self._has_progress_topic(target):
                topic = f"mm2-offsets.{source}.internal"
                at = f"{called.get(target, target)}.{_PROGRESS}"
                renamed[at] = PropertyEntry(topic, NOBODYS, "as MirrorMaker 2", _PROGRESS)
        self.aliases = tuple(called.get(alias, alias) for alias in self.aliases)
        self.entries = renamed | {CLUSTERS: replace(self.entries[CLUSTERS], value=", ".join(self.aliases))}


def without_alias(policy: str | None, separator: str | None) -> dict[str, str] | str:
    """Return the settings that an empty alias of the source means, or why it cannot be empty."""
    between = "." if separator is None else separator.strip()
    found = {_PROGRESS_ALIAS: ""}
    if (policy or _DEFAULT).strip().rpartition(".")[2] != _DEFAULT:
        return found
    if not between:
        return found | {_POLICY: _IDENTITY}
    return (
        f"is empty, so MirrorMaker 2 names remote topics {between}t; name the source. To keep topic names without "
        f"copying again, leave it empty and set {_POLICY}={_IDENTITY}"
    )


def _listed(pairs: Sequence[Pair]) -> str:
    return " and ".join(map(ARROW.join, pairs))


def _is_alias(name: str, aliases: tuple[str, ...]) -> bool:
    key = take_apart(name, aliases)
    return key.setting in CLUSTER_ALIASES and (not key.scope or ARROW in key.scope)
