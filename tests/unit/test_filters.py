"""Topic and group filters follow MirrorMaker 2's rules for lists of patterns."""

from __future__ import annotations

import pickle

import pytest

from mirrorless.filters import GroupFilter, TopicFilter, compile_patterns, replicated_topics
from mirrorless.settings import Cluster, Flow

A = Cluster(alias="A", bootstrap_servers="a:1")
B = Cluster(alias="B", bootstrap_servers="b:1")


@pytest.mark.parametrize(
    ("include", "exclude", "name", "selected"),
    [
        ([".*"], [], "orders", True),
        (["orders"], [], "orders", True),
        (["orders"], [], "orders-eu", False),
        (["a|ab"], [], "ab", True),
        (["a.b"], [], "a-b", True),
        ([r"a\.b"], [], "a-b", False),
        ([".*"], ["__.*"], "__offsets", False),
        (["orders"], ["orders"], "orders", False),
        ([], [], "orders", False),
        ([""], [], "orders", False),
        ([" x , orders "], [], "orders", True),
        (["(?i)orders", "pay"], [], "ORDERS", True),
        (["(?i)orders", "pay"], [], "PAY", False),
        ([r"\d+"], [], "\u0661", False),
    ],
)
def test_selects(include: list[str], exclude: list[str], name: str, *, selected: bool) -> None:
    assert TopicFilter(include, exclude).selects(name) is selected


def test_filters_are_values() -> None:
    topics = TopicFilter(["a"], ("b",))

    assert topics == TopicFilter(("a",), ["b"])
    assert hash(topics) == hash(TopicFilter(("a",), ["b"]))
    assert pickle.loads(pickle.dumps(topics)).selects("a")  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(", r"^pattern 'a\(' does not compile: missing \), unterminated subpattern at position 1$"),
        (r"\[[^]a[b]]", "Java's operations on character classes are not supported at position 6$"),
        (r"[a-z&&b]", "Java's operations on character classes are not supported at position 4$"),
        ("(?u)a", "ASCII and UNICODE flags are incompatible"),
        ("a{99999999999}", "the repetition number is too large"),
    ],
)
def test_a_pattern_that_does_not_compile(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        compile_patterns(["fine", pattern])


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("[a&]&&[b]", "&&&b"), (r"[\[a]\[", "[["), ("[]a]b", "]b"), ("[a||b]", "|"), (r"[\]&]\&&", "&&&")],
)
def test_a_pattern_that_only_looks_like_a_set_operation(pattern: str, name: str) -> None:
    assert TopicFilter([pattern], []).selects(name)


def test_a_flow_brings_its_own_filters() -> None:
    flow = Flow(source=A, target=B, groups=("team-.*",))

    assert TopicFilter.of(flow).selects("orders")
    assert not TopicFilter.of(flow).selects("mm2-offsets.A.internal")
    assert GroupFilter.of(flow).selects("team-1")
    assert not GroupFilter.of(flow).selects("connect-1")


@pytest.mark.parametrize(
    ("topic", "replicated"),
    [
        ("orders", True),
        ("orders.internal", False),
        ("other", False),
        ("heartbeats", True),
        ("C.heartbeats", True),
        ("B.heartbeats", False),
        ("B.orders", False),
        ("C.B.orders", False),
        ("A.orders", True),
        ("mm2-offset-syncs.B.internal", False),
        ("C.checkpoints.internal", False),
        ("__orders", False),
        (".orders", False),
    ],
)
def test_what_a_flow_replicates(topic: str, *, replicated: bool) -> None:
    flow = Flow(source=A, target=B, topics=(r"(.*\.)?orders", "__orders", "mm2.*"), topics_exclude=())

    assert replicated_topics(flow)(topic) is replicated


def test_heartbeats_obey_the_filter_when_they_are_switched_off() -> None:
    flow = Flow(source=A, target=B, topics=("orders",), heartbeats_replication_enabled=False)

    assert not replicated_topics(flow)("heartbeats")
