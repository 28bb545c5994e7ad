"""The page's files: no markup from data, nothing from another host, and a description of the API that is true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mirrorless.web.routes import static_files
from tests.docs import openapi

if TYPE_CHECKING:
    from collections.abc import Iterable

FILES = {name: content.decode() for name, content in static_files().items()}
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))


def found(pattern: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return what a pattern matches in the files, each with its file."""
    return [(name, text) for name in names for text in re.findall(pattern, FILES[name])]


def test_a_script_makes_no_markup_from_text() -> None:
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
    assert found(markup, SCRIPTS) == []


def test_a_file_names_no_other_host() -> None:
    addresses = found(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"']*", FILES)
    assert [one for one in addresses if "www.w3.org" not in one[1]] == []


def test_the_page_has_no_style_or_script_of_its_own() -> None:
    page = FILES["index.html"]
    assert re.findall(r"\sstyle=|\son[a-z]+=|<style", page) == []
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="app.js">']


def test_every_module_that_is_imported_is_there() -> None:
    assert [one for one in found(r"from \"\./([a-z]+\.js)\"", SCRIPTS) if one[1] not in SCRIPTS] == []


def test_files_stay_small() -> None:
    assert {name for name in SCRIPTS if FILES[name].count("\n") > 300} == set()
    assert sum(map(len, FILES.values())) < 200_000


def test_the_description_of_the_api_is_up_to_date() -> None:
    assert FILES["openapi.json"] == openapi.text(), "run `make reference`"
