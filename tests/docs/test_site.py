"""The documentation builds as a site: every link and page is right, and a browser asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a page loads by itself; links that a reader may click are not among them.
LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?([^"'\s>]+)""")
LINKED = re.compile(r"""<link(?=[^>]*\srel=["']?(?:stylesheet|preload|preconnect|icon))[^>]*\shref=["']?([^"'\s>]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning of the build is an error."""
    folder = tmp_path_factory.mktemp("site")
    # No proxy answers, so a build that needs the network fails.
    closed = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | closed | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.parent.relative_to(site) for path in site.rglob("index.html")}
    assert {page if page.name != "index" else page.parent for page in pages} <= built


def test_a_page_loads_nothing_from_another_host(site: Path) -> None:
    loaded = {
        found[1]
        for page in site.rglob("*.html")
        for pattern in (LOADED, LINKED)
        for found in pattern.finditer(page.read_text())
    }
    assert loaded
    assert [address for address in sorted(loaded) if re.match(r"(?:[a-z]+:)?//", address)] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
