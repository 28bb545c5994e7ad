"""What people ask to be compared is read in one place; what cannot be is one line."""

from __future__ import annotations

import time

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.verify.comparison import ComparisonTerms


def test_what_is_given() -> None:
    found = ComparisonTerms.read(topics="orders, pay.*,", since="2026-01-31T12:00:00Z", percent=25)
    assert (found.topics, found.since_ms, found.share) == (("orders", "pay.*"), 1769860800000, 0.25)
    assert ComparisonTerms.read(topics=".*", since=None, percent=None) == ComparisonTerms()


@pytest.mark.parametrize(("age", "hours"), [("26h", 26), ("7d", 168)])
def test_an_age_counts_back_from_now(age: str, hours: int) -> None:
    found = ComparisonTerms.read(topics=".*", since=age, percent=None).since_ms
    assert found is not None
    assert abs(time.time() - hours * 3600 - found / 1000) < 60


@pytest.mark.parametrize(
    ("topics", "since", "line"),
    [
        ("(a", None, "--topics=(a: pattern '(a' does not compile: "),
        ("a", "yesterday", "--since=yesterday: use a time with its zone such as 2026-01-31T12:00:00Z"),
    ],
)
def test_what_cannot_be(topics: str, since: str | None, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ComparisonTerms.read(topics=topics, since=since, percent=None)
    assert str(caught.value).startswith(line)
