"""A properties file is read as Java reads it, except that blanks around a flow's arrow do not cut the key."""

from __future__ import annotations

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.errors import ConfigurationError
from mirrorless.settings.properties import parse


def values(text: str) -> dict[str, str]:
    return {key: entry.value for key, entry in parse(text).items()}


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("A->B.enabled=true", "A->B.enabled", "true"),
        ("A -> B.enabled = true", "A->B.enabled", "true"),
        ("A ->B.topics: x", "A->B.topics", "x"),
        ("A-> B.topics x", "A->B.topics", "x"),
        ("  A\t->\tB.topics.exclude =a, b", "A->B.topics.exclude", "a, b"),
        ("A -> \\\n   B.topics = a,\\\n   b", "A->B.topics", "a,b"),
        ("A \\\n -> B.topics = a", "A->B.topics", "a"),
        (r"A\ ->\ B.enabled = true", "A->B.enabled", "true"),
        ("A . bootstrap.servers = a:1", "A.bootstrap.servers", "a:1"),
        ("A .bootstrap . servers=a:1", "A.bootstrap.servers", "a:1"),
        ("A -> B . topics . exclude : x . y", "A->B.topics.exclude", "x . y"),
        ("topics .*", "topics", ".*"),
        ("topics = .*", "topics", ".*"),
        ("topics a . b", "topics", "a . b"),
        ("A->B.topics = -> x", "A->B.topics", "-> x"),
        ("A = -> x", "A", "-> x"),
        ("arrow = a -> b", "arrow", "a -> b"),
        ("A.bootstrap.servers = one:9092, two:9092", "A.bootstrap.servers", "one:9092, two:9092"),
        (r"topics = a\\.b", "topics", r"a\.b"),
        ("clusters", "clusters", ""),
        ("name = \u00e9\\u00e9", "name", "\u00e9\u00e9"),
    ],
)
def test_one_entry(line: str, key: str, value: str) -> None:
    assert values(line) == {key: value}


def test_comments_and_empty_lines_count_as_lines() -> None:
    text = "# A -> B.enabled = true\n\nclusters = A, \\\n  B\r\n! note\nA -> B.enabled = true\n"

    assert [(key, entry.value, entry.line) for key, entry in parse(text).items()] == [
        ("clusters", "A, B", 3),
        ("A->B.enabled", "true", 6),
    ]


def test_the_last_of_equal_keys_wins_however_they_are_written() -> None:
    entries = parse("A->B.topics = one\nclusters = A, B\nA -> B.topics = two\n")

    assert [(key, entry.value, entry.line) for key, entry in entries.items()] == [
        ("clusters", "A, B", 2),
        ("A->B.topics", "two", 3),
    ]


def test_the_text_of_an_entry_is_not_in_its_repr() -> None:
    assert "swordfish" not in repr(parse("A.ssl.key.password = swordfish"))


keys = st.text(min_size=1).filter(lambda key: "->" not in key)


@given(st.dictionaries(keys, st.text()))
def test_what_javaproperties_writes_is_read_back(settings: dict[str, str]) -> None:
    assert values(javaproperties.dumps(settings, timestamp=False)) == settings


blanks = st.text(alphabet=" \t\f", max_size=3)
aliases = st.text(alphabet="abcXYZ019_-.", min_size=1, max_size=5).filter(lambda alias: not alias.startswith("-"))
anything = st.text(max_size=20)


@given(aliases, aliases, st.tuples(blanks, blanks, blanks, blanks), st.sampled_from("=:"), anything)
def test_blanks_around_arrow_and_separator_change_nothing(
    source: str, target: str, blank: tuple[str, str, str, str], separator: str, value: str
) -> None:
    escaped = javaproperties.join_key_value("x", value, separator="=").removeprefix("x=")
    source = source.rstrip("-") or "A"  # `A-->B` says nothing about where the alias ends

    text = f"{source}{blank[0]}->{blank[1]}{target}.topics{blank[2]}{separator}{blank[3]}{escaped}"

    assert values(text) == {f"{source}->{target}.topics": value}


def test_a_broken_escape_is_named_by_its_line_only() -> None:
    with pytest.raises(ConfigurationError, match=r"^mm2: line 2 ") as caught:
        parse("clusters = A\nA.ssl.key.password = sword\\ufish\n", file="mm2")

    assert "fish" not in str(caught.value)


def test_the_entry_before_is_kept_where_a_key_is_set_to_another_value() -> None:
    assert parse("a = 1\na = 1 \n")["a"].earlier is None
    last = parse("a = 1\na = 2\na = 2\n")["a"]
    assert (last.line, last.value) == (3, "2")
    assert last.earlier is not None
    assert (last.earlier.line, last.earlier.value) == (1, "1")
