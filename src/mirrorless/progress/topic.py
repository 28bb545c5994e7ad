"""Reads the progress topic of a flow: once from the beginning, then only new records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.replay import Replay
from mirrorless.known_topics import note_copied
from mirrorless.progress.records import Known, Progress, parse
from mirrorless.progress.recovery import lacking
from mirrorless.progress.run_marks import is_mark
from mirrorless.progress.source_notes import SourceNotes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Said
    from mirrorless.settings import Flow


_OURS: Final = b'"sequence"'


class ProgressTopic:
    """The content of the progress topic about a flow's source partitions; `admin` is a client of the target.

    `others` has the time (monotonic seconds) of progress that MirrorMaker 2 wrote after the topic was first read.
    `complete` says whether it was read to its end the last time. Without `must_exist` a topic that does not exist, or
    is not visible (`refused`), counts as empty. `notes` are those on the source. `lost` is what the topic contained
    before it was deleted and recreated, and does not contain now. `was_read` says whether it was ever read to its end.
    The marks of runs in it are read by `MarkReader`.
    """

    def __init__(self, flow: Flow, admin: Admin, *, must_exist: bool = True) -> None:
        self._renaming = flow if flow.topics_rename else None
        self._alias = flow.progress_alias
        self._connector = flow.connector_name
        self._known: dict[TopicPartition, Known] = {}
        self._before: dict[TopicPartition, Known] | None = None
        self.was_read = self.complete = False
        self.others: dict[TopicPartition, float] = {}
        self.notes = SourceNotes(flow.source.alias)
        self.lost: dict[TopicPartition, Known] = {}
        self._topic_id: str | None = None
        # Without the topic the position of the copy is unknown, which is not the same as that nothing was copied.
        self._replay = Replay(topic=flow.offset_storage_topic, cluster=flow.target, admin=admin, must_exist=must_exist)

    @property
    def refused(self) -> str | None:
        """Why the topic was not visible when it was last read; None if it exists, or does not."""
        return self._replay.refused

    def read(self, *, stopping: Callable[[], bool] = lambda: False) -> dict[TopicPartition, Known]:
        """Read to the topic's end and return what is known; raises `ClusterUnavailable`.

        Once `stopping` returns true the rest is left to the next read.
        """
        last: dict[bytes | None, bytes | None] = {}
        for key, value, _ in self._replay.read(self._forget, stopping=stopping):
            is_news = self.was_read and self._before is None
            if is_mark(key) or self.notes.take(key, value):
                continue
            if is_news and value is not None and _OURS not in value:
                self._note_other(key, value)
            last[key] = value
        # Most keys have many records, of which only the last one has to be parsed.
        for key, value in last.items():
            self._take(key, value)
        self.complete = self._replay.complete
        if not self.complete:
            return self._known
        if self._renaming is not None:
            note_copied(self._renaming, {topic for topic, _ in self._known})
        if self._before is not None:
            self._note_others_since(self._before)
            if self._topic_id is not None and self._topic_id != self._replay.topic_id:
                self.lost |= self._before
        self._before, self.was_read = None, True
        self._topic_id = self._replay.topic_id
        left = {place: lacking(one, self._known.get(place)) for place, one in self.lost.items()}
        self.lost = {place: one for place, one in left.items() if one != Known()}
        return self._known

    def found_again(self) -> None:
        """Treat lost records as known: they were written into the topic."""
        for place, one in self.lost.items():
            known = self._known.setdefault(place, Known())
            for said in (*one.announced.values(), one.halt, one.progress, one.claim):
                if said is not None:
                    known.take(said)
        self.lost = {}

    def follow(self, earlier: ProgressTopic) -> None:
        """Take over what another reader knew before the first read, so that later records of others are noticed."""
        self._before = earlier._known if earlier.was_read and earlier._before is None else earlier._before
        self.was_read, self.others = earlier.was_read, earlier.others
        self._topic_id, self.lost = earlier._topic_id, earlier.lost

    def close(self) -> None:
        """Close the connection."""
        self._replay.close()

    def _forget(self) -> None:
        if self.was_read and self._before is None:  # otherwise the known records are incomplete
            self._before = self._known
        self._known = {}
        self.notes = SourceNotes(self.notes.cluster)

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        if (read := self._parse(key, value)) is not None:
            place, said = read
            self._known.setdefault(place, Known()).take(said)

    def _note_other(self, key: bytes | None, value: bytes) -> None:
        match self._parse(key, value):
            case (place, Progress(sequence=None) as said) if self._known.get(place, Known()).progress != said:
                self.others[place] = time.monotonic()  # known progress was written again by this program

    def _note_others_since(self, before: Mapping[TopicPartition, Known]) -> None:
        """Record progress of others from while the topic could not be read, if it is the latest."""
        for place, known in self._known.items():
            match known.progress:
                case Progress(sequence=None) if place not in before or before[place].progress != known.progress:
                    self.others[place] = time.monotonic()

    def _parse(self, key: bytes | None, value: bytes | None) -> tuple[TopicPartition, Said | None] | None:
        """Parse a record about this flow; None for any other."""
        read = parse(key, value)
        if read is None or read[0].cluster != self._alias:
            return None
        where, said = read
        if isinstance(said, Progress | None) and where.connector != self._connector:
            return None
        return (where.topic, where.partition), said
