"""Documents are written in plain technical English.

Generated sections are left out: their words are those of the code, which the test of messages checks.
"""

from __future__ import annotations

from pathlib import Path

from tests.docs.reference import by_hand
from tests.support.banned_words import INSTEAD, found_in

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
)


def test_documents_have_no_banned_words() -> None:
    assert DOCUMENTS
    found = [
        f"{document}:{number}: {phrase} (write: {INSTEAD[phrase]})"
        for document in DOCUMENTS
        for number, line in enumerate(by_hand((ROOT / document).read_text()).splitlines(), start=1)
        for phrase in found_in(line)
    ]
    assert found == []


def test_phrases_are_found_as_whole_words_in_any_case_and_across_blanks() -> None:
    assert found_in("The copy Goes  on. Renew, whoever.") == ["goes on", "whoever"]
