"""The page's files: no markup from data, nothing from another host, and a description of the API that is true."""

from __future__ import annotations

import re

import pytest

from mirrorless.web.routes import static_files
from tests.docs import openapi

FILES = {name: content.decode() for name, content in static_files().items()}
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_makes_no_markup_from_text(name: str) -> None:
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc", FILES[name]
    )
    assert found == []


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_names_no_other_host(name: str) -> None:
    addresses = re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"']*", FILES[name])
    assert [one for one in addresses if "www.w3.org" not in one] == []


def test_the_page_has_no_style_or_script_of_its_own() -> None:
    page = FILES["index.html"]
    assert re.findall(r"\sstyle=|\son[a-z]+=|<style", page) == []
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="app.js">']


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_module_that_is_imported_is_there(name: str) -> None:
    used = re.findall(r"from \"\./([a-z]+\.js)\"", FILES[name])
    assert set(used) <= set(SCRIPTS)


def test_files_stay_small() -> None:
    assert {name for name in SCRIPTS if FILES[name].count("\n") > 300} == set()
    assert sum(map(len, FILES.values())) < 200_000


def test_the_description_of_the_api_is_up_to_date() -> None:
    assert FILES["openapi.json"] == openapi.text(), "run `make reference`"
