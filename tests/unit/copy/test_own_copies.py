"""Whether a remote topic provably has no records of others; whatever differs is no proof."""

from __future__ import annotations

import pytest

from mirrorless.batches.header import SEQUENCES, BatchHeader
from mirrorless.metadata.recreated_topics import OwnCopy
from mirrorless.progress.own_copies import doubt, ids_of
from mirrorless.progress.records import Announcement, Known, Progress
from tests.support.log_bytes import batch

PRODUCER = (1 << 61) + 7


def known(
    *,
    epoch: int = 1,
    downstream: int = 0,
    progress: Progress | None = None,
    source: str | None = "s",
    remote: str | None = "r",
) -> Known:
    one = Announcement(epoch=epoch, start=5, downstream=downstream, reason="", topic_id=source, remote_id=remote)
    return Known(progress=progress, announced={epoch: one})


def last(
    *, begin: int = 90, count: int = 10, producer: int = PRODUCER, epoch: int = 1, sequence: int = 90
) -> BatchHeader:
    header = BatchHeader.parse(batch([*range(begin, begin + count)], producer=producer))
    return header._replace(producer_epoch=epoch, base_sequence=sequence)


def test_a_log_of_which_every_offset_is_a_copied_record_has_no_others() -> None:
    assert doubt(known(), last(), end=100, producer=PRODUCER) is None


def test_nothing_was_ever_written_to_an_empty_log() -> None:
    assert doubt(None, None, end=0, producer=PRODUCER) is None


def test_where_retention_deleted_all_records_progress_shows_it() -> None:
    said = known(progress=Progress(104, sequence=100, epoch=1, last_downstream=99))
    assert doubt(said, None, end=100, producer=PRODUCER) is None
    for other in (
        None,
        Progress(104),
        Progress(104, sequence=99, epoch=1, last_downstream=99),
        Progress(104, sequence=100, epoch=1, last_downstream=100),
        Progress(104, sequence=100, epoch=0, last_downstream=99),
    ):
        assert doubt(known(progress=other), None, end=100, producer=PRODUCER) is not None


@pytest.mark.parametrize(
    ("said", "batch_there", "end"),
    [
        (None, last(), 100),
        (Known(progress=Progress(104)), last(), 100),  # of MirrorMaker 2
        (known(downstream=1), last(), 100),
        (known(epoch=2), last(), 100),
        (known(), last(producer=-1), 100),
        (known(), last(producer=PRODUCER + 1), 100),
        (known(), last(sequence=89), 100),  # one record before it is not the copy's
        (known(), last(), 101),  # something follows
        (known(), last(begin=0, count=1, sequence=SEQUENCES - 1), SEQUENCES),
    ],
)
def test_whatever_differs_is_no_proof(said: Known | None, batch_there: BatchHeader, end: int) -> None:
    assert doubt(said, batch_there, end=end, producer=PRODUCER) is not None


def test_the_topics_are_those_that_progress_names() -> None:
    assert ids_of([known(), Known(), known()], "r", flow="a->b") == OwnCopy(source_id="s", remote_id="r")


@pytest.mark.parametrize(
    ("said", "now"),
    [
        ([], "r"),
        ([Known(progress=Progress(7))], "r"),
        ([known()], None),
        ([known()], "recreated"),
        ([known(), known(remote="before")], "r"),
        ([known(remote=None)], "r"),
        ([known(source=None)], "r"),
        ([known(), known(source="before")], "r"),
    ],
)
def test_topics_that_progress_does_not_name_are_not_known(said: list[Known], now: str | None) -> None:
    assert isinstance(ids_of(said, now, flow="a->b"), str)
