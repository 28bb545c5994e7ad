"""Plants bugs in copies of the source, one at a time, and reports those that no test notices (`make mutations`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.mutations.planted import BUGS

if TYPE_CHECKING:
    from tests.mutations.planted import Bug

ROOT: Final = Path(__file__).parents[2]
_FAILED: Final = 1
"""pytest's status where tests were run and some failed; others are errors of its own."""


def noticed(bug: Bug | None, tests: str) -> tuple[bool, str]:
    """Whether tests fail with a bug planted, or with the source as it is, and the first that does."""
    with tempfile.TemporaryDirectory() as folder:
        # Tests find the project's other folders beside `src`.
        for entry in ROOT.iterdir():
            if entry.name not in ("src", ".git", ".mypy_cache"):
                (Path(folder) / entry.name).symlink_to(entry)
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if bug is not None:
            file = source / "mirrorless" / bug.file
            text = file.read_text(encoding="utf-8")
            if text.count(bug.right) != 1:
                return False, f"the source has this {text.count(bug.right)} times"
            file.write_text(text.replace(bug.right, bug.wrong), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "--exitfirst", "--quiet", "-p", "no:cacheprovider", "--no-header"]
        done = subprocess.run(
            [*command, *(f"tests/unit/{path}" for path in tests.split())],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            check=False,
        )
    failed = [line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    return done.returncode == _FAILED and bool(failed), (failed or [f"status {done.returncode}"])[0]


def main() -> None:
    """Print a line for each bug; ends with a status other than 0 if tests fail without one, or not with one."""
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        sound = dict.fromkeys(bug.tests for bug in BUGS)
        broken = [name for fails, name in pool.map(lambda tests: noticed(None, tests), sound) if fails]
        if broken:
            sys.exit(f"without a bug these fail: {', '.join(broken)}")
        missed = 0
        results = pool.map(lambda bug: noticed(bug, bug.tests), BUGS)
        for bug, (is_noticed, by) in zip(BUGS, results, strict=True):
            first_line = bug.right.strip().partition("\n")[0]
            result = "noticed" if is_noticed else "NOT NOTICED"
            print(f"{result}  {bug.file}: {first_line[:70]}  {by}", flush=True)  # noqa: T201
            missed += not is_noticed
    seconds = time.monotonic() - began
    print(f"{len(BUGS) - missed} of {len(BUGS)} bugs noticed in {seconds:.0f} s")  # noqa: T201
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
