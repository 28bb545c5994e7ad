"""Which lines of the copier schedules reach: `python -m tests.simulation.reached --schedules 2000 [--missing]`."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import mirrorless.copy
from tests.simulation.running import prepared, run_seed

if TYPE_CHECKING:
    from types import CodeType, FrameType

Lines = dict[str, set[int]]
COPIER = str(Path(mirrorless.copy.__file__).parent)
_NO_CODE = ("@", "def ", "async def ", "class ", "from ", "import ")


def reached(first: int, count: int) -> Lines:
    """Run schedules; returns the lines that they reach."""
    lines: Lines = defaultdict(set)

    def by_line(frame: FrameType, event: str, _: object) -> object:
        if event == "line":
            lines[frame.f_code.co_filename].add(frame.f_lineno)
        return by_line

    def by_call(frame: FrameType, _event: str, _: object) -> object:
        return by_line if frame.f_code.co_filename.startswith(COPIER) else None

    with prepared():
        sys.settrace(by_call)  # type: ignore[arg-type]
        threading.settrace(by_call)  # type: ignore[arg-type]
        try:
            for seed in range(first, first + count):
                run_seed(seed)
        finally:
            sys.settrace(None)
    return dict(lines)


def functions_lines(path: Path) -> set[int]:
    """The lines of all functions of a module, without those that are run when it is loaded."""
    found: set[int] = set()

    def take(code: CodeType, *, is_function: bool) -> None:
        if is_function:
            found.update(line for _, _, line in code.co_lines() if line and line != code.co_firstlineno)
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                take(constant, is_function=bool(constant.co_flags & 2))  # CO_NEWLOCALS: not a class

    take(compile(path.read_text(), str(path), "exec"), is_function=False)
    text = path.read_text().splitlines()
    return {line for line in found if not text[line - 1].lstrip().startswith(_NO_CODE)}


def main() -> None:
    """Run schedules side by side, and print a table by folder."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.reached")
    parser.add_argument("--schedules", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--missing", action="store_true", help="name the lines that are not reached")
    options = parser.parse_args()
    workers = os.cpu_count() or 1
    each = options.schedules // workers
    lines: Lines = defaultdict(set)
    with ProcessPoolExecutor(workers) as pool:
        for one in pool.map(reached, [options.seed + each * at for at in range(workers)], [each] * workers):
            for name, found in one.items():
                lines[name] |= found
    folders: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path in sorted(Path(COPIER).rglob("*.py")):
        wanted = functions_lines(path)
        there = wanted & lines.get(str(path), set())
        folder = str(path.parent.relative_to(COPIER))
        for name in (folder, "all"):
            folders[name][0] += len(there)
            folders[name][1] += len(wanted)
        if options.missing and len(there) < len(wanted):
            print(f"{path.relative_to(COPIER)}: {sorted(wanted - there)}")  # noqa: T201
    for name, (some, every) in folders.items():
        print(f"{name:24} {some:6} of {every:6} lines, {some * 100 // max(1, every)} %")  # noqa: T201


if __name__ == "__main__":
    main()
