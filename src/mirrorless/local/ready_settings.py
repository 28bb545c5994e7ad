"""A ready-made configuration for clusters of this machine: flows from the first cluster to each of the others."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MARK: Final = "# written by `mirrorless kafka up`"
"""How a file begins that may be overwritten; compared with files of earlier releases, so it must not change."""
_DIGEST: Final = "unless it is edited: "
_WRITTEN_BY: Final = f"{_MARK}, which overwrites it at its next start {_DIGEST}"
_REPLICAS: Final = 3
_FACTORS: Final = ("", "offset.storage.", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic.")
_SOON_S: Final = 5


def ready_settings(
    servers: Mapping[str, str], *, brokers: int = 1, topics: str = ".*", slots: int = 2, soon: bool = True
) -> str:
    """Return an mm2.properties for clusters by name, each with its bootstrap servers and so many brokers.

    `soon` sets the intervals for new topics and group offsets to a few seconds.
    """
    first, *others = servers
    lines = [
        f"clusters = {', '.join(servers)}",
        *(f"{name}.bootstrap.servers = {address}" for name, address in servers.items()),
        "",
    ]
    for other in others:
        lines += [f"{first}->{other}.enabled = true", f"{first}->{other}.topics = {topics}"]
    lines.append(f"tasks.max = {slots}")
    if soon:
        lines += ["", "# short intervals for a trial", f"refresh.topics.interval.seconds = {_SOON_S}"]
        lines.append(f"emit.checkpoints.interval.seconds = {_SOON_S}")
    replicas = min(_REPLICAS, brokers)
    lines += ["", f"# each cluster has {brokers} broker{'' if brokers == 1 else 's'}"]
    lines += [f"{prefix}replication.factor = {replicas}" for prefix in _FACTORS]
    return "\n".join(lines) + "\n"


def write_ready_settings(file: Path, servers: Mapping[str, str], *, brokers: int) -> None:
    """Write them, with a first line by which `refuse_foreign` recognises the file."""
    text = ready_settings(servers, brokers=brokers)
    file.write_text(f"{_WRITTEN_BY}{_digest(text)}\n{text}")


def _is_edited(file: Path) -> bool:
    """Whether the file has another content than was written; a file of an earlier release has no digest to compare."""
    first, _, rest = file.read_text(errors="replace").partition("\n")
    _, _, digest = first.partition(_DIGEST)
    return first.startswith(_MARK) and bool(digest) and digest != _digest(rest)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def refuse_foreign(file: Path, *, names: Sequence[str]) -> None:
    """Raise ConfigurationError if `file` cannot be written for these clusters, or was not written by this."""
    if len(names) < 2:
        raise ConfigurationError("a flow needs two clusters; name both", key="--config", value=str(file))
    if not file.parent.is_dir():
        raise ConfigurationError("the folder does not exist; create it", key="--config", value=str(file.parent))
    if file.exists() and file.is_file() and _is_edited(file):
        reason = "was edited since `mirrorless kafka up` wrote it, and would be lost; choose another name"
        raise ConfigurationError(reason, key="--config", value=str(file))
    if file.exists() and (not file.is_file() or not file.read_text(errors="replace").startswith(_MARK)):
        reason = "exists, but was not written by `mirrorless kafka up`; choose another name"
        raise ConfigurationError(reason, key="--config", value=str(file))
