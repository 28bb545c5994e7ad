"""Tests of what changes seldom: a run has them where a change concerns them, and every night."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SINCE: Final = "MIRRORLESS_CHANGED_SINCE"
"""Environment variable: the commit that changes are counted from; the one before the last, if it is not set."""

CONCERNED: Final = {
    "tests/kafka/web/test_page_looks.py": (
        "src/mirrorless/web",
        "tests/kafka/web",
        "tests/support/axe.py",
        "tests/support/page_browser.py",
        "tests/support/pages.py",
        "requirements/browser.txt",
    ),
    "tests/kafka/releases/": (
        "src/mirrorless/batches",
        "src/mirrorless/clusters",
        "src/mirrorless/copy/identical",
        "src/mirrorless/kafka_python",
        "src/mirrorless/protocol",
        "tests/kafka/releases",
        "tests/support/jars",
        "tests/support/releases.py",
        "requirements/dev.txt",
    ),
}
"""The tests, and the files and folders that concern them."""


@cache
def is_for_the_night(nodeid: str) -> bool:
    """Whether a test is one of those, and nothing that concerns it was changed."""
    return any(nodeid.startswith(tests) and not _changed(tests) for tests in CONCERNED)


@cache
def _changed(tests: str) -> bool:
    """Whether files differ from the earlier commit; yes, where there is no such commit."""
    since = os.environ.get(SINCE, "HEAD~1")
    command = ["git", "diff", "--quiet", since, "--", *CONCERNED[tests]]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode != 0
