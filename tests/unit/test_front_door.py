"""What somebody new meets first: metadata, licence, workflows and hooks agree with the Makefile and with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from mirrorless.cli.extras import EXTRAS

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS: Final = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
OF_THE_RUNNER: Final = {"cosign", "gh", "mkdir"}
PYTHONS: Final = ["3.11", "3.12", "3.13"]


def jobs(workflow: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return found


def commands(workflow: Path) -> list[str]:
    steps = [step for job in jobs(workflow).values() for step in job["steps"]]
    return [line for step in steps for line in step.get("run", "").splitlines()]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^a-z0-9-]", one.lower())[0] for one in requirements}


def test_there_are_four_workflows() -> None:
    assert [one.stem for one in WORKFLOWS] == ["check", "nightly", "release", "test"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_digest(workflow: Path) -> None:
    used = [step["uses"] for job in jobs(workflow).values() for step in job["steps"] if "uses" in step]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_the_repository_has(workflow: Path) -> None:
    assert commands(workflow)
    for command in commands(workflow):
        program, *arguments = command.split()
        if program == "make":
            assert {one for one in arguments if re.fullmatch(r"[a-z-]+", one)} <= TARGETS
        elif program not in OF_THE_RUNNER:
            assert (ROOT / program).stat().st_mode & 0o100, f"{program} cannot be executed"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_more_rights_than_it_needs(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] for job in jobs(workflow).values())


def test_every_supported_python_is_checked_and_declared() -> None:
    assert jobs(ROOT / ".github" / "workflows" / "check.yml")["check"]["strategy"]["matrix"]["python"] == PYTHONS
    classifier = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    assert [found[1] for one in PROJECT["classifiers"] if (found := classifier.fullmatch(one))] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_hooks_run_the_tools_of_the_makefile() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [one["entry"].split()[:2] for one in repository["hooks"]]
    assert [Path(program).name for program, *_ in entries] == ["ruff", "ruff", "mypy"]


@pytest.mark.parametrize("name", ["bug.md", "feature.md"])
def test_an_issue_template_has_what_the_forge_reads(name: str) -> None:
    _, head, body = (ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text().split("---\n", 2)
    assert {"name", "about", "labels"} == yaml.safe_load(head).keys()
    assert body.strip()


def test_licence_and_types_are_declared() -> None:
    assert "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text()
    assert (PROJECT["license"], PROJECT["license-files"]) == ("Apache-2.0", ["LICENSE", "NOTICE"])
    assert (ROOT / "src" / "mirrorless" / "py.typed").exists()


def test_a_missing_module_is_in_the_extra_that_its_error_names() -> None:
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    for module, found in EXTRAS.items():
        assert module in names(extras[found.extra])


def test_what_is_installed_without_an_extra_has_nothing_of_spark() -> None:
    base = names(PROJECT["dependencies"])
    assert base.isdisjoint({"pyspark", "py4j", "pyarrow", "pandas", "numpy", "psutil", "aws-lambda-powertools"})
    assert {"boto3", "aws-msk-iam-sasl-signer-python", "cryptography", "pyyaml", "prometheus-client"} <= base


@pytest.mark.parametrize("name", ["functions", "glue"])
def test_what_is_shipped_to_aws_lacks_the_command_lines_own_packages(name: str) -> None:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line}
    assert pinned.isdisjoint({"rich", "pygments", "markdown-it-py", "mdurl", "prometheus-client", "psutil"})
    assert {"confluent-kafka", "kafka-python", "pydantic", "pyyaml"} <= pinned
