"""The producer id of a partition's copy: derived from its name, so that every writer uses the same."""

from __future__ import annotations

import hashlib

_EPOCHS = 1 << 15
_LOWEST = 1 << 61
"""Brokers assign producer ids from 0 upwards, and do not reach this one."""


def producer_id(cluster_id: str, topic: str, partition: int) -> int:
    """Return the producer id, in [2^61, 2^62), of the copy of one source partition; `cluster_id` is the source's."""
    return _hashed("copy", cluster_id, topic, partition)


def announcer_id(cluster_id: str, topic: str, partition: int, epoch: int) -> int:
    """Return the producer id, in [2^61, 2^62), of an epoch's announcement: only the first one is appended."""
    return _hashed("announcement", cluster_id, topic, partition, epoch)


def filler_id(cluster_id: str, topic: str, partition: int) -> int:
    """Return the producer id of what fills a remote partition up to the offset where its copy begins."""
    return _hashed("filler", cluster_id, topic, partition)


def claim_id(cluster_id: str, topic: str, partition: int) -> int:
    """Return the producer id of claims of a partition: in the progress topic each claim follows the one before it."""
    return _hashed("claim", cluster_id, topic, partition)


def marker_id(cluster_id: str, topic: str, partition: int, *, claim: int) -> tuple[int, int]:
    """Return the producer id and epoch of the markers that the owner by claim number `claim` writes.

    The epoch rises from claim to claim. Epochs have 16 bits with a sign, so each 2^15 claims have an id of their own.
    """
    generation, epoch = divmod(claim, _EPOCHS)
    return _hashed("markers", cluster_id, topic, partition, generation), epoch


def reserving_id(cluster_id: str, topic: str, partition: int) -> int:
    """Return the producer id of the markers that reserve offsets when applications move to `cluster_id`."""
    return _hashed("reserve", cluster_id, topic, partition)


def _hashed(*parts: str | int) -> int:
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") % _LOWEST + _LOWEST
