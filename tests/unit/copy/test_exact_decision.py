"""Where a copy with identical offsets continues: the end of the target's log, if nothing contradicts it."""

from __future__ import annotations

import pytest

from mirrorless.copy.identical.decision import (
    Append,
    Begin,
    ExactDecision,
    Fill,
    Forgotten,
    NotIdentical,
    decide_exactly,
)
from mirrorless.copy.progress.epoch_kind import EpochKind
from mirrorless.copy.progress.records import Announcement, Progress
from mirrorless.copy.resume.decision import Lost, RemoteLogState, Unexplained, Wait


def epoch(
    number: int, start: int, downstream: int | None = None, kind: EpochKind = EpochKind.FIRST_COPY
) -> Announcement:
    at = start if downstream is None else downstream
    return Announcement(epoch=number, start=start, downstream=at, reason="", kind=kind)


def progress(offset: int, *, sequence: int, number: int = 0, downstream: int | None = None) -> Progress:
    at = offset - 1 if downstream is None else downstream
    return Progress(last_offset=offset - 1, sequence=sequence, epoch=number, last_downstream=at)


def state(end: int, number: int | None = None, last: int | None = None, unreplicated: int | None = 0) -> RemoteLogState:
    remembered = number is not None
    return RemoteLogState(
        log_end=end, epoch=number, last_sequence=last, remembered=remembered, unreplicated=unreplicated
    )


FIRST = epoch(0, 1_000)
GAP = epoch(1, 1_500, kind=EpochKind.GAP)
RESET = epoch(1, 1_500, 0, EpochKind.RESET)
TURN = epoch(1, 1_500, kind=EpochKind.TURN)


@pytest.mark.parametrize(
    ("known", "announced", "target", "wanted"),
    [
        (None, [], state(0), Begin()),
        (None, [FIRST], state(0), Fill(epoch=0, start=1_000, log_end=0)),
        (None, [FIRST], state(400), Fill(epoch=0, start=1_000, log_end=400)),
        (None, [FIRST], state(1_000), Append(epoch=0, sequence=0, offset=1_000)),
        # The position is the log end, whatever the progress says; holes do not count as sequences.
        (None, [FIRST], state(1_200, 0, 99), Append(epoch=0, sequence=100, offset=1_200)),
        (progress(1_100, sequence=50), [FIRST], state(1_200, 0, 99), Append(epoch=0, sequence=100, offset=1_200)),
        # Forgotten by the target: the progress has the sequence if it is of this log end.
        (progress(1_200, sequence=50), [FIRST], state(1_200), Append(epoch=0, sequence=50, offset=1_200)),
        (progress(1_100, sequence=50), [FIRST], state(1_200), Forgotten()),
        (None, [FIRST], state(1_200), Forgotten()),
        # A newer epoch begins where it was announced.
        (progress(1_200, sequence=50), [FIRST, GAP], state(1_200, 0, 49), Fill(epoch=1, start=1_500, log_end=1_200)),
        (progress(1_200, sequence=50), [FIRST, GAP], state(1_500, 0, 49), Append(epoch=1, sequence=0, offset=1_500)),
        (
            progress(1_500, sequence=0, number=1, downstream=-1),
            [FIRST, RESET],
            state(0),
            Fill(epoch=1, start=1_500, log_end=0),
        ),
        (
            progress(1_500, sequence=9, number=1),
            [FIRST, GAP],
            state(1_510, 1, 9),
            Append(epoch=1, sequence=10, offset=1_510),
        ),
        # A turn begins after offsets that are reserved; its first progress is written with the announcement.
        (
            progress(1_500, sequence=0, number=1),
            [FIRST, TURN],
            state(1_300, 0, 49),
            Fill(epoch=1, start=1_500, log_end=1_300),
        ),
        (
            progress(1_500, sequence=0, number=1),
            [FIRST, TURN],
            state(1_500, 0, 49),
            Append(epoch=1, sequence=0, offset=1_500),
        ),
        (progress(1_500, sequence=0, number=1), [TURN], state(0), Fill(epoch=1, start=1_500, log_end=0)),
        (
            progress(1_500, sequence=0, number=1),
            [FIRST, TURN],
            state(1_510, 1, 9),
            Append(epoch=1, sequence=10, offset=1_510),
        ),
    ],
)
def test_it_continues(
    known: Progress | None, announced: list[Announcement], target: RemoteLogState, wanted: ExactDecision
) -> None:
    assert decide_exactly(progress=known, announced={one.epoch: one for one in announced}, target=target) == wanted


@pytest.mark.parametrize(
    ("known", "announced", "target", "kind"),
    [
        (None, [FIRST], state(1_200, 0, 99, unreplicated=3), Wait),
        (None, [FIRST], state(1_200, 0, 99, unreplicated=None), NotIdentical),
        # The target lost what it had acknowledged, or was created again.
        (progress(1_200, sequence=50), [FIRST], state(1_100, 0, 49), Lost),
        (progress(1_200, sequence=50), [FIRST], state(0), Lost),
        (None, [], state(1_000, 0, 5), Unexplained),
        (None, [FIRST], state(1_200, 3, 5), Unexplained),
        (progress(1_200, sequence=50), [], state(1_200), Unexplained),
        (progress(1_600, sequence=50, number=1), [FIRST, TURN], state(1_550), Lost),
        # Producers that were late took more than is reserved for them.
        (progress(1_500, sequence=0, number=1), [FIRST, TURN], state(1_501, 0, 49), NotIdentical),
        # Dense copies, and those of MirrorMaker 2.
        (None, [], state(7), NotIdentical),
        (Progress(last_offset=5), [], state(7), NotIdentical),
        (progress(1_200, sequence=50, downstream=900), [FIRST], state(1_200, 0, 49), NotIdentical),
        (None, [epoch(0, 1_000, 0)], state(50, 0, 49), NotIdentical),
        (None, [FIRST, epoch(1, 1_500, 1_400, EpochKind.GAP)], state(1_400, 0, 49), NotIdentical),
        (None, [FIRST, epoch(1, 1_000, 1_400, EpochKind.RESET)], state(1_400, 0, 49), NotIdentical),
    ],
)
def test_it_does_not_continue(
    known: Progress | None, announced: list[Announcement], target: RemoteLogState, kind: type
) -> None:
    decision = decide_exactly(progress=known, announced={one.epoch: one for one in announced}, target=target)
    assert isinstance(decision, kind)
