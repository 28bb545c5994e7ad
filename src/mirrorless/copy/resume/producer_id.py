"""The producer id of a partition's copy: derived from its name, so that every writer uses the same."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import LeaseRow

_LOWEST = 1 << 61
"""Brokers assign producer ids from 0 upwards, and do not reach this one."""


def producer_id(cluster_id: str, topic: str, partition: int) -> int:
    """Return the producer id, in [2^61, 2^62), of the copy of one source partition; `cluster_id` is the source's."""
    return _hashed("copy", cluster_id, topic, partition)


def copies_at_source(row: LeaseRow) -> frozenset[int]:
    """Return the producer ids of the copies that append records of other clusters to a row's source partition."""
    clusters = row.origins.split(",") if row.origins else ()
    return frozenset(producer_id(cluster_id, row.topic, row.partition) for cluster_id in clusters)


def announcer_id(cluster_id: str, topic: str, partition: int, epoch: int) -> int:
    """Return the producer id, in [2^61, 2^62), of an epoch's announcement: only the first one is appended."""
    return _hashed("announcement", cluster_id, topic, partition, epoch)


def _hashed(*parts: str | int) -> int:
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") % _LOWEST + _LOWEST
