"""Where a copy with identical offsets continues: the end of the target's log, if nothing contradicts it."""

from __future__ import annotations

import pytest

from mirrorless.copy.identical.decision import decide_exactly
from mirrorless.copy.resume.decision import (
    BeginTurn,
    Continue,
    Decision,
    Fill,
    Forgotten,
    Lost,
    NotIdentical,
    RemoteLogState,
    Start,
    Unexplained,
    Wait,
)
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement, Progress


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


def at(offset: int, number: int, sequence: int) -> Continue:
    return Continue(epoch=number, walk_from=offset, walk_records=0, sequence=sequence, last_downstream=offset - 1)


BEGIN = Start(epoch=0, start=None, kind=EpochKind.FIRST_COPY, reason="first copy")
FIRST = epoch(0, 1_000)
GAP = epoch(1, 1_500, kind=EpochKind.GAP)
RESET = epoch(1, 1_500, 0, EpochKind.RESET)
TURN = epoch(1, 1_500, kind=EpochKind.TURN)
BEGUN = epoch(2, 1_300, kind=EpochKind.FORGOTTEN)


@pytest.mark.parametrize(
    ("known", "announced", "target", "wanted"),
    [
        (None, [], state(0), BEGIN),
        (None, [FIRST], state(0), Fill(epoch=0, start=1_000, log_end=0)),
        (None, [FIRST], state(400), Fill(epoch=0, start=1_000, log_end=400)),
        (None, [FIRST], state(1_000), at(1_000, 0, 0)),
        # The position is the log end, whatever the progress says; holes do not count as sequences.
        (None, [FIRST], state(1_200, 0, 99), at(1_200, 0, 100)),
        (progress(1_100, sequence=50), [FIRST], state(1_200, 0, 99), at(1_200, 0, 100)),
        # Forgotten by the target: the progress has the sequence if it is of this log end.
        (progress(1_200, sequence=50), [FIRST], state(1_200), at(1_200, 0, 50)),
        (progress(1_100, sequence=50), [FIRST], state(1_200), Forgotten(since=1_100)),
        (None, [FIRST], state(1_200), Forgotten(since=1_000)),
        # A newer epoch begins where it was announced.
        (progress(1_200, sequence=50), [FIRST, GAP], state(1_200, 0, 49), Fill(epoch=1, start=1_500, log_end=1_200)),
        (progress(1_200, sequence=50), [FIRST, GAP], state(1_500, 0, 49), at(1_500, 1, 0)),
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
            at(1_510, 1, 10),
        ),
        # A turn begins at the target's log end, wherever that is; its epoch is announced then.
        *(
            (progress(1_500, sequence=0, number=1), [FIRST, TURN], state(end, 0, 49), BeginTurn())
            for end in (1_300, 1_500, 1_501)
        ),
        (None, [TURN], state(0), BeginTurn()),
        (
            progress(1_500, sequence=0, number=1),
            [FIRST, TURN, BEGUN],
            state(1_300, 0, 49),
            at(1_300, 2, 0),
        ),
        (None, [FIRST, TURN, BEGUN], state(1_303, 0, 49), Forgotten(since=1_300)),
        (None, [FIRST, TURN, BEGUN], state(1_310, 2, 9), at(1_310, 2, 10)),
    ],
)
def test_it_continues(
    known: Progress | None, announced: list[Announcement], target: RemoteLogState, wanted: Decision
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
