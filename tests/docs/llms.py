"""`docs/llms.txt`: every page of the documentation with its first sentence, for language models (llmstxt.org)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "docs" / "llms.txt"
_SENTENCE: Final = re.compile(r".+?[.?](?=\s|$)", re.DOTALL)
_NO_PROSE: Final = ("```", "Exit status", "1. ")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class _Loader(yaml.SafeLoader):
    """Reads the navigation; tags of plugins are no part of it."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def _pages(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(value, list):
            yield from _pages(value)
        else:
            yield value


def _line(page: str) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    title = next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))
    paragraphs = (one.strip() for one in text.split("\n\n"))
    prose = next((one for one in paragraphs if one and one[0] not in "#<|-!=" and not one.startswith(_NO_PROSE)), "")
    found = _SENTENCE.match(_LINK.sub(r"\1", prose))
    sentence = "" if found is None else " ".join(found[0].split()).rstrip(":")
    return f"- [{title}]({page})" + (f": {sentence}" if sentence else "") + "\n"


def text() -> str:
    """Return what the file has to be."""
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)  # noqa: S506 -- a safe loader
    found = f"# Mirrorless\n\n> {settings['site_description']}\n"
    for section in settings["nav"]:
        ((name, entries),) = section.items()
        found += f"\n## {name}\n\n" + "".join(map(_line, _pages(entries)))
    return found
