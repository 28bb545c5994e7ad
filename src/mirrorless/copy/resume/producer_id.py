"""Who appends: the same made-up producer id for every writer of one partition's copy (design, section 5)."""

from __future__ import annotations

import hashlib

_LOWEST = 1 << 61
"""Brokers hand out producer ids from 0 upwards, so that none of theirs comes near."""


def producer_id(cluster_id: str, topic: str, partition: int) -> int:
    """Producer id in [2^61, 2^62) of the copy of one source partition; `cluster_id` is the source's."""
    return _hashed("copy", cluster_id, topic, partition)


def announcer_id(cluster_id: str, topic: str, partition: int, epoch: int) -> int:
    """Producer id in [2^61, 2^62) of the one record that announces an epoch, so that only the first one is appended."""
    return _hashed("announcement", cluster_id, topic, partition, epoch)


def _hashed(*parts: str | int) -> int:
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") % _LOWEST + _LOWEST
