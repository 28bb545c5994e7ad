"""Topic and group filters follow MirrorMaker 2's rules for lists of patterns."""

from __future__ import annotations

import pickle
import sys
import time
from types import ModuleType

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mirrorless.errors import ConfigurationError
from mirrorless.filters import (
    GroupFilter,
    TopicFilter,
    config_filter_for,
    replicated_topics,
    topic_filter_for,
    why_left_out,
)
from mirrorless.selection import LeftOut
from mirrorless.settings import Cluster, Flow
from mirrorless.settings.patterns import Patterns, compile_patterns

A = Cluster(alias="A", bootstrap_servers="a:1")
B = Cluster(alias="B", bootstrap_servers="b:1")


def test_selects() -> None:
    cases: list[tuple[list[str], list[str], str, bool]] = [
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
        (["(?i)orders", "pay"], [], "PAY", True),  # as MirrorMaker 2, which joins them with |
        (["pay", "(?i)orders"], [], "PAY", False),
        (["(?i:orders)", "pay"], [], "PAY", False),
        (["a*+b"], [], "aab", True),
        (["a*+ab"], [], "aab", False),
        (["(?>a|ab)c"], [], "abc", False),
        ([r"a\\Qb"], [], r"a\Qb", True),
        ([r"\d+"], [], "\u0661", False),
    ]
    assert [
        (include, exclude, name, TopicFilter(include, exclude).selects(name)) for include, exclude, name, _ in cases
    ] == cases


def test_filters_are_values() -> None:
    topics = TopicFilter(["a"], ("b",))

    assert topics == TopicFilter(("a",), ["b"])
    assert hash(topics) == hash(TopicFilter(("a",), ["b"]))
    assert pickle.loads(pickle.dumps(topics)).selects("a")  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(", r"^pattern 'a\(' does not compile: missing \), unterminated subpattern at position 1$"),
        (r"\[[^]a[b]]", "Java's operations on character classes are not supported at position 6; write one class"),
        (r"[a-z&&b]", "Java's operations on character classes are not supported at position 4; write one class"),
        (r"\p{Lower}+", r"Java's \\p\{...\} is not supported at position 0; list the characters"),
        (r"x[\P{L}]", r"Java's \\P\{...\} is not supported at position 2; list the characters"),
        (r"\Qa.b\E", r"Java's \\Q...\\E is not supported at position 0; put a backslash before each special"),
        (r"a\h", r"Java's \\h is not supported at position 1; write \[ \\t\]$"),
        (r"a\v", r"\\v is any vertical space in Java and one character in Python at position 1"),
        (r"a\R", r"Java's \\R is not supported"),
        (r"orders\z", r"\\z does not mean the same in all versions at position 6; remove it"),
        (r"orders\Z", r"\\Z matches another position in Python than in Java at position 6; remove it"),
        (r"\0101", "octal numbers are read differently at position 0"),
        (r"(a)\11", r"\\11 is read differently at position 3; use at most nine groups"),
        (r"\b{g}", r"Java's \\b\{g\} is not supported"),
        (r"\x{41}", r"Java's \\x\{...\} is not supported at position 0; write \\xhh"),
        (r"(?<n>a)\k<n>", r"Java's named groups are not supported at position 0; write a plain group"),
        (
            "a(?i)b",
            r"flags inside a pattern, \(\?i\), are not supported at position 1; put them first, or write \(\?i:",
        ),
        ("(?-i)a", r"flags that are switched off, \(\?-i\), are not supported"),
        ("(?x)a b", r"the flags \(\?x\) are read differently at position 0; of Java's flags only i, m, s"),
        ("(?u)a", r"the flags \(\?u\) are read differently"),
        ("a{99999999999}", "the repetition number is too large"),
        ("tmp-[0-9]{1,3}", r"pattern 'tmp-\[0-9\]\{1' does not compile: \{ does not begin a repetition .*write x\{3\}"),
        ("{a}", r"\{ does not begin a repetition"),
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


def test_groups_are_counted_through_a_list_as_in_java() -> None:
    assert TopicFilter([r"(a)\1", "b"], []).selects("aa")
    with pytest.raises(ValueError, match="Java counts groups through the whole list"):
        compile_patterns(["(a)", r"(b)\1"])


def test_a_filter_says_which_pattern_decided() -> None:
    topics = TopicFilter.of(Flow(source=A, target=B, topics=("orders.*",), topics_exclude=(r".*\.draft", "__.*")))

    assert topics.refusal("orders") is None
    assert topics.refusal("payments") == "no pattern of topics matches"
    assert topics.refusal("orders.draft") == r".*\.draft of topics.exclude matches"


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


@pytest.mark.parametrize(
    ("topic", "kind", "reason"),
    [
        ("__orders", LeftOut.INTERNAL, "internal topic of Kafka, Connect or MirrorMaker"),
        ("C.B.orders", LeftOut.CYCLE, "was already replicated from B"),
        ("payments", LeftOut.FILTER, "no pattern of topics matches"),
    ],
)
def test_why_a_topic_is_left_out(topic: str, kind: LeftOut, reason: str) -> None:
    flow = Flow(source=A, target=B, topics=(r"(.*\.)?orders",))

    assert why_left_out(flow)(topic) == (kind, reason)


def test_config_properties() -> None:
    default = config_filter_for(Flow(source=A, target=B))
    names = ["retention.ms", "min.insync.replicas", "message.timestamp.type", "message.timestamp.before.max.ms"]
    assert [name for name in names if default.selects(name)] == ["retention.ms", "message.timestamp.before.max.ms"]
    assert not default.selects_default("retention.ms")

    own = config_filter_for(
        Flow(source=A, target=B, config_properties_exclude=("retention.*",), use_defaults_from="source")
    )
    assert [name for name in names if own.selects(name)] == names[1:]
    assert own.selects_default("retention.ms")


class OnlyReleased(TopicFilter):
    def selects(self, name: str) -> bool:
        return super().selects(name) and not name.endswith(".draft")


class NoFilter:
    def selects(self, name: str) -> bool:
        return name != ""


@pytest.fixture
def own_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user has on the path."""
    module = ModuleType("own_filters")
    vars(module).update({"OnlyReleased": OnlyReleased, "NoFilter": NoFilter, "number": 5})
    monkeypatch.setitem(sys.modules, "own_filters", module)


@pytest.mark.usefixtures("own_classes")
@pytest.mark.parametrize("name", ["own_filters:OnlyReleased", "own_filters.OnlyReleased"])
def test_a_filter_of_ones_own(name: str) -> None:
    flow = Flow(source=A, target=B, topic_filter_class=name)

    assert topic_filter_for(flow).selects("orders")
    assert not topic_filter_for(flow).selects("orders.draft")
    assert why_left_out(flow)("orders.draft") == (LeftOut.FILTER, f"{name} does not select it")


@pytest.mark.usefixtures("own_classes")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("com.example.MyFilter", "module com is not on Python's path; use DefaultTopicFilter, or a Python class"),
        ("DefaultFilter", "this is not the name of a class; use DefaultTopicFilter"),
        ("own_filters:Missing", "module own_filters has no class Missing"),
        ("own_filters:number", "module own_filters has no class number"),
        ("own_filters:NoFilter", "class NoFilter has no method of; it may derive from DefaultTopicFilter"),
    ],
)
def test_a_filter_that_cannot_be_had(name: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        topic_filter_for(Flow(source=A, target=B, topic_filter_class=name))
    assert str(refusal.value).startswith(f"topic.filter.class={name}: flow A->B: {reason}")


@given(
    patterns=st.lists(
        st.sampled_from(["a", "a.b", "b-c", "(?i)B", "a|ab", "(a)\\1", "[ab]+", "c.*", ".", "(?:b|c)?", "a\\.b"]),
        max_size=6,
    ),
    name=st.text("abcABC.-", max_size=4),
)
def test_joined_patterns_match_what_one_of_them_matches(patterns: list[str], name: str) -> None:
    try:
        each = compile_patterns(patterns)
    except ValueError:
        assume(False)
    first = next((one.pattern for one in each if one.fullmatch(name)), None)
    joined = Patterns(patterns)
    assert joined.first(name) == first
    assert joined.match(name) == (first is not None)


def test_a_thousand_exact_names_cost_about_as_much_as_one() -> None:
    """Each was a pattern of its own, asked for every offset of every group: 0.8 ms for the last one."""
    topics = TopicFilter([f"team.orders.topic-{number}" for number in range(1_000)], ["(?i).*internal"])
    names = ("team.orders.topic-999", "team.orders.topic-5", "team.orders.topic-x", "other")
    began = time.process_time()
    for _ in range(500):
        assert [topics.selects(name) for name in names] == [True, True, False, False]
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("topic", "service"),
    [
        ("connect-configs", "Kafka Connect"),
        ("docker-connect-offsets", "Kafka Connect"),
        ("my_connect_status", "Kafka Connect"),
        ("_schemas", "Schema Registry"),
        ("_confluent-ksql-default__command_topic", "ksqlDB"),
        ("connect-events", None),
        ("schemas", None),
        ("connections-status", None),
    ],
)
def test_the_state_of_services_is_left_out_where_its_name_is_kept(topic: str, service: str | None) -> None:
    def asked(*topics: str, policy: str = "IdentityReplicationPolicy") -> tuple[LeftOut, str] | None:
        return why_left_out(Flow(source=A, target=B, topics=topics, **{"replication.policy.class": policy}))(topic)

    expected = service and (
        LeftOut.SERVICE,
        f"state of {service}; the target's own has a topic of this name too; name it in topics to copy it",
    )
    assert asked(".*") == expected
    assert asked(".*", topic) is None
    assert asked(".*", policy="DefaultReplicationPolicy") is None
