"""The line on configs that a target refuses names what to exclude, as far as excluding it has an effect."""

from __future__ import annotations

from mirrorless.metadata.apply import _refused


def test_the_line_names_the_configs() -> None:
    texts = {"retention.ms": "retention.ms: no", "segment.ms": "segment.ms: never"}
    assert _refused(texts, texts.values()) == (
        "retention.ms: no; segment.ms: never; "
        "to keep the target's values, add retention.ms, segment.ms to config.properties.exclude"
    )


def test_limits_on_the_age_of_records_are_lifted_unless_the_newer_name_is_excluded() -> None:
    texts = {"message.timestamp.difference.max.ms": "message.timestamp.difference.max.ms: no"}
    line = _refused(texts, texts.values())
    assert line is not None
    assert line.endswith("add message.timestamp.before.max.ms to config.properties.exclude")


def test_nothing_refused_is_no_error() -> None:
    assert _refused([], {}) is None
