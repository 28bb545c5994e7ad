"""The accessibility checks of axe-core, in a page of the browser; `make axe` fetches the script into the cache."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mirrorless.local.jars import cache_folder

if TYPE_CHECKING:
    from tests.support.page_browser import Browser

VERSION: Final = "4.14.1"
_SHA512: Final = (
    "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b73"
    "4f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5"
)
_RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def script() -> Path:
    """Return where the script is, or would be."""
    return cache_folder(os.environ) / f"axe-core-{VERSION}.js"


def violations(browser: Browser) -> list[str]:
    """Return a line for each violation in the page that is open."""
    if not browser.run("typeof axe !== 'undefined'"):
        browser.load_script(script())
    options = json.dumps({"runOnly": {"type": "tag", "values": _RULES}})
    browser.run(
        f"(window.axeFound = null, axe.run(document, {options}).then(one => (window.axeFound = one.violations)), 0)"
    )
    browser.wait_for("window.axeFound")
    found: list[str] = browser.run(
        "axeFound.map(one => `${one.id}: ${one.help}: ${one.nodes.map(node => node.html.slice(0, 200)).join(' | ')}`)"
    )
    return found


def main() -> None:
    """Fetch the package with npm, compare its digest, and keep the script alone."""
    target = script()
    if target.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", "--silent", f"axe-core@{VERSION}", "--pack-destination", folder],  # noqa: S607
            check=True,
        )
        (packed,) = Path(folder).glob("*.tgz")
        if hashlib.sha512(packed.read_bytes()).hexdigest() != _SHA512:
            sys.exit(f"axe-core {VERSION} is not the package that is expected")
        with tarfile.open(packed) as package:
            member = package.extractfile("package/axe.min.js")
            assert member is not None
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(member.read())


if __name__ == "__main__":
    main()
