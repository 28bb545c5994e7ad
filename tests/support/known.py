"""What a checkpoint function knows of one partition, for tests of how offsets are translated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirrorless.formats import OffsetSync
from mirrorless.offsets.mm2_sync_store import SyncStore
from mirrorless.offsets.offset_map import OffsetMap, RunStore, points
from mirrorless.offsets.translation import translate
from mirrorless.progress.records import Announcement

if TYPE_CHECKING:
    from mirrorless.offsets.translation import Translated, Unknown, WalkNeeded
    from mirrorless.progress.records import Progress

PLACE = ("t", 0)


def announced(*epochs: tuple[int, int]) -> dict[int, Announcement]:
    return {
        epoch: Announcement(epoch=epoch, start=start, downstream=downstream, reason="test")
        for epoch, (start, downstream) in enumerate(epochs)
    }


def sync(upstream: int, downstream: int, run: int | None = None) -> OffsetSync:
    return OffsetSync(topic="t", partition=0, last_upstream=upstream, last_downstream=downstream, run=run)


@dataclass
class Known:
    """What a checkpoint function would have read."""

    syncs: list[OffsetSync]
    epochs: tuple[tuple[int, int], ...] = ()
    progress: Progress | None = None
    target_end: int = 1_000_000
    slots: SyncStore = field(init=False)
    line: OffsetMap = field(init=False)

    def __post_init__(self) -> None:
        self.slots, runs = SyncStore(), RunStore()
        for one in self.syncs:
            self.slots.add(one)
            runs.add(one)
        self.slots.initialized()
        self.line = OffsetMap.of(
            runs.runs(PLACE), points(self.progress, announced(*self.epochs)), foreign=runs.foreign(PLACE)
        )

    def at(self, offset: int) -> Translated | WalkNeeded | Unknown:
        nearest = self.slots.nearest(PLACE, offset)
        return translate(offset, line=self.line, nearest=nearest, target_end=self.target_end)
