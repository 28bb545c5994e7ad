"""When a source topic is another one than the one that its remote topic is a copy of."""

from __future__ import annotations

import pytest

from mirrorless.errors import GapKind
from mirrorless.progress.records import Announcement, Halt, Known, Progress
from mirrorless.progress.topic_ids import copied_id, created_again, is_another

OLD, NEW = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"


def known(*ids: str | None, progress: Progress | None = None, halt: Halt | None = None) -> Known:
    """Epochs announced for these topic ids."""
    announced = {
        epoch: Announcement(epoch=epoch, start=0, downstream=0, reason="first copy", topic_id=topic_id)
        for epoch, topic_id in enumerate(ids)
    }
    return Known(progress=progress, announced=announced, halt=halt)


def halt(kind: GapKind, epoch: int = 0) -> Halt:
    return Halt(epoch=epoch, offset=0, kind=kind, reason="")


@pytest.mark.parametrize(
    ("said", "copied"),
    [
        (None, None),
        (Known(), None),
        (known(OLD), OLD),
        (known(OLD, NEW), NEW),
        (known(OLD, None), None),  # announced by a release that kept no ids, or of brokers without them
        (known(OLD, progress=Progress(5, 6, 0, 5)), OLD),
        (known(OLD, progress=Progress(5, 6, 1, 5)), None),  # an epoch whose announcement is lost
        (known(OLD, progress=Progress(5)), None),  # MirrorMaker 2 copied on
        (known(OLD, progress=Progress(-1)), OLD),  # it is what the epoch begins behind
    ],
)
def test_the_copied_topic_is_that_of_the_newest_epoch(said: Known | None, copied: str | None) -> None:
    assert copied_id(said) == copied


@pytest.mark.parametrize(
    ("said", "topic_id", "another"),
    [
        (known(OLD), OLD, False),
        (known(OLD), NEW, True),
        (known(OLD, NEW), NEW, False),
        (known(None), NEW, False),
        (None, NEW, False),
        (known(OLD, halt=halt(GapKind.CREATED_AGAIN)), None, True),
        (known(OLD, halt=halt(GapKind.RETENTION)), None, False),
        (known(OLD, NEW, halt=halt(GapKind.CREATED_AGAIN)), None, False),  # passed over since
        (known(OLD), None, False),
    ],
)
def test_it_is_another_one(said: Known | None, topic_id: str | None, *, another: bool) -> None:
    assert is_another(said, topic_id) is another


def test_a_topic_is_another_one_as_long_as_one_of_its_partitions_is() -> None:
    progress = {("t", 0): known(OLD, NEW), ("t", 1): known(OLD), ("same", 0): known(NEW)}
    found = created_again(progress, ids={"t": NEW, "same": NEW}, partitions={"t": 2, "same": 1}, alias="A")
    assert found == {"t": f"t was deleted and recreated on A (its id is {NEW}, the copied one had {OLD})"}


def test_partitions_that_the_new_topic_does_not_have_count_no_longer() -> None:
    progress = {("t", 0): known(OLD, NEW), ("t", 1): known(OLD)}
    assert created_again(progress, ids={"t": NEW}, partitions={"t": 1}, alias="A") == {}


def test_without_the_source_the_copy_s_halts_count() -> None:
    progress = {("t", 0): known(OLD, halt=halt(GapKind.CREATED_AGAIN)), ("u", 0): known(OLD)}
    assert created_again(progress, ids={}, partitions=None, alias="A") == {"t": "t was deleted and recreated on A"}
