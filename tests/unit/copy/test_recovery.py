"""What a progress topic that was created again lacks: nothing that is newer is overwritten."""

from __future__ import annotations

from mirrorless.errors import GapKind
from mirrorless.progress.records import Announcement, Halt, Known, Progress
from mirrorless.progress.recovery import lacking

OLD = Progress(last_offset=9, sequence=10, epoch=1, last_downstream=9)
NEW = Progress(last_offset=99, sequence=100, epoch=1, last_downstream=99)
FIRST, SECOND = [Announcement(epoch=epoch, start=0, downstream=0, reason="") for epoch in (0, 1)]
HALT = Halt(epoch=1, offset=9, kind=GapKind.RETENTION, reason="")
BEFORE = Known(progress=OLD, announced={0: FIRST, 1: SECOND}, halt=HALT)


def test_of_a_partition_that_the_topic_does_not_know_everything_is_lacking() -> None:
    assert lacking(BEFORE, None) == BEFORE


def test_progress_that_was_written_since_stays() -> None:
    assert lacking(BEFORE, Known(progress=NEW)) == Known(announced={0: FIRST, 1: SECOND}, halt=HALT)


def test_epochs_are_lacking_one_by_one() -> None:
    assert lacking(BEFORE, Known(announced={1: SECOND})) == Known(progress=OLD, announced={0: FIRST}, halt=HALT)


def test_nothing_is_lacking_where_all_is_there() -> None:
    assert lacking(BEFORE, BEFORE) == Known()
