"""The build as `make build` does it, once for all tests of it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from infra.jars import SETS

from mirrorless.local.jars import class_path
from tests.support.template import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOOLS = ROOT / ".venv-sam" / "bin"


@pytest.fixture(scope="session")
def tool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program of `.venv-sam` (`make build-tools`) in the repository; what it says comes back."""

    def run(name: str, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        assert (TOOLS / name).exists(), f"{TOOLS / name} is missing: make build-tools"
        return subprocess.run(
            [TOOLS / name, *arguments],
            cwd=ROOT,
            env=os.environ | {"SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "eu-central-1", **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    return run


@pytest.fixture(scope="session")
def built(tool: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that `sam build` fills, for Lambda's and Glue's platforms."""
    folder = tmp_path_factory.mktemp("built")
    for jars in SETS:
        class_path(jars)
    ended = tool("sam", "build", "--build-dir", folder, PYTHON=sys.executable)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="session")
def native_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the layer's packages for this very platform and Python."""
    folder = tmp_path_factory.mktemp("native")
    ended = subprocess.run(
        ["make", "--makefile", "infra/Makefile", "build-Library", "NATIVE=1"],  # noqa: S607
        cwd=ROOT,
        env=os.environ | {"ARTIFACTS_DIR": str(folder), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    return folder / "python"
