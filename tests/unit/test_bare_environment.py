"""What runs without Spark imports nothing of it: functions, engines other than Spark, the modules of `run`.

Nor does anything but the page import what serves it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import mirrorless

PACKAGE: Final = Path(mirrorless.__file__).parent
SPARKS: Final = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "psutil")
PAGE: Final = ("starlette", "uvicorn", "anyio")  # neither in Lambda's layer nor in the Glue environment
POWERTOOLS: Final = "aws_lambda_powertools"  # in Lambda's layer only
ENGINES: Final = sorted(
    ".".join(("mirrorless", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in (PACKAGE / "copy" / "engines").rglob("*.py")
    if "spark" not in path.relative_to(PACKAGE).parts
)
FUNCTIONS: Final = [f"mirrorless.functions.{path.stem}" for path in sorted((PACKAGE / "functions").glob("[a-z]*.py"))]
_SCRIPT: Final = """
import importlib, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"{name} must not be imported here", name=name)

sys.meta_path.insert(0, Refuse())
for module in sys.argv[2].split(","):
    importlib.import_module(module)
"""


@pytest.mark.parametrize(
    ("modules", "refused"),
    [
        (["mirrorless.cli", "mirrorless.cli.run", "mirrorless.cli.drill"], (*SPARKS, *PAGE, POWERTOOLS)),
        (["mirrorless.cli.web"], (*SPARKS, POWERTOOLS)),
        ([one for one in FUNCTIONS if one != "mirrorless.functions.powertools"], (*SPARKS, *PAGE, POWERTOOLS)),
        (["mirrorless.functions.powertools"], (*SPARKS, *PAGE)),
        (ENGINES, (*SPARKS, *PAGE, POWERTOOLS)),
    ],
    ids=["commands", "page", "functions", "powertools", "engines"],
)
def test_it_is_imported_without_spark(modules: list[str], refused: tuple[str, ...]) -> None:
    assert modules
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT, ",".join(refused), ",".join(modules)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
