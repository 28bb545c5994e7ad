"""A comment after a value is not a part of it, and a pattern that can match nothing is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.errors import ConfigurationError
from mirrorless.settings import Settings, load
from mirrorless.settings.comments import without_comment
from mirrorless.settings.impossible_patterns import never_in_a_name
from mirrorless.settings.patterns import compile_patterns

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B   # both
A.bootstrap.servers = a:1 // the old one
B.bootstrap.servers = b1:1,b2:1\t# the new ones
A->B.enabled = true   # the flow
"""
COMMENTED = "Java's properties have no comments after values; move it to a separate line"


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "mm2.properties"
    path.write_text(text)
    return load(path)


def test_lists_numbers_and_booleans_are_read_without_comments(tmp_path: Path) -> None:
    text = BASE + (
        "topics.exclude = audit  # private\nA->B.topics = orders, pay.* // all\ntasks.max = 4  # cores\n"
        "sync.topic.acls.enabled = false    // not here\nmirrorless.lease.seconds = 5 # short\n"
        "offset-syncs.topic.location = target  # KIP-716\nA.request.timeout.ms = 500 # low\n"
        "refresh.topics.interval.ms = 30000 # thirty seconds\nmirrorless.acls.patterns = literal, prefixed  # both\n"
    )
    settings = loaded(tmp_path, text)
    flow = settings.flow("A->B")

    assert (flow.topics_exclude, flow.topics, flow.tasks_max) == (("audit",), ("orders", "pay.*"), 4)
    assert (flow.sync_topic_acls_enabled, flow.lease_seconds, flow.offset_syncs_topic_location) == (
        (False, 5.0, "target")
    )
    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == ("a:1", "b1:1,b2:1")
    assert flow.source.client["request.timeout.ms"] == "500"
    assert (flow.refresh_topics_interval_seconds, flow.acls_patterns) == (30, ("literal", "prefixed"))
    assert sum(line.endswith(COMMENTED) for line in settings.warnings) == 13


def test_the_warning_shows_how_it_is_read(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BASE + "tasks.max = 4  # cores\n")

    assert f"{settings.file}:6: tasks.max=4  # cores: read as 4: {COMMENTED}" in settings.warnings


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("A.ssl.key.password = a  # b", "ssl.key.password", "a  # b"),
        ('A.sasl.jaas.config = M required password="a  # b"; # c', "sasl.jaas.config", None),
        ("A.client.id = a # b", "client.id", "a # b"),
        ("A.ssl.truststore.location = /a // b", "ssl.truststore.location", "/a // b"),
    ],
)
def test_text_keeps_it(tmp_path: Path, line: str, key: str, value: str | None) -> None:
    client = loaded(tmp_path, BASE + line).flow("A->B").source.client

    assert client[key] == (value or line.partition(" = ")[2])


@pytest.mark.parametrize(
    ("written", "value", "comment"),
    [
        ("a  # b", "a", "# b"),
        ("a\t//b", "a", "//b"),
        ("a#b", "a#b", None),
        ("a//b", "a//b", None),
        ("# a", "# a", None),
        ('"a # b", c', '"a # b", c', None),
        ("'a # b', c # d", "'a # b', c", "# d"),
        ("a # it's", "a", "# it's"),
        ("a # b # c", "a", "# b # c"),
        ("http://a", "http://a", None),
    ],
)
def test_only_after_white_space_and_outside_of_quotes(written: str, value: str, comment: str | None) -> None:
    assert without_comment(written) == (value, comment)


@given(st.text(max_size=30))
def test_what_is_left_has_no_comment(value: str) -> None:
    plain, _ = without_comment(value)
    assert without_comment(plain) == (plain, None) or plain != value


def test_what_a_pattern_requires() -> None:
    cases: list[tuple[str, str | None]] = [
        ("audit  # private", " "),
        ("#audit", "#"),
        (".*\replica", "\r"),
        ("a b", " "),
        (r"a\sb", r"\s"),
        (r"a\x20", r"\x20"),
        ("a|b", None),
        ("a b|c", None),
        ("a b|c d", " "),
        ("(a b|c)", None),
        ("(a b|c d)+", " "),
        ("(a b)?c", None),
        ("(a b)*", None),
        ("(?:#)", "#"),
        ("(?!#).*", None),
        ("(?<!#)a", None),
        ("(?i)a b", " "),
        ("(?i:a b)", " "),
        ("[ #]", "[ #]"),
        ("[ a]", None),
        ("[^#]", None),
        ("a ?b", None),
        ("a #*b", " "),
        ("a{0}b", None),
        (" {2}", " "),
        (".*", None),
        (r"a\.b", None),
        (r"\b\u00e9", r"\u00e9"),
        ("$|#", None),
        ("a,b", ","),
    ]
    assert [(pattern, never_in_a_name(pattern)) for pattern, _ in cases] == cases


names = st.text(alphabet="ab._-0Z", min_size=1, max_size=6)


@given(st.text(alphabet="ab #()|?*+[]^.\\\t", max_size=10), names)
def test_a_pattern_that_matches_a_name_is_not_impossible(pattern: str, name: str) -> None:
    try:
        (compiled,) = compile_patterns([pattern]) or (None,)
    except ValueError:
        return
    if compiled is not None and compiled.fullmatch(name):
        assert never_in_a_name(compiled.pattern) is None


def test_a_pattern_without_match_is_a_warning_in_topics(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BASE + "topics = orders, pay ments\n")

    line = (
        f"{settings.file}:6: topics=orders, pay ments: 'pay ments' matches no topic, because topic names cannot have "
    )
    assert f"{line}' '" in settings.warnings


@pytest.mark.parametrize(("written", "pattern"), [(r".*\replica", r"'.*\replica'"), ("# audit", "'# audit'")])
def test_and_an_error_in_the_topics_to_exclude(tmp_path: Path, written: str, pattern: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, f"{BASE}A->B.topics.exclude = {written}\n")

    assert f"pattern {pattern} excludes nothing, because topic names cannot have" in str(raised.value)
    assert "\n" not in str(raised.value)
