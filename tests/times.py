"""Seconds that each file of tests takes: added up in a run with `--times FILE`, printed by `make test-times`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Of an earlier run of everything: by these a run begins with the longest files. `make test-times KEEP=1` replaces them.
KEPT = Path(__file__).with_name("times.json")
# Shorter files of unit tests and documents are not kept: their order makes no difference.
WORTH_KEEPING_S = 3.0


def is_short(name: str) -> bool:
    """Whether a file of tests that is not kept is a short one."""
    return name.startswith(("tests/unit/", "tests/docs/"))


@dataclass(slots=True)
class Times:
    """Seconds of a file's tests, their fixtures included, and how many tests there were."""

    seconds: float = 0.0
    tests: int = 0


class Recorder:
    """Adds up the seconds of each file, and adds them to `file` in the end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun = monotonic()
        self._times: dict[str, Times] = defaultdict(Times)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a fixture or a test took; what a part of a test took is in the test's."""
        if isinstance(report, pytest.SubtestReport):
            return
        times = self._times[report.nodeid.partition("::")[0]]
        times.seconds += report.duration
        times.tests += report.when == "call" or report.skipped

    def pytest_sessionfinish(self) -> None:
        """Add this run to those that the file has."""
        earlier = read(self._file) if self._file.exists() else {}
        for name, times in self._times.items():
            before = earlier.get(name, Times())
            earlier[name] = Times(before.seconds + times.seconds, before.tests + times.tests)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write(self._file, earlier)


def read(file: Path) -> dict[str, Times]:
    """The times of a file, by the names of the files of tests."""
    return {name: Times(**times) for name, times in json.loads(file.read_text()).items()}


def write(file: Path, times: Mapping[str, Times]) -> None:
    """Write one line for each file of tests, so that a difference is readable."""
    lines = [f"{json.dumps(name)}: {json.dumps(asdict(_rounded(times[name])))}" for name in sorted(times)]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _rounded(times: Times) -> Times:
    return Times(round(times.seconds, 1), times.tests)


def table(times: Mapping[str, Times], shown: int) -> Iterable[str]:
    """Each folder's sum, then the files that take longest."""
    folders: dict[str, Times] = defaultdict(Times)
    for name, one in times.items():
        folder = folders["/".join(name.split("/")[1:-1]) or "."]
        folder.seconds += one.seconds
        folder.tests += one.tests
    yield f"{'folder':<60} {'seconds':>8} {'tests':>6}"
    yield from _rows(folders, len(folders))
    yield _row("all", Times(sum(one.seconds for one in times.values()), sum(one.tests for one in times.values())))
    yield f"\n{'file':<60} {'seconds':>8} {'tests':>6}"
    yield from _rows(times, shown)


def _rows(times: Mapping[str, Times], shown: int) -> Iterable[str]:
    longest = sorted(times, key=lambda name: times[name].seconds, reverse=True)
    return [_row(name.removeprefix("tests/"), times[name]) for name in longest[:shown]]


def _row(name: str, times: Times) -> str:
    return f"{name:<60} {times.seconds:>8.1f} {times.tests:>6}"


def main() -> None:
    """Print the table of a file; with `--keep`, keep what the order of later runs needs."""
    file = Path(sys.argv[1])
    if not file.exists():
        sys.exit(f"{file} is missing: run `make test` first")
    times = read(file)
    print("\n".join(table(times, 40)))  # noqa: T201
    if "--keep" in sys.argv[2:]:
        write(KEPT, {name: one for name, one in times.items() if one.seconds >= WORTH_KEEPING_S or not is_short(name)})


if __name__ == "__main__":
    main()
