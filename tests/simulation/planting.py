"""Plants a known fault in a copy of the product, and runs schedules against it: each has to be found.

`python -m tests.simulation.planting [--schedules N] [NAME ...]` searches, and writes the first seed that finds each to
planted/seeds.json; the tests run that seed only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent / "planted"
ROOT = Path(__file__).parents[2]
_FAILED = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)


def planted(name: str, folder: Path) -> dict[str, str]:
    """Copy the product to a folder with a fault in it; returns the environment in which that one is imported."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    patch = FOLDER / f"{name}.patch"
    subprocess.run(["git", "apply", str(patch)], cwd=folder, check=True, capture_output=True)  # noqa: S607
    return os.environ | {"PYTHONPATH": f"{folder / 'src'}:{ROOT}", "PYTHONHASHSEED": "0"}


def search(name: str, *, first: int, schedules: int) -> tuple[int, str] | None:
    """Run schedules with a planted fault until one fails; returns its seed and what it showed.

    Those in the folder `operations` are searched with schedules of operations.
    """
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = planted(name, folder)
        of = name.rpartition("/")[0] or "copy"
        arguments = ["--of", of, "--first-failure", "--seed", str(first), "--schedules", str(schedules)]
        ended = subprocess.run(
            [sys.executable, "-m", "tests.simulation", *arguments],
            cwd=folder,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
    found = _FAILED.search(ended.stdout)
    if found is None and ended.returncode != 0:
        raise AssertionError(ended.stdout + ended.stderr)
    return None if found is None else (int(found[1]), found[2])


def names() -> list[str]:
    """The planted faults."""
    return sorted(str(one.relative_to(FOLDER).with_suffix("")) for one in FOLDER.rglob("*.patch"))


def seeds() -> dict[str, int]:
    """The seed that found each, from the file of its folder."""
    found: dict[str, int] = {}
    for file in sorted(FOLDER.rglob("seeds.json")):
        of = file.parent.relative_to(FOLDER)
        found |= {str(of / name): seed for name, seed in json.loads(file.read_text()).items()}
    return found


def store(name: str, seed: int) -> None:
    """Write the seed that found a fault to the file of its folder."""
    file = (FOLDER / name).parent / "seeds.json"
    known: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | {Path(name).name: seed}, indent=2, sort_keys=True) + "\n")


def main() -> None:
    """Search for all planted faults, or for some."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planting")
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    missed = []
    for name in options.names or names():
        began = time.monotonic()
        found = search(name, first=0, schedules=options.schedules)
        seconds = time.monotonic() - began
        if found is None:
            missed.append(name)
            print(f"{name}: not found in {options.schedules} schedules, {seconds:.0f} s", flush=True)  # noqa: T201
            continue
        seed, text = found
        print(f"{name}: seed {seed}, {seconds:.0f} s: {text[:150]}", flush=True)  # noqa: T201
        store(name, seed)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
