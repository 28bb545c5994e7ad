"""Why an epoch begins is an enum; records of releases that compared texts are read, and those releases read ours."""

from __future__ import annotations

import json

import pytest

from mirrorless.copy.resume.decision import RemoteLogState, Start, decide
from mirrorless.errors import GapKind
from mirrorless.progress.epoch_kind import EpochKind, kind_of_gap, text_of_gap
from mirrorless.progress.records import Announcement, Progress


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("first copy", EpochKind.FIRST_COPY),
        ("first copy, the target is shorter now", EpochKind.FIRST_COPY),
        ("behind MirrorMaker 2", EpochKind.AFTER_MIRRORMAKER2),
        ("behind MirrorMaker 2's", EpochKind.OTHER),
        ("left out offset 7, 12 bytes: too large", EpochKind.LEFT_OUT),
        ("the target lost acknowledged records: it ends at 9; the copy goes on at 9", EpochKind.TARGET_LOST),
        ("reset to 4", EpochKind.RESET),
        ("the source was cleaned in between; 3 records are copied again", EpochKind.SOURCE_CLEANED),
        ("the source's log was cut: it ends at 3; the copy goes on at 3", EpochKind.OTHER),
        ("", EpochKind.OTHER),
    ],
)
def test_a_record_without_a_kind_has_it_by_its_text(reason: str, kind: EpochKind) -> None:
    assert Announcement.read(1, {"start": 5, "downstream": 6, "reason": reason}).kind is kind


def test_the_stored_kind_counts_and_not_the_text() -> None:
    content = {"start": 5, "downstream": 6, "reason": "first copy", "kind": "LEFT_OUT"}
    assert Announcement.read(1, content).kind is EpochKind.LEFT_OUT
    assert Announcement.read(1, content | {"kind": "OF_A_LATER_RELEASE"}).kind is EpochKind.OTHER


def test_a_takeover_keeps_the_text_that_earlier_releases_compare() -> None:
    decision = decide(progress=Progress(last_offset=499), announced={}, target=RemoteLogState(log_end=500))
    assert isinstance(decision, Start)
    written = Announcement(epoch=0, start=500, downstream=500, kind=decision.kind, reason=decision.reason)
    stored = json.loads(written.to_bytes())
    assert (stored["kind"], stored["reason"]) == ("AFTER_MIRRORMAKER2", "behind MirrorMaker 2")


def test_what_the_target_lost_keeps_its_text_too() -> None:
    assert text_of_gap(GapKind.TARGET_LOST) == "the target lost acknowledged records"
    assert {kind for gap in GapKind if (kind := kind_of_gap(gap)) is not EpochKind.GAP} == {EpochKind.TARGET_LOST}
