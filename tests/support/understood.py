"""The folders of files as people have them, and what is read from one, as comparable JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.settings.load import understand

if TYPE_CHECKING:
    from mirrorless.settings.reader import Effective

FOLDER: Final = Path(__file__).parents[1] / "unit" / "settings" / "files"
EXPECTED: Final = "expected.json"


def cases() -> list[Path]:
    """Return the folders, each with the files of one configuration."""
    return sorted(path for path in FOLDER.iterdir() if path.is_dir())


def files_of(case: Path) -> list[Path]:
    """Return the files of a configuration."""
    return sorted(path for path in case.iterdir() if path.name != EXPECTED)


def read(case: Path) -> dict[str, Any]:
    """Return the flows with every setting that is not a default, warnings, notes and errors, without the folder."""

    def short(text: str) -> str:
        return text.replace(f"{case}/", "").replace(f"files:{case}", "files:")

    def table(settings: tuple[Effective, ...]) -> dict[str, list[str | None]]:
        return {
            one.key: [None if one.value is None else short(one.value), short(one.origin), one.written]
            for one in settings
            if one.origin != "default"
        }

    found = understand(*files_of(case))
    return {
        "flows": {
            name: {
                "settings": table(settings),
                **{side: table(found.clients[name, side]) for side in ("source", "target")},
            }
            for name, settings in found.flows.items()
        },
        "heartbeats": [] if found.settings is None else [pair.name for pair in found.settings.heartbeats],
        "warnings": [short(line) for line in found.warnings],
        "notes": [short(line) for line in found.notes],
        "errors": [short(str(error)) for error in found.errors],
    }
