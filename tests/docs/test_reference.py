"""The generated sections of the reference pages are as the code has them; `make reference` writes them."""

from __future__ import annotations

import click
import pytest

from mirrorless.cli import root
from tests.docs.reference import DOCS, SECTIONS, commands_of, sections_in, updated

PAGES = {path.relative_to(DOCS): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}


@pytest.mark.parametrize("name", [str(path) for path, text in PAGES.items() if sections_in(text)])
def test_a_page_is_up_to_date(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert text == updated(text), f"run `make reference` to update docs/{name}"


def test_every_section_is_in_one_page() -> None:
    assert sorted(name for text in PAGES.values() for name in sections_in(text)) == sorted(SECTIONS)


COMMANDS = [pytest.param(command, id=" ".join(path)) for path, command in commands_of(root, ("mirrorless",))]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_has_a_help_text(command: click.Command) -> None:
    assert command.help
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    assert [one.name for one in options if not one.help] == []
