"""Notes on the source, and which partitions appeared since the last look at it."""

from __future__ import annotations

import pytest

from mirrorless.progress.records import parse
from mirrorless.progress.source_notes import SourceNotes, discovered, is_new, origin

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


def test_notes_are_read_as_they_were_written_and_are_no_progress() -> None:
    notes = SourceNotes("A")
    written = [discovered("A", "t", 3), discovered("A", '\u00e4."t', 1), origin("A", "C", ["one", "two"])]
    for note in [*written, discovered("A", "t", None)]:
        assert notes.take(*note)
        assert parse(*note) is None
    assert notes.take(discovered("A", "u", None)[0], b"no JSON")
    assert not notes.take(*discovered("B", "t", 3))
    assert (notes.partitions, notes.ids) == ({'\u00e4."t': 1}, {"C": ["one", "two"]})
    assert notes.take(written[2][0], None)
    assert notes.ids == {}


def test_keys_are_those_of_earlier_releases() -> None:
    assert discovered("A", "t", 3) == (b'["mirrorless",{"cluster":"A","discovered":"t"}]', b'{"partitions": 3}')
    assert origin("A", "C", ["one"]) == (b'["mirrorless",{"cluster":"A","origin":"C"}]', b'{"ids": ["one"]}')
