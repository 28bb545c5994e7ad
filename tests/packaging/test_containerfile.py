"""The image of the Containerfile: its installation steps give a `mirrorless` that runs, without Spark and without Java.

There need not be a container engine: the steps run in a new virtual environment in place of the image's Python.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from tests.support.template import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
FILE: Final = """\
clusters = primary, backup
primary.bootstrap.servers = 127.0.0.1:1
backup.bootstrap.servers = 127.0.0.1:2
primary->backup.enabled = true
"""
pytestmark = pytest.mark.timeout(600)


class Step(NamedTuple):
    """One instruction."""

    instruction: str
    arguments: str


def steps(stage: str = "mirrorless") -> Iterator[Step]:
    """Yield the instructions of a stage of the Containerfile, continued lines as one."""
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    now = ""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            instruction, _, arguments = line.partition(" ")
            if instruction == "FROM":
                arguments, _, now = arguments.partition(" AS ")
            if now == stage:
                yield Step(instruction, arguments)


def of(instruction: str, stage: str = "mirrorless") -> list[str]:
    return [step.arguments for step in steps(stage) if step.instruction == instruction]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in place of the image's root: the context's files in tmp/, its Python in venv/."""
    context, root = tmp_path_factory.mktemp("context"), tmp_path_factory.mktemp("image")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", str(ROOT), "--wheel-dir", str(context / "dist")], check=True, timeout=300
    )
    (root / "tmp").mkdir()
    venv.create(root / "venv", with_pip=True)
    path = os.pathsep.join([str(root / "venv" / "bin"), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = []
    for step in steps():
        # Everything else of the image's, such as its user, is not done here.
        if step.instruction == "COPY":
            source, target = step.arguments.split()
            command = f"cp {source} {root}{target}"
        elif step.instruction == "RUN" and step.arguments.startswith("python -m pip install "):
            command = step.arguments.replace(" /tmp/", f" {root}/tmp/")  # noqa: S108 -- the image's
        else:
            continue
        subprocess.run(["/bin/sh", "-ec", command], cwd=context, env=kept | {"PATH": path}, check=True, timeout=500)
        ran.append(step.instruction)
    assert ran == ["COPY", "RUN"]
    assert list((root / "tmp").iterdir()) == []  # the wheel is not left in the image
    return root


def run(image: Path, *arguments: str) -> str:
    (program,) = json.loads(of("ENTRYPOINT")[0])
    ended = subprocess.run(
        [image / "venv" / "bin" / program, *arguments],
        cwd=image,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_program_of_the_image_runs(image: Path) -> None:
    assert run(image, "--version") == f"mirrorless {VERSION}\n"
    assert "--available-now" in run(image, "run", "--help")
    (image / "mm2.properties").write_text(FILE)
    assert run(image, "config", "check", "mm2.properties").endswith("1 flow, 0 errors, 0 warnings\n")


def test_the_image_starts_with_a_list_of_commands(image: Path) -> None:
    (default,) = of("CMD")
    assert "verify" in run(image, *json.loads(default))


def test_the_image_has_nothing_of_spark(image: Path) -> None:
    (packages,) = (image / "venv" / "lib").glob("python*/site-packages")
    names = {path.name for path in packages.iterdir()}
    assert {"mirrorless", "boto3", "prometheus_client", "yaml"} <= names
    assert names.isdisjoint({"pyspark", "py4j", "pyarrow", "pandas", "numpy"})
    assert not any("java" in step.arguments or "jdk" in step.arguments for step in steps())


def test_the_image_is_slim_and_its_program_has_no_rights() -> None:
    (base,) = of("FROM")
    assert re.fullmatch(r"python:3\.13-slim@sha256:[0-9a-f]{64}", base)
    (user,) = of("USER")
    assert user not in ("root", "0")
    assert any(one.startswith("useradd ") and f" --uid {user} " in one for one in of("RUN"))
    instructions = [step.instruction for step in steps()]
    assert instructions.index("USER") < instructions.index("ENTRYPOINT")
    assert set(instructions[instructions.index("USER") :]).isdisjoint({"RUN", "COPY", "ADD"})


def test_the_image_with_spark_is_the_other_one_with_a_jdk() -> None:
    assert of("FROM", "spark") == ["mirrorless"]
    assert of("USER", "spark") == ["root", "10001"]
    assert "[spark]" in " ".join(of("RUN", "spark"))
    (java,) = of("FROM", "java")
    assert re.fullmatch(r"eclipse-temurin:17-jdk@sha256:[0-9a-f]{64}", java)
    assert (ROOT / "Containerfile").read_text().rstrip().endswith("FROM mirrorless")  # without a target


def test_the_context_is_the_wheel_alone() -> None:
    assert (ROOT / ".dockerignore").read_text().split() == ["*", "!dist/*.whl"]
