"""What a pass says of itself: what was not begun counts as not done."""

from __future__ import annotations

import pytest

from mirrorless.clusters.identity import Ends
from mirrorless.metadata.actions import Action, AlterConfigs, CreateTopic, GrowTopic, Problem
from mirrorless.metadata.apply import Applied
from mirrorless.metadata.sync_pass import SyncPass

CREATE = CreateTopic(topic="t", partitions=1, replication_factor=1, reason="r")
GROW = GrowTopic(topic="t", partitions=2, reason="r")
ALTER = AlterConfigs(topic="t", differences=(), reason="r")


def found(*applied: Applied, left: tuple[Action, ...] = (), problems: tuple[Problem, ...] = ()) -> SyncPass:
    return SyncPass(ends=Ends("a", "b"), applied=applied, left_out=(), problems=problems, notes=(), left=left)


@pytest.mark.parametrize(
    ("one", "went_well", "topics_are_there"),
    [
        (found(), True, True),
        (found(Applied(CREATE, None)), True, True),
        (found(Applied(CREATE, "refused")), False, False),
        (found(Applied(ALTER, "refused")), False, True),
        (found(problems=(Problem(topic="t", reason="r", uncopied=True),)), False, False),
        (found(problems=(Problem(topic="*", reason="no right to see ACLs"),)), False, True),
        (found(left=(CREATE,)), False, False),
        (found(left=(GROW,)), False, False),
        (found(left=(ALTER,)), False, True),
    ],
)
def test_what_a_pass_came_to(one: SyncPass, went_well: bool, topics_are_there: bool) -> None:
    assert (one.went_well, one.topics_are_there) == (went_well, topics_are_there)


def test_its_lines_for_a_log() -> None:
    one = found(Applied(GROW, None, "note"), Applied(GROW, "refused"), problems=(Problem(topic="u", reason="hidden"),))
    grown = {"topic": "t", "partitions": 2, "reason": "r"}
    assert list(one.lines()) == [
        ("GrowTopic", grown | {"note": "note"}),
        ("GrowTopic", grown | {"error": "refused"}),
        ("Problem", {"topic": "u", "error": "hidden"}),
    ]
