"""The exit status of `mirrorless verify` never says 0 or 1 of a comparison that did not happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from mirrorless.cli import verify as command
from mirrorless.verify.findings import DIFFERENT, IDENTICAL, NOT_COMPARED, Method, PartitionResult, VerificationResult

if TYPE_CHECKING:
    from pathlib import Path

JAVA = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Invalid master URL
\tat org.apache.spark.util.Utils$.extractHostPortFromSparkUrl(Utils.scala:1)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    written = tmp_path / "mm2.properties"
    written.write_text("clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n")
    return str(written)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError("the JVM is gone\nand more"), "error: RuntimeError: the JVM is gone"),
        (ValueError(JAVA), "error: ValueError: org.apache.spark.SparkException: Invalid master URL"),
        (KeyError(), "error: KeyError"),
        (KeyboardInterrupt(), "error: interrupted"),
    ],
)
def test_a_crash_is_one_line_and_not_compared(
    file: str, monkeypatch: pytest.MonkeyPatch, error: BaseException, line: str
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(command, "verify_flows", crash)
    ended = CliRunner().invoke(command.verify, [file])
    assert ended.exit_code == NOT_COMPARED
    assert ended.stderr.splitlines() == [line]


@pytest.mark.parametrize(("more", "status"), [(False, IDENTICAL), (True, DIFFERENT)])
def test_more_differences_than_are_shown_are_differences(*, more: bool, status: int) -> None:
    one = PartitionResult(topic="t", partition=0, remote_topic="a.t", method=Method.LATEST, different=1, more=more)
    assert VerificationResult(flow="a->b", began_ms=0, ended_ms=0, partitions=(one,)).status == status
