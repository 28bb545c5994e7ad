"""Which partitions appeared since the last look at the source."""

from __future__ import annotations

import pytest

from mirrorless.progress.discovered_topics import DiscoveredTopics, is_new, key_of, value_of
from mirrorless.progress.records import parse

SEEN = {"t": 2, "u": 1}


@pytest.mark.parametrize(
    ("place", "seen", "new"),
    [
        (("t", 0), {}, False),  # the first look
        (("t", 1), SEEN, False),
        (("t", 2), SEEN, True),
        (("v", 0), SEEN, True),
    ],
)
def test_what_is_new(place: tuple[str, int], seen: dict[str, int], new: bool) -> None:
    assert is_new(place, seen) is new


def test_records_are_read_as_they_were_written_and_are_no_progress() -> None:
    topics = DiscoveredTopics("A")
    assert topics.take(key_of("A", "t"), value_of(3))
    assert topics.take(key_of("A", '\u00e4."t'), value_of(1))
    assert topics.partitions == {"t": 3, '\u00e4."t': 1}
    assert topics.take(key_of("A", "t"), None)
    assert topics.take(key_of("A", "u"), b"no JSON")
    assert not topics.take(key_of("B", "t"), value_of(3))
    assert topics.partitions == {'\u00e4."t': 1}
    assert parse(key_of("A", "t"), value_of(3)) is None
