"""Files as people have them, with the flows and settings that MirrorMaker 2, or the other tool, takes from them.

`expected.json` in each folder has every setting that is not a default, with its origin. After a change on purpose,
write them again with `python -m tests.unit.settings.test_files`, and review the difference.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.understood import EXPECTED, cases, files_of, read

if TYPE_CHECKING:
    from pathlib import Path


def test_there_are_at_least_thirty() -> None:
    assert sum(len(files_of(case)) for case in cases()) >= 30


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_it_is_read_as_expected(case: Path) -> None:
    assert read(case) == json.loads((case / EXPECTED).read_text())


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_it_has_flows_and_no_error(case: Path) -> None:
    found = read(case)

    assert found["flows"]
    assert found["errors"] == []


def _write() -> None:
    for case in cases():
        (case / EXPECTED).write_text(json.dumps(read(case), indent=1) + "\n")


if __name__ == "__main__":
    _write()
