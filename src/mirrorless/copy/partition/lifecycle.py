"""The states of a partition's copy, and which may follow which; docs/operations.md says what to do."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class PartitionState(StrEnum):
    """What a partition's copy is doing, as reports show it."""

    RESUMING = "resuming"
    """The copy does not know its position: the target's leader is asked what it holds."""
    COPYING = "copying"
    """The copy knows its position, and the source has more records."""
    CAUGHT_UP = "caught up"
    """The target has acknowledged every record before the source's end."""
    WAITING = "waiting"
    """In reports only: every record is copied except those that an open transaction holds back."""
    HALTED = "halted"
    """The copy makes no progress for the rest of the lease; the next lease tries again."""


TRANSITIONS: Final[Mapping[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.RESUMING: frozenset({PartitionState.COPYING, PartitionState.HALTED}),
    PartitionState.COPYING: frozenset({PartitionState.CAUGHT_UP, PartitionState.RESUMING, PartitionState.HALTED}),
    PartitionState.CAUGHT_UP: frozenset({PartitionState.COPYING, PartitionState.RESUMING, PartitionState.HALTED}),
    PartitionState.WAITING: frozenset(),
    PartitionState.HALTED: frozenset(),
}
"""The states that may follow each state; `PartitionCopy` enters no other."""
READABLE: Final = (PartitionState.COPYING, PartitionState.CAUGHT_UP)
"""States in which a partition is fetched from the source."""
