"""MirrorMaker 2's store of offset syncs: 64 slots per partition, denser towards the newest.

Rules: Kafka's `OffsetSyncStore`. Of two neighbouring slots the older sync is at most 2^j - 2^i upstream offsets away,
so the newer end is well covered, and at least about 2^(i-2), so no two slots are the same. Slots are compared by
identity: "the same sync" is the same object, not an equal one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.formats import OffsetSync

SLOTS: Final = 64
NOT_COVERED: Final = -1
"""MirrorMaker 2's answer for an offset before its oldest sync; it is never emitted."""


class SyncStore:
    """The syncs of one flow. With `must_read_to_end`, of the syncs before `initialized` only the last one counts.

    That is for when earlier checkpoints could not be read: nothing may be translated below them.
    """

    def __init__(self, *, must_read_to_end: bool = False) -> None:
        self._must_read_to_end = must_read_to_end
        self._initialized = False
        self._slots: dict[TopicPartition, list[OffsetSync]] = {}

    def initialized(self) -> None:
        """Record that the topic was read to its end once; there is no translation before."""
        self._initialized = True

    def forget(self) -> None:
        """Record that the topic is read from its beginning again."""
        self._initialized = False
        self._slots.clear()

    def add(self, sync: OffsetSync) -> None:
        """Add the next sync of the topic."""
        place = (sync.topic, sync.partition)
        slots = self._slots.get(place)
        rewound = slots is not None and sync.last_upstream < slots[0].last_upstream
        if slots is None or rewound or (self._must_read_to_end and not self._initialized):
            self._slots[place] = [sync] * SLOTS
        else:
            self._slots[place] = _updated(slots, sync)

    def slots(self, place: TopicPartition) -> list[OffsetSync]:
        """The syncs of a partition, newest first, empty if it has none."""
        return self._slots.get(place, [])

    def nearest(self, place: TopicPartition, offset: int) -> OffsetSync | None:
        """The newest sync whose record is at or below upstream `offset`."""
        return next((sync for sync in self.slots(place) if sync.last_upstream <= offset), None)

    def translate(self, place: TopicPartition, offset: int) -> int | None:
        """Return MirrorMaker 2's answer for upstream `offset`: at a sync exactly, else one past the nearest below.

        None without any sync of the partition, `NOT_COVERED` before its oldest sync.
        """
        if not self._initialized or place not in self._slots:
            return None
        sync = self.nearest(place, offset)
        if sync is None:
            return NOT_COVERED
        return sync.last_downstream + (offset > sync.last_upstream)


def _updated(old: list[OffsetSync], newest: OffsetSync) -> list[OffsetSync]:
    """The slots after one more sync: each takes the newest of the old ones that keeps the distances, or stays."""
    slots = old.copy()
    slots[0] = candidate = newest
    taken_to = 0
    for current in range(1, SLOTS):
        previous = current - 1
        while True:
            other = old[taken_to]
            apart = _far_enough(slots[previous], other, previous)
            take = (
                apart
                and _near_enough(slots[previous], other, previous, current)
                and (current == SLOTS - 1 or _far_enough(other, slots[current + 1], current))
            )
            skip = not apart or (taken_to + 1 < SLOTS and old[taken_to] is old[taken_to + 1])
            if take:
                candidate = other
            if take or skip:
                taken_to += 1
            if not skip or taken_to >= current:
                break
        if _near_enough(slots[previous], slots[current], previous, current):
            break  # from here on the old slots are valid
        slots[current] = candidate
    return slots


def _near_enough(newer: OffsetSync, older: OffsetSync, i: int, j: int) -> bool:
    return newer.last_upstream <= older.last_upstream + (1 << j) - (1 << i)


def _far_enough(newer: OffsetSync, older: OffsetSync, i: int) -> bool:
    return newer.last_upstream >= older.last_upstream + (1 << max(i - 2, 0))
