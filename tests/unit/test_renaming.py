"""Names of topics by rules: what they give, what they are inverted to, and which are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless import known_topics
from mirrorless.errors import ConfigurationError
from mirrorless.filters import replicated_topics, why_left_out
from mirrorless.metadata.plan import divide
from mirrorless.modes import Modes
from mirrorless.policy import policy_for
from mirrorless.selection import LeftOut
from mirrorless.settings import load
from mirrorless.settings.rename_rules import parse_rules

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings import Flow

RULES = r"legacy\.(.*) -> $1, orders -> orders.v2"


def flows(tmp_path: Path, text: str = "", *, rules: str = RULES, kept: bool = False) -> tuple[Flow, Flow]:
    """The flows A->B, with rules, and B->A of one file."""
    policy = "replication.policy.class = IdentityReplicationPolicy\nmirrorless.both.directions = turns\n"
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
        "B->A.enabled = true\n"
        + (f"{policy}mirrorless.active.cluster = A\n" if kept else "")
        + "A->B.mirrorless.topics.rename = "
        + rules.replace("\\", "\\\\")
        + "\n"
        + text
    )
    settings = load(file)
    return settings.flow("A->B"), settings.flow("B->A")


@pytest.mark.parametrize(
    ("rules", "topic", "name"),
    [
        (RULES, "legacy.invoices", "invoices"),
        (RULES, "orders", "orders.v2"),
        (RULES, "orders.v1", "orders.v1"),
        ("orders.v1 -> x", "orders.v1", "x"),
        ("orders.v1 -> x", "orders-v1", "orders-v1"),
        ("legacy.(.*) -> $1", "legacy.x", "x"),
        ("legacy[.](.*) -> $1", "legacy-x", "legacy-x"),
        ("(.*) -> eu.$1", "eu.orders", "eu.eu.orders"),
        (r"(a|b)\.([0-9]+) -> $2.$1", "b.17", "17.b"),
        (r"a(\.[a-z]{3}) -> b$10", "a.xyz", "b.xyz0"),
        ("a -> b, b -> a", "b", "a"),
    ],
)
def test_first_rule_that_matches_the_whole_name_counts(tmp_path: Path, rules: str, topic: str, name: str) -> None:
    known_topics.note_topics("a:1", [topic])
    for kept, prefix, back in ((False, "A.", "B."), (True, "", "")):
        flow, way_back = flows(tmp_path, rules=rules, kept=kept)
        policy, inverse = policy_for(flow), policy_for(way_back)
        assert policy.format_remote_topic("A", topic) == prefix + name
        assert policy.topic_source(prefix + name) == "A"
        assert policy.upstream_topic(prefix + name) == topic
        assert policy.original_topic(prefix + name) == (topic if topic != name else policy.original_topic(topic))
        assert inverse.format_remote_topic("B", name) == back + topic
        assert inverse.upstream_topic(back + topic) == name


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("orders", r"is not written as 'pattern -> name', as in 'legacy\.(.*) -> $1'; a comma separates rules"),
        ("orders ->", r"is not written as 'pattern -> name', as in 'legacy\.(.*) -> $1'; a comma separates rules"),
        ("a(b -> c", "pattern 'a(b' does not compile: missing ), unterminated subpattern at position 1"),
        (
            r"legacy\.(.*) -> all",
            "cannot be inverted: the new name does not contain $1, so several topics would get one name; use $1 in it",
        ),
        (
            r"(.*)\.(.*) -> $1",
            "cannot be inverted: the new name does not contain $2, so several topics would get one name; use $2 in it",
        ),
        ("a* -> b", "cannot be inverted: '*' repeats what is before it; put both into one group"),
        (
            r"a\d -> b",
            r"cannot be inverted: '\\d' outside a group does not stand for itself; put it into a group, and use the "
            "group in the new name",
        ),
        ("(a)? -> b$1", "cannot be inverted: '?' repeats what is before it; put both into one group"),
        ("(?:a) -> b", "cannot be inverted: '(?:a)' is a group that captures nothing; write (...)"),
        ("((a)b) -> $1", "has a group in a group in ((a)b); write (?:...) for the inner one"),
        (r"(a)(\1) -> $1$2", r"cannot be inverted: '\\1)' in a group depends on the text around it"),
        ("(a(?=b))b -> $1", "cannot be inverted: a group that looks ahead has to be the last part of the pattern"),
        ("(a) -> $2", "uses $2, and its pattern has 1 groups"),
        ("(a) -> $1$1", "uses $1 twice; use each group once"),
        ("a -> b/c", "gives a name with '/'; letters, digits, '.', '_', '-' and $1 are allowed"),
        ("(.)(.)(.)(.) -> $1$2$3$4", "has 4 groups; at most 3 are supported"),
        ("a -> " + "x" * 250, f"gives the name {'x' * 250}, which is longer than 249 characters"),
    ],
)
def test_rule_that_cannot_be_inverted_is_refused_in_one_line(tmp_path: Path, rule: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        flows(tmp_path, rules=rule)
    shown = rule.replace("\\", "\\\\")
    assert str(error.value) == (
        f"{tmp_path}/mm2.properties:6: A->B.mirrorless.topics.rename={rule}: rule '{shown}' {reason}"
    )


def test_two_rules_with_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="rules 'a -> x' and 'b -> x' give two topics the name x, which would"):
        flows(tmp_path, rules="a -> x, b -> x")


@pytest.mark.parametrize(
    ("rule", "name", "owner"),
    [
        ("a -> __consumer_offsets", "__consumer_offsets", "Kafka, Connect or MirrorMaker"),
        ("(.*) -> __$1", "names such as __x", "Kafka, Connect or MirrorMaker"),
        ("a -> heartbeats", "heartbeats", "Kafka, Connect or MirrorMaker"),
        ("a -> B.checkpoints.internal", "B.checkpoints.internal", "Kafka, Connect or MirrorMaker"),
        ("a -> mm2-offset-syncs.B.internal", "mm2-offset-syncs.B.internal", "this program"),
        ("(.*) -> mirrorless-$1", "names such as mirrorless-x", "this program"),
    ],
)
def test_rule_onto_an_internal_topic_is_refused_in_one_line(tmp_path: Path, rule: str, name: str, owner: str) -> None:
    flow, _ = flows(tmp_path, rules=rule)
    with pytest.raises(ConfigurationError) as error:
        policy_for(flow)
    assert str(error.value) == (
        f"mirrorless.topics.rename={rule}: flow A->B: rule '{rule}' gives {name}, an internal topic of {owner}; give "
        "another name"
    )


def test_topic_that_a_pattern_names_like_an_internal_one_is_left_out_alone(tmp_path: Path) -> None:
    flow, _ = flows(tmp_path)
    chosen, left_out = divide(flow, ["legacy.__x", "legacy.orders-in"])
    assert chosen == {"legacy.orders-in": "A.orders-in"}
    assert [(one.topic, one.kind, one.reason) for one in left_out] == [
        (
            "legacy.__x",
            LeftOut.NAME,
            "would be named __x, an internal topic of Kafka, Connect or MirrorMaker; exclude it with topics.exclude, "
            "or change its rule in A->B.mirrorless.topics.rename",
        )
    ]


def clash(other: str, how: str, was: str) -> str:
    return (
        f"would be named payments on B, as is {other}, which {how} and {was}: their records would be mixed; exclude "
        "one of them with topics.exclude, or give it another name (mirrorless.topics.rename)"
    )


BY_RULE = r"is renamed by rule 'legacy\\.(.*) -> $1'"


def test_topic_that_appears_with_the_name_of_another_is_left_out_alone(tmp_path: Path) -> None:
    flow, _ = flows(tmp_path, kept=True)
    for first, later, how in (
        ("legacy.payments", "payments", BY_RULE),
        ("payments", "legacy.payments", "keeps its name"),
    ):
        known_topics.forget()
        known_topics.note_topics("a:1", [first, "orders"])
        before, _ = divide(flow, [first, "orders"])
        known_topics.note_topics("a:1", [first, "orders", later])
        after, left_out = divide(flow, [first, "orders", later])
        assert before == after == {first: "payments", "orders": "orders.v2"}
        assert [(one.topic, one.kind, one.reason) for one in left_out] == [
            (later, LeftOut.NAME, clash(first, how, "was copied or existed first"))
        ]


def test_topic_that_was_copied_has_the_name_in_a_process_that_sees_both_at_once(tmp_path: Path) -> None:
    flow, back = flows(tmp_path)
    known_topics.note_topics("a:1", ["legacy.payments", "payments"])
    known_topics.note_copied(flow, ["payments"])
    chosen, left_out = divide(flow, ["legacy.payments", "payments"])
    assert chosen == {"payments": "A.payments"}
    assert [(one.topic, one.reason) for one in left_out] == [
        ("legacy.payments", clash("payments", "keeps its name", "was copied or existed first"))
    ]
    assert policy_for(flow).upstream_topic("A.payments") == "payments"
    assert policy_for(back).format_remote_topic("B", "payments") == "B.payments"


def test_of_two_topics_that_were_there_before_the_flow_none_is_copied(tmp_path: Path) -> None:
    flow, back = flows(tmp_path)
    known_topics.note_topics("a:1", ["legacy.payments", "payments", "x"])
    chosen, left_out = divide(flow, ["legacy.payments", "payments", "x"])
    assert chosen == {"x": "A.x"}
    assert [(one.topic, one.reason) for one in left_out] == [
        ("legacy.payments", clash("payments", "keeps its name", "exists too")),
        ("payments", clash("legacy.payments", BY_RULE, "exists too")),
    ]
    assert why_left_out(back)("payments") == (
        LeftOut.NAME,
        "is the name of legacy.payments and of payments of A by the rules of A->B, and which of them was copied is not "
        "known; exclude it with topics.exclude, or change its rule in A->B.mirrorless.topics.rename",
    )


def test_name_that_may_have_been_kept_is_that_of_the_topic_that_exists(tmp_path: Path) -> None:
    flow, back = flows(tmp_path, kept=True)
    known_topics.note_topics("a:1", ["legacy.a", "b", "orders"])
    assert divide(back, ["a", "b", "orders.v2", "new"])[0] == {
        "a": "legacy.a",
        "b": "b",
        "orders.v2": "orders",
        "new": "legacy.new",
    }
    assert [policy_for(flow).original_topic(name) for name in ("a", "b", "orders.v2")] == ["legacy.a", "b", "orders"]


def test_name_of_a_topic_that_the_flow_does_not_select_is_free(tmp_path: Path) -> None:
    flow, back = flows(tmp_path, "A->B.topics = legacy\\\\.a, b\n")
    assert divide(flow, ["legacy.a", "legacy.b", "b"])[0] == {"legacy.a": "A.a", "b": "A.b"}
    assert policy_for(back).format_remote_topic("B", "b") == "B.b"


def test_topic_without_a_name_on_the_other_side_is_left_out_on_the_way_back(tmp_path: Path) -> None:
    _, back = flows(tmp_path, rules="orders -> orders.v2", kept=True)
    chosen, left_out = divide(back, ["orders", "orders.v2", "x"])
    assert chosen == {"orders.v2": "orders", "x": "x"}
    assert [(one.topic, one.kind, one.reason) for one in left_out] == [
        (
            "orders",
            LeftOut.NAME,
            "is not the name of any topic of A by the rules of A->B, so it has no name there; exclude it with "
            "topics.exclude, or add a rule to A->B.mirrorless.topics.rename",
        )
    ]


def test_both_directions_cannot_have_rules(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        flows(tmp_path, "B->A.mirrorless.topics.rename = x -> y\n")
    assert str(error.value) == (
        f"{tmp_path}/mm2.properties:7: B->A.mirrorless.topics.rename=x -> y: A->B has rules too, and the way back has "
        "their inverse by itself; set mirrorless.topics.rename for one of the two flows only, as in "
        "A->B.mirrorless.topics.rename"
    )


def test_internal_topics_heartbeats_and_own_topics_keep_their_names(tmp_path: Path) -> None:
    flow, back = flows(tmp_path, rules="(.*) -> v.$1")
    policy = policy_for(flow)
    for topic in ("heartbeats", "C.heartbeats", "mirrorless-canary"):
        assert policy.format_remote_topic("A", topic) == f"A.{topic}"
        assert policy_for(back).format_remote_topic("B", topic) == f"B.{topic}"
    assert why_left_out(flow)("__consumer_offsets") == (
        LeftOut.INTERNAL,
        "internal topic of Kafka, Connect or MirrorMaker",
    )


def test_hops_are_judged_by_the_name_on_the_source_and_never_hidden(tmp_path: Path) -> None:
    third = "clusters = A, B, C\nC.bootstrap.servers = c:1\n"
    flow, _ = flows(tmp_path, third, rules=r"([A-Z])\.(.*) -> $1-$2")
    assert why_left_out(flow)("B.orders") == (LeftOut.CYCLE, "was already replicated from B")
    assert why_left_out(flow)("C.orders") == (
        LeftOut.NAME,
        "was replicated from C, and its new name, C-orders, would hide that; exclude it with topics.exclude, or change "
        "its rule in A->B.mirrorless.topics.rename",
    )


def test_kept_names_are_kept_though_some_are_changed(tmp_path: Path) -> None:
    flow, back = flows(tmp_path, kept=True)
    assert Modes(flow).keeps_names
    assert Modes(flow).other_turn is not None
    assert Modes(back).begins_stopped
    assert replicated_topics(back)("invoices")


NAMES = st.text("ab.-_1", min_size=1, max_size=12).filter(lambda name: name not in (".", ".."))
LITERALS = st.text("ab.-_1", max_size=4)
GROUPS = st.sampled_from(["(.*)", "(.+)", "([a-b]*)", "(a|b|ab)", "([^.]+)", "(a?b*)"])


@st.composite
def any_rule(draw: st.DrawFn) -> str:
    """A rule of up to three groups, in any order, with text between them."""
    groups = draw(st.lists(GROUPS, max_size=3))
    order = draw(st.permutations(range(1, len(groups) + 1)))
    old = draw(LITERALS) + "".join(group + draw(LITERALS) for group in groups)
    new = draw(LITERALS) + "".join(f"${number}" + draw(LITERALS) for number in order)
    escaped = old if not groups else "".join(_escaped(part) for part in _parts(old, groups))
    return f"{escaped} -> {new}"


def _parts(old: str, groups: list[str]) -> list[str]:
    parts = []
    for group in groups:
        before, _, old = old.partition(group)
        parts += [before, group]
    return [*parts, old]


def _escaped(part: str) -> str:
    return part if part.startswith("(") else part.replace(".", r"\.")


@given(rules=st.lists(any_rule(), min_size=1, max_size=3), topics=st.lists(NAMES, min_size=1, max_size=8))
def test_every_name_leads_back_to_its_topic(
    tmp_path_factory: pytest.TempPathFactory, rules: list[str], topics: list[str]
) -> None:
    try:
        for rule in parse_rules(", ".join(rules)):
            for topic in topics:
                if (name := rule.apply(topic)) is not None:
                    assert topic in rule.inverted(name)
        known_topics.forget()
        known_topics.note_topics("a:1", topics)
        flow, back = flows(tmp_path_factory.mktemp("renaming"), rules=", ".join(rules))
        policy, inverse = policy_for(flow), policy_for(back)
    except (ValueError, ConfigurationError):
        return
    copied = divide(flow, topics)[0]
    assert len(set(copied.values())) == len(copied)
    for topic, remote in copied.items():
        assert policy.upstream_topic(remote) == topic
        name = remote.removeprefix("A.")
        assert inverse.format_remote_topic("B", name) == f"B.{topic}"
        assert inverse.upstream_topic(f"B.{topic}") == name


def test_flows_that_skip_copies_have_no_rules(tmp_path: Path) -> None:
    text = "mirrorless.both.directions = skip\nB->A.sync.topic.configs.enabled = false\n"
    with pytest.raises(ConfigurationError) as error:
        flows(tmp_path, f"replication.policy.class = IdentityReplicationPolicy\n{text}", rules="a -> b")
    assert str(error.value) == (
        f"{tmp_path}/mm2.properties:6: A->B.mirrorless.topics.rename=a -> b: with mirrorless.both.directions=skip both "
        "clusters have to have the same topic names; remove one of the two settings"
    )
