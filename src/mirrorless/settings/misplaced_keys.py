"""Settings that have no effect where they are set, and where to set them instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.settings.client_keys import ROLE_PREFIXES, is_connection_key
from mirrorless.settings.properties import ARROW
from mirrorless.settings.unsupported_keys import UnsupportedKey, foreign

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.settings.key_normalizer import Key

_OFFSET_SYNCS = "in MirrorMaker 2 it is for the producer of offset syncs only; for the copy, set {}.producer.override."
_SINKS = ("consumer.override.", "admin.override.")


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
