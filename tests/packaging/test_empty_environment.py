"""What `pip install mirrorless` gives: every command but those of an extra works, and those say what to install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from packaging.requirements import Requirement

from tests.support.template import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILE: Final = """\
clusters = primary, backup
primary.bootstrap.servers = 127.0.0.1:1
backup.bootstrap.servers = 127.0.0.1:1
primary->backup.enabled = true
"""
NO_ANSWER: Final = re.compile(r".*cluster primary: no answer from 127\.0\.0\.1:1: [^\n]*\n")
INSTALL: Final = re.compile(r"error: mirrorless [a-z]+ needs [A-Za-z ]+: pip install 'mirrorless\[run\]'\n")


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the distributions that pip would install for these, by what is installed here."""
    found: set[str] = set()
    waiting = [Requirement(one) for one in requirements]
    while waiting:
        one = waiting.pop()
        if one.name in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(one.name)
        waiting += map(Requirement, distribution(one.name).requires or ())
    return found


def top_levels(name: str) -> Iterator[tuple[str, Path]]:
    """Yield what a distribution has in the folder of packages, by name."""
    found = distribution(name)
    for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
        yield top, Path(str(found.locate_file(top)))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `mirrorless` of an environment that has the wheel and the base dependencies, and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", str(ROOT), "--wheel-dir", str(folder)], check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for name in closure(PROJECT["dependencies"]):
        for top, target in top_levels(name):
            (packages / top).symlink_to(target)
    (folder / "mm2.properties").write_text(FILE)
    return folder / "venv" / "bin" / "mirrorless"


def start(installed: Path, *arguments: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.Popen(
        [installed, *arguments],
        cwd=installed.parents[2],
        env=kept | {"PYTHONDONTWRITEBYTECODE": "1", "AWS_EC2_METADATA_DISABLED": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(installed: Path, *arguments: str) -> tuple[int, str, str]:
    process = start(installed, *arguments)
    out, error = process.communicate(timeout=120)
    return process.returncode, out, error


def test_the_version_is_one_line(installed: Path) -> None:
    assert run(installed, "--version") == (0, f"mirrorless {PROJECT['version']}\n", "")


def test_the_help_lists_every_command(installed: Path) -> None:
    status, out, error = run(installed, "--help")
    assert (status, error) == (0, "")
    assert {"config", "doctor", "plan", "run", "status", "verify"} <= set(
        re.findall(r"^  ([a-z-]+) ", out, re.MULTILINE)
    )


def test_a_configuration_is_checked(installed: Path) -> None:
    status, out, error = run(installed, "config", "check", "mm2.properties")
    assert (status, error) == (0, "")
    assert out.endswith("1 flow, 0 errors, 0 warnings\n")


def test_clusters_that_do_not_answer_are_one_line(installed: Path) -> None:
    commands = ("doctor", "plan", "status")
    doctor, plan, status = (start(installed, name, "mm2.properties") for name in commands)  # all wait at once
    out, error = doctor.communicate(timeout=120)
    assert (doctor.returncode, error) == (1, "")
    assert "127.0.0.1:1 refuses connections (Connection refused)" in out
    for process in (plan, status):
        out, error = process.communicate(timeout=120)
        assert (process.returncode, out) == (2, "")
        assert NO_ANSWER.fullmatch(error), error


@pytest.mark.parametrize(
    "arguments", [("run", "mm2.properties"), ("run", "--help"), ("verify", "mm2.properties"), ("demo",)], ids=" ".join
)
def test_a_command_of_an_extra_says_what_to_install(installed: Path, arguments: tuple[str, ...]) -> None:
    status, out, error = run(installed, *arguments)
    assert (status, out) == (2, "")
    assert INSTALL.fullmatch(error), error


def test_a_check_of_aws_says_what_to_install(installed: Path) -> None:
    line = "error: mirrorless doctor needs boto3: pip install 'mirrorless[aws]'\n"
    assert run(installed, "doctor", "--aws", "mirrorless-prod") == (2, "", line)


def test_a_configuration_in_s3_says_what_to_install(installed: Path) -> None:
    status, _, error = run(installed, "plan", "s3://bucket/mm2.properties")
    assert status == 2
    assert error.endswith("needs the package boto3: pip install 'mirrorless[aws]'\n")
    assert error.count("\n") == 1
