"""A run of the Glue job fails whenever something could not be compared, whatever differs besides."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from mirrorless.verify import comparison
from mirrorless.verify.findings import NOT_COMPARED, Difference, DifferenceKind, VerificationResult

if TYPE_CHECKING:
    from mirrorless.verify.comparison import ComparedWindow

JOB = Path(__file__).parents[3] / "glue_jobs" / "verify_copy.py"
DIFFERENCE = Difference(kind=DifferenceKind.CONFIG, topic="t", remote_topic="a.t")


class _Builder:
    def appName(self, name: str) -> _Builder:  # noqa: ARG002, N802 -- Spark's
        return self

    def getOrCreate(self) -> None:  # noqa: N802
        return None


@pytest.mark.parametrize(
    ("differences", "troubles", "status"),
    [
        ((), (), None),
        ((DIFFERENCE,), (), None),
        ((), ("no answer",), NOT_COMPARED),
        ((DIFFERENCE,), ("no answer",), NOT_COMPARED),
    ],
)
def test_its_exit_status(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    differences: tuple[Difference, ...],
    troubles: tuple[str, ...],
    status: int | None,
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n")
    verdict = VerificationResult(flow="a->b", began_ms=0, ended_ms=0, differences=differences, troubles=troubles)

    def verified(*_: object, **__: object) -> tuple[VerificationResult, list[ComparedWindow]]:
        return verdict, []

    monkeypatch.setattr(comparison, "verify_flow", verified)
    monkeypatch.setattr(SparkSession, "builder", _Builder())
    monkeypatch.setattr(sys, "argv", ["verify", "--MIRRORLESS_CONFIG", str(file), "--MIRRORLESS_FLOW", "a->b"])
    ended: object = None
    try:
        runpy.run_path(str(JOB), run_name="__main__")
    except SystemExit as left:
        ended = left.code
    assert ended == status
