"""What `pip install mirrorless` gives: everything but Spark, and what needs Spark says what to install."""

from __future__ import annotations

import json
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
from packaging.utils import canonicalize_name

from tests.support.pages import ask
from tests.support.template import ROOT
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILE: Final = """\
clusters = primary, backup
primary.bootstrap.servers = 127.0.0.1:1
backup.bootstrap.servers = 127.0.0.1:2
primary->backup.enabled = true
"""
ON_SPARK: Final = f"{FILE}mirrorless.engine = spark\n"
NO_ANSWER: Final = re.compile(r".*cluster primary: no answer from 127\.0\.0\.1:1: [^\n]*\n")
INSTALL: Final = re.compile(r"error: (mirrorless [a-z]+|Spark) needs [A-Za-z, ]+: pip install 'mirrorless\[spark\]'\n")


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the distributions that pip would install for these, by what is installed here."""
    found: set[str] = set()
    waiting = [Requirement(one) for one in requirements]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
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
    (folder / "spark.properties").write_text(ON_SPARK)
    return folder / "venv" / "bin" / "mirrorless"


def start(installed: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AWS_"))}
    return subprocess.Popen(
        [installed, *arguments],
        cwd=installed.parents[2],
        env=kept | {"PYTHONDONTWRITEBYTECODE": "1", "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent"} | more,
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


@pytest.mark.nightly
def test_clusters_that_do_not_answer_are_one_line(installed: Path) -> None:
    commands = ("doctor", "plan", "status", "run")
    doctor, plan, status, run = (start(installed, name, "mm2.properties") for name in commands)  # all wait at once
    out, error = doctor.communicate(timeout=120)
    assert (doctor.returncode, error) == (1, "")
    assert "127.0.0.1:1 refuses connections (Connection refused)" in out
    for process in (plan, status, run):
        out, error = process.communicate(timeout=120)
        assert process.returncode == 2
        events = {json.loads(line)["event"] for line in out.splitlines()} if process is run else set()
        assert out == "" or events == {"Waiting", "Trouble"}
        lines = [line for line in error.splitlines(keepends=True) if not line.endswith("; trying again\n")]
        assert NO_ANSWER.fullmatch(lines[0]), error


@pytest.mark.parametrize(
    "arguments", [("run", "spark.properties"), ("verify", "mm2.properties", "--with", "spark"), ("demo",)], ids=" ".join
)
def test_what_needs_spark_says_what_to_install(installed: Path, arguments: tuple[str, ...]) -> None:
    status, out, error = run(installed, *arguments)
    assert (status, out) == (2, "")
    assert INSTALL.fullmatch(error), error


def test_the_live_page_is_served_without_an_extra(installed: Path) -> None:
    process = start(installed, "web", "mm2.properties", "--port", "0")
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    port = int(line.removesuffix("/").rpartition(":")[2])
    assert [ask(port, path).status for path in ("/", "/app.js", "/api/openapi.json", "/healthz")] == [200] * 4
    process.terminate()
    out, error = process.communicate(timeout=20)
    assert (process.returncode, out, error) == (0, "", "")


def test_the_help_of_run_needs_no_spark(installed: Path) -> None:
    status, out, error = run(installed, "run", "--help")
    assert (status, error) == (0, "")
    assert "--available-now" in out


def test_a_topic_is_replicated_without_java(installed: Path, world: World, tmp_path: Path) -> None:
    topic = world.topic(partitions=3)
    fill(world.source, topic, (b"%d" % number for number in range(3_000)), partitions=3)
    here = {"PATH": str(installed.parent), "JAVA_HOME": str(tmp_path / "none")}
    process = start(installed, "run", "--available-now", str(world.file), **here)
    out, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (0, ""), out
    assert world.assert_equal(topic) == 3_000


def test_aws_is_asked_without_an_extra(installed: Path) -> None:
    line = "error: cloudformation was not asked: You must specify a region.\n"
    assert run(installed, "doctor", "--aws", "mirrorless-prod") == (2, "", line)


def test_a_configuration_in_s3_is_read_without_an_extra(installed: Path) -> None:
    status, _, error = run(installed, "plan", "s3://bucket/mm2.properties")
    assert status == 2
    assert error.endswith("s3 was not asked: Unable to locate credentials\n")
    assert error.count("\n") == 1
