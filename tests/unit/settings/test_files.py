"""Files as people have them, with the flows and settings that MirrorMaker 2, or the other tool, takes from them.

`expected.json` in each folder has every setting that is not a default, with its origin. After a change on purpose,
write them again with `python -m tests.unit.settings.test_files`, and review the difference.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.understood import EXPECTED, cases, files_of, read

if TYPE_CHECKING:
    import pytest


def test_there_are_at_least_thirty() -> None:
    assert sum(len(files_of(case)) for case in cases()) >= 30


def test_they_are_read_as_expected_with_flows_and_no_error(subtests: pytest.Subtests) -> None:
    for case in cases():
        with subtests.test(case.name):
            found = read(case)
            assert found == json.loads((case / EXPECTED).read_text())
            assert found["flows"]
            assert found["errors"] == []


def _write() -> None:
    for case in cases():
        (case / EXPECTED).write_text(json.dumps(read(case), indent=1) + "\n")


if __name__ == "__main__":
    _write()
