"""Keys that are not known, cannot exist, or have no effect where they are set, each with the reason."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from mirrorless.settings.client_keys import CLUSTER_ID, ROLE_PREFIXES, is_connection_key
from mirrorless.settings.key_normalizer import take_apart
from mirrorless.settings.properties import ARROW
from mirrorless.settings.transforms import TRANSFORMS
from mirrorless.settings.unsupported_keys import UnsupportedKey, foreign
from mirrorless.settings.vocabulary import OWN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mirrorless.settings.key_normalizer import Key
    from mirrorless.settings.unsupported_keys import Severity

ENABLED: Final = "enabled"
_OFFSET_SYNCS = "in MirrorMaker 2 it is for the producer of offset syncs only; for the copy, set {}.producer.override."
_SINKS = ("consumer.override.", "admin.override.")


class IsOn(Protocol):
    """Returns whether a setting that is true or false is on."""

    def __call__(self, key: str, *, default: bool) -> bool:
        """Return the setting, or the default where it is not set."""


class Remark(NamedTuple):
    """A finding about a key."""

    severity: Severity
    name: str
    reason: str


class Keys:
    """All keys of a configuration, in their correct spelling."""

    def __init__(
        self,
        names: Collection[str],
        aliases: tuple[str, ...],
        *,
        flow_keys: Collection[str],
        worker_keys: Collection[str],
    ) -> None:
        self._keys = [(name, take_apart(name, aliases)) for name in names]
        self._aliases = aliases
        self._flow_keys = flow_keys
        self._worker_keys = worker_keys

    def unknown(self) -> Iterator[Remark]:
        """Yield the keys that begin with `mirrorless.` and are not known: they are always mistakes."""
        known = [key for key in self._flow_keys if key.startswith(OWN_PREFIX)]
        of_a_cluster = f"must be set for a cluster; write {self._aliases[0] if self._aliases else 'A'}.{CLUSTER_ID}"
        for name, key in self._keys:
            own = key.setting
            if own == CLUSTER_ID:
                if not key.scope or ARROW in key.scope:
                    yield Remark("error", name, of_a_cluster)
                continue
            is_known = own in known and (not key.scope or ARROW in key.scope)
            if not own.startswith(OWN_PREFIX) or is_known or foreign(own) is not None:
                continue
            if own in known:
                yield Remark("error", name, f"must be set for a flow, not for a cluster; write {own}")
                continue
            # without the prefix, which makes all of them look alike
            names = [one.removeprefix(OWN_PREFIX) for one in (*known, CLUSTER_ID)]
            close = difflib.get_close_matches(own.removeprefix(OWN_PREFIX), names, n=1)
            advice = f"did you mean {OWN_PREFIX}{close[0]}?" if close else f"known: {', '.join(known)}"
            yield Remark("error", name, f"unknown setting; {advice}")

    def impossible(self, is_on: IsOn) -> Iterator[Remark]:
        """Yield keys of flows that cannot exist, which have no effect; those of disabled flows are not mentioned."""
        told: set[str] = set()
        for name, key in self._keys:
            if ARROW not in key.scope or key.scope in told or not is_on(f"{key.scope}.{ENABLED}", default=True):
                continue
            source, _, target = key.scope.partition(ARROW)
            missing = [alias for alias in (source, target) if alias not in self._aliases]
            if missing:
                listed = ", ".join(self._aliases)
                reason = f"cluster {missing[0]} is not in clusters = {listed}; add it there or correct the flow"
            elif source == target:
                reason = "source and target are the same cluster; remove these keys"
            else:
                continue
            told.add(key.scope)
            yield Remark("warning", name, f"keys of {key.scope} have no effect, nor in MirrorMaker 2: {reason}")

    def without_effect(self, is_on: IsOn) -> Iterator[Remark]:
        """Yield the keys that have no effect here; an error for those that would change what is replicated."""
        for name, key in self._keys:
            of_a_flow = ARROW in key.scope
            if key.setting in self._flow_keys and (not key.scope or of_a_flow):
                continue
            if of_a_flow and not (self._may_exist(key.scope) and is_on(f"{key.scope}.{ENABLED}", default=False)):
                continue
            found = has_no_effect(key, aliases=self._aliases, worker_keys=self._worker_keys)
            if found is None or (found.severity == "error" and self._belongs_to_transforms(key)):
                continue
            if found.severity == "error" and key.setting != TRANSFORMS:
                yield Remark("warning", name, f"has no effect without {TRANSFORMS}, nor in MirrorMaker 2")
            else:
                yield Remark(found.severity, name, found.reason)

    def _belongs_to_transforms(self, key: Key) -> bool:
        """Whether this is a setting of transforms, which are reported by the key that lists them."""
        if key.setting == TRANSFORMS:
            return False
        return any(one.setting == TRANSFORMS and one.scope in ("", key.scope) for _, one in self._keys)

    def _may_exist(self, flow: str) -> bool:
        source, _, target = flow.partition(ARROW)
        return source != target and source in self._aliases and target in self._aliases


def has_no_effect(key: Key, *, aliases: tuple[str, ...], worker_keys: Collection[str]) -> UnsupportedKey | None:
    """Return why a setting has no effect where it is set; None if it has, or if the setting is not known."""
    if not key.scope:
        return _at_top_level(key.setting, aliases, worker_keys)
    if ARROW in key.scope:
        return _for_a_flow(key, worker_keys)
    if key.setting in worker_keys or key.setting.startswith(ROLE_PREFIXES) or is_connection_key(key.setting):
        return None
    return foreign(key.setting)


def _at_top_level(setting: str, aliases: tuple[str, ...], worker_keys: Collection[str]) -> UnsupportedKey | None:
    if setting.startswith(ROLE_PREFIXES) and not foreign(setting):
        # Usually the first cluster is read from, and the last one written to.
        end = -1 if setting.startswith("producer.") else 0
        alias = aliases[end] if aliases else "AB"[end]
        return _warning(f"has no effect at top level, nor in MirrorMaker 2; write {alias}.{setting}")
    return None if setting in worker_keys else foreign(setting)


def _for_a_flow(key: Key, worker_keys: Collection[str]) -> UnsupportedKey | None:
    setting = key.setting
    if setting in worker_keys:
        target = key.scope.partition(ARROW)[2]
        return _warning(f"has no effect for a flow, nor in MirrorMaker 2; write {target}.{setting}")
    if setting == "clusters":
        return UnsupportedKey("note", "is for dedicated mode; connectors have one source and one target", ())
    if setting.startswith(_SINKS):
        return UnsupportedKey("note", "is for sink connectors only", ())
    if setting.startswith("producer.override."):
        return None
    if setting.startswith(("producer.", "target.producer.")):
        return UnsupportedKey("note", _OFFSET_SYNCS.format(key.scope), ())
    if setting.startswith("consumer.") and foreign(setting):
        return foreign(setting)
    if is_connection_key(setting):
        return _warning(
            f"has no effect, nor in MirrorMaker 2, because it names neither end of the flow; write "
            f"{key.scope}.source.cluster.{setting} or {key.scope}.target.cluster.{setting}"
        )
    return foreign(setting)


def _warning(reason: str) -> UnsupportedKey:
    return UnsupportedKey("warning", reason, ())
