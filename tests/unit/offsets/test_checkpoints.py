"""Which checkpoints are written, under which topic, and what is committed on the target (reference, 3.8 and 3.9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirrorless.clusters.admin import Admin
from mirrorless.formats import Checkpoint
from mirrorless.offsets.checkpoints import is_news, offsets_to_commit, remote_topic
from mirrorless.offsets.failback import FailbackFilter
from mirrorless.offsets.group_positions import Continuation
from mirrorless.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from mirrorless.settings import Cluster
from tests.support.drill_facts import flow_with


def checkpoint(upstream: int, downstream: int, *, topic: str = "A.t") -> Checkpoint:
    return Checkpoint(group="g", topic=topic, partition=0, upstream=upstream, downstream=downstream)


@pytest.mark.parametrize(
    ("upstream", "downstream", "news"),
    [
        pytest.param(11, 6, True, id="both grow"),
        pytest.param(10, 5, False, id="the same again"),
        pytest.param(10, 6, True, id="a better answer"),
        pytest.param(11, 5, False, id="the group moved, its answer did not"),
        pytest.param(11, 4, False, id="the answer would go back though the group did not"),
        pytest.param(9, 4, True, id="the group went back"),
        pytest.param(9, 7, True, id="the group went back and a better answer"),
    ],
)
def test_what_is_news(upstream: int, downstream: int, news: bool) -> None:
    assert is_news(checkpoint(upstream, downstream), checkpoint(10, 5)) is news


@pytest.mark.parametrize(
    ("downstream", "exact", "end", "news"),
    [
        pytest.param(4, True, 100, True, id="an exact answer before the last one"),
        pytest.param(5, True, 100, False, id="an exact answer that is the last one"),
        pytest.param(4, False, 5, False, id="a rough answer, and the last one may be right"),
        pytest.param(4, False, 4, True, id="the last one lies behind the end"),
        pytest.param(4, False, None, False, id="nothing is known of the end"),
    ],
)
def test_news_where_the_remote_topic_was_made_anew(downstream: int, exact: bool, end: int | None, news: bool) -> None:
    assert is_news(checkpoint(11, downstream), checkpoint(10, 5), exact=exact, end=end) is news


def test_the_first_is_always_news() -> None:
    assert is_news(checkpoint(0, 0), None)


def test_a_topic_that_came_from_the_target_has_its_original_name_there() -> None:
    cases: list[tuple[str, str]] = [("t", "A.t"), ("B.t", "t"), ("B.A.t", "t"), ("C.t", "A.C.t"), ("C.B.t", "A.C.B.t")]
    assert [
        (topic, remote_topic(topic, source="A", target="B", policy=DefaultReplicationPolicy())) for topic, _ in cases
    ] == cases


def test_under_the_identity_policy_names_stay() -> None:
    assert remote_topic("t", source="A", target="B", policy=IdentityReplicationPolicy("A")) == "t"


@pytest.mark.parametrize(
    ("committed", "ours", "members", "expected"),
    [
        pytest.param(None, False, False, (150, 0, 0), id="nothing is committed"),
        pytest.param(100, True, False, (150, 0, 0), id="before"),
        pytest.param(150, False, False, (150, 0, 0), id="equal"),
        pytest.param(900, True, False, (150, 0, 0), id="ahead by this program: the group was set back"),
        pytest.param(900, False, False, (900, 0, 750), id="ahead by its own consumer"),
        pytest.param(900, True, True, (900, 0, 750), id="ahead, with members"),
        pytest.param(100, True, True, (100, 50, 0), id="before, with members"),
        pytest.param(None, False, True, (None, None, 0), id="members that have committed nothing"),
    ],
)
def test_where_a_group_continues(
    committed: int | None, ours: bool, members: bool, expected: tuple[int | None, int | None, int]
) -> None:
    found = Continuation.of(150, at_most=150, committed=committed, is_ours=ours, has_members=members)
    assert (found.offset, found.read_again, found.skipped) == expected


def test_of_an_inexact_translation_both_numbers_are_maxima() -> None:
    found = Continuation.of(150, at_most=200, committed=180, is_ours=False, has_members=False)
    assert (found.offset, found.read_again, found.skipped) == (180, 20, 30)


def test_a_group_that_an_operation_moved_back_consumed_itself_where_it_is_later() -> None:
    """Else it would not return with what it read: the checkpoints of before the move are still in the topic."""
    known = FailbackFilter(flow_with(), Admin(Cluster(alias="b", bootstrap_servers="b:1")), wanted=lambda _: True)
    place = ("A.t", 0)
    known.note(checkpoint(1000, 900))
    known.note(replace(checkpoint(250, 150), committed=900))
    assert known.of("g", place, 900) is not None
    assert not known.went_on("g", place, 500)
    known.note(replace(checkpoint(250, 150), committed=150))
    assert known.of("g", place, 150) is not None
    assert known.went_on("g", place, 500)


def test_what_a_group_gets_on_the_target() -> None:
    checkpoints = {
        ("missing", 0): checkpoint(9, 0, topic="missing"),
        ("behind", 0): checkpoint(9, 5, topic="behind"),
        ("there", 0): checkpoint(9, 5, topic="there"),
        ("ahead", 0): checkpoint(9, 5, topic="ahead"),
    }
    committed = {("behind", 0): 4, ("there", 0): 5, ("ahead", 0): 6, ("another", 0): 1}
    assert set(offsets_to_commit(checkpoints, committed)) == {("missing", 0), ("behind", 0)}
