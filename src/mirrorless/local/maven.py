"""Downloads jars of known names from Maven Central, or from the repository in MIRRORLESS_MAVEN."""

from __future__ import annotations

import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_CENTRAL: Final = "https://repo1.maven.org/maven2"
_TIMEOUT_S: Final = 60
_AT_ONCE: Final = 6


class NotDownloaded(Exception):
    """A jar could not be downloaded; the text has its address and the reason."""


def download(jars: Mapping[str, str], folder: Path) -> None:
    """Write jars to `folder`: file names by module, "organisation:module:revision".

    Raises `NotDownloaded`, or OSError if a file cannot be written.
    """
    repository = os.environ.get("MIRRORLESS_MAVEN", _CENTRAL).rstrip("/")
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(lambda one: _write(f"{repository}/{_path(*one)}", folder / one[1]), jars.items()))


def _path(module: str, file_name: str) -> str:
    organisation, name, revision = module.split(":")
    return f"{organisation.replace('.', '/')}/{name}/{revision}/{file_name}"


def _write(address: str, file: Path) -> None:
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as response:  # noqa: S310 -- Maven's, or the user's own
            jar = response.read()
    except (OSError, HTTPException, ValueError) as error:
        raise NotDownloaded(f"{address}: {' '.join(str(error).split())}") from error
    file.write_bytes(jar)
