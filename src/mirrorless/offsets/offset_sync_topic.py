"""Reads a flow's offset syncs into the stores that translate with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.replay import Replay
from mirrorless.formats import Malformed, OffsetSync
from mirrorless.offsets.mm2_sync_store import SyncStore
from mirrorless.offsets.offset_map import RunStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.internal_topics import InternalTopic


class OffsetSyncs:
    """The offset syncs topic; `admin` is the client of its cluster.

    `slots` is MirrorMaker 2's store, `runs` this program's; `malformed` counts the skipped records.
    """

    def __init__(self, topic: InternalTopic, admin: Admin, *, must_read_to_end: bool = False) -> None:
        self._replay = Replay(topic=topic.name, cluster=topic.cluster, admin=admin)
        self.slots = SyncStore(must_read_to_end=must_read_to_end)
        self.runs = RunStore()
        self.malformed = 0

    def read(self, *, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Read to the topic's end, and return whether it was reached; raises `ClusterUnavailable`."""
        for entry in self._replay.read(self._forget, stopping=stopping):
            sync = OffsetSync.parse(entry.key, entry.value)
            if isinstance(sync, Malformed):
                self.malformed += 1
            else:
                self.slots.add(sync)
                self.runs.add(sync)
        if self._replay.complete:
            self.slots.initialized()
        return self._replay.complete

    def close(self) -> None:
        """Close the connection."""
        self._replay.close()

    def _forget(self) -> None:
        self.slots.forget()
        self.runs.forget()
