"""The generated sections of the reference pages are as the code has them; `make reference` writes them."""

from __future__ import annotations

from tests.docs.reference import DOCS, SECTIONS, sections_in, updated

PAGES = {path.relative_to(DOCS): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}


def test_pages_are_up_to_date() -> None:
    outdated = [str(path) for path, text in PAGES.items() if sections_in(text) and text != updated(text)]
    assert outdated == [], "run `make reference`"


def test_every_section_is_in_one_page() -> None:
    assert sorted(name for text in PAGES.values() for name in sections_in(text)) == sorted(SECTIONS)
