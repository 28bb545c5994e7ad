"""Which checkpoints are written, under which topic, and what is committed on the target (reference, 3.8 and 3.9)."""

from __future__ import annotations

import pytest

from mirrorless.formats import Checkpoint
from mirrorless.offsets.checkpoints import is_news, offsets_to_commit, remote_topic
from mirrorless.policy import DefaultReplicationPolicy, IdentityReplicationPolicy


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


@pytest.mark.parametrize(
    ("topic", "remote"),
    [("t", "A.t"), ("B.t", "t"), ("B.A.t", "t"), ("C.t", "A.C.t"), ("C.B.t", "A.C.B.t")],
)
def test_a_topic_that_came_from_the_target_has_its_original_name_there(topic: str, remote: str) -> None:
    assert remote_topic(topic, source="A", target="B", policy=DefaultReplicationPolicy()) == remote


def test_under_the_identity_policy_names_stay() -> None:
    assert remote_topic("t", source="A", target="B", policy=IdentityReplicationPolicy("A")) == "t"


def test_what_a_group_gets_on_the_target() -> None:
    checkpoints = {
        ("missing", 0): checkpoint(9, 0, topic="missing"),
        ("behind", 0): checkpoint(9, 5, topic="behind"),
        ("there", 0): checkpoint(9, 5, topic="there"),
        ("ahead", 0): checkpoint(9, 5, topic="ahead"),
    }
    committed = {("behind", 0): 4, ("there", 0): 5, ("ahead", 0): 6, ("another", 0): 1}
    assert set(offsets_to_commit(checkpoints, committed)) == {("missing", 0), ("behind", 0)}
