"""`mirrorless verify --json` is a flag, files are written by `--output`; the former spellings warn in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from mirrorless.cli import verify as command
from mirrorless.verify.findings import VerificationResult

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.verify.comparison import ComparedWindow

FILE = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n"
DEPRECATED = "is deprecated and will be removed in the next release: use"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found: list[tuple[VerificationResult, list[ComparedWindow]]] = [
        (VerificationResult(flow="a->b", began_ms=0, ended_ms=0), [])
    ]
    monkeypatch.setattr(command, "verify_flows", lambda *_, **__: found)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mm2.properties").write_text(FILE)
    return tmp_path


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(command.verify, arguments)


def flow_of(text: str) -> str:
    (flow,) = json.loads(text)["flows"]
    return str(flow["flow"])


def test_json_is_one_document_and_nothing_else() -> None:
    for arguments in (("--json", "mm2.properties"), ("mm2.properties", "--json", "--repair-plan")):
        result = verify(*arguments)
        assert (result.exit_code, result.stderr) == (0, "")
        assert flow_of(result.stdout) == "a->b"
    assert json.loads(result.stdout)["flows"][0]["repair"] == []


def test_the_suffix_of_a_file_says_what_is_written(folder: Path) -> None:
    result = verify("mm2.properties", "--output", "r.json", "--output", "r.html", "--output", "r.parquet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("a->b: identical")
    assert flow_of((folder / "r.json").read_text()) == "a->b"
    assert (folder / "r.html").read_text().startswith("<!doctype html>")
    assert (folder / "r.parquet" / "windows.parquet").exists()


def test_another_suffix_is_refused_before_anything_is_compared() -> None:
    result = verify("mm2.properties", "--output", "r.txt")
    assert result.exit_code == 2
    assert "r.txt: must end in .json, .html, .parquet" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("mm2.properties", "--json", "r.json"),
        ("--json", "r.json", "mm2.properties"),
        ("mm2.properties", "--json=r.json"),
    ],
)
def test_the_former_json_file_is_still_written(folder: Path, arguments: tuple[str, ...]) -> None:
    result = verify(*arguments)
    assert result.exit_code == 0
    assert result.stderr == f"warning: --json FILE {DEPRECATED} --output FILE.json\n"
    assert result.stdout.startswith("a->b: identical")
    assert flow_of((folder / "r.json").read_text()) == "a->b"
    assert (folder / "mm2.properties").read_text() == FILE


def test_a_dash_for_the_former_json_file_is_standard_output() -> None:
    result = verify("mm2.properties", "--json", "-")
    assert result.stderr == f"warning: --json FILE {DEPRECATED} --json without a value\n"
    assert flow_of(result.stdout) == "a->b"


def test_the_former_html_and_parquet_are_still_written(folder: Path) -> None:
    result = verify("mm2.properties", "--html", "page", "--parquet", "tables")
    assert result.stderr.splitlines() == [
        f"warning: --html {DEPRECATED} --output FILE.html",
        f"warning: --parquet {DEPRECATED} --output FILE.parquet",
    ]
    assert (folder / "page").read_text().startswith("<!doctype html>")
    assert (folder / "tables" / "partitions.parquet").exists()


def test_a_second_file_is_no_report(folder: Path) -> None:
    result = verify("mm2.properties", "other.properties")
    assert result.exit_code == 2
    assert "unexpected extra argument" in result.stderr
