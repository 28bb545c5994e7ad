"""Loads the scripts that AWS runs, of functions and jobs, as modules of this process."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from mirrorless.errors import PrerequisiteError

if TYPE_CHECKING:
    from pathlib import Path


def attribute_of(script: Path, attribute: str, *, module: str, of: str) -> Any:  # noqa: ANN401 -- a script's
    """Run a script as a new module of that name and return one of its attributes.

    Raises `PrerequisiteError`, with the script's owner (`of`), if it does not exist.
    """
    found = importlib.util.spec_from_file_location(module, script)
    if found is None or found.loader is None or not script.exists():
        raise PrerequisiteError(f"{of}: {script} does not exist; reinstall the package")
    loaded = importlib.util.module_from_spec(found)
    found.loader.exec_module(loaded)
    return getattr(loaded, attribute)
