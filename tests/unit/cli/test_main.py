"""However a command ends early, it is one line on standard error and exit status 2."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click
import pytest

from mirrorless import cli
from mirrorless.cli.options import renamed
from mirrorless.cli.status_codes import COULD_NOT
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable


def ended(monkeypatch: pytest.MonkeyPatch, callback: Callable[[], object]) -> int:
    monkeypatch.setattr(cli.root, "get_command", lambda *_: click.Command("probe", callback=callback))
    monkeypatch.setattr(sys, "argv", ["mirrorless", "probe"])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return int(raised.value.code or 0)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ClusterUnavailable("no answer", cluster="A"), "error: cluster A: no answer\n"),
        (KeyboardInterrupt(), "error: interrupted\n"),
        (
            ModuleNotFoundError(name="pyspark.sql"),
            "error: mirrorless probe needs PySpark: pip install 'mirrorless[spark]'\n",
        ),
        (ModuleNotFoundError(name="pandas"), "error: mirrorless probe needs pandas: pip install 'mirrorless[spark]'\n"),
    ],
)
def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, line: str
) -> None:
    def fail() -> NoReturn:
        raise error

    assert ended(monkeypatch, fail) == COULD_NOT
    assert capsys.readouterr().err.lstrip("\n") == line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["statu"], "error: No such command 'statu'. Did you mean 'status'? (see `mirrorless --help`)\n"),
        (
            ["plan", "f", "--jsn"],
            "error: No such option '--jsn'. Did you mean '--json'? (see `mirrorless plan --help`)\n",
        ),
        (["operation"], "error: Missing argument 'FILE' (see `mirrorless operation --help`)\n"),
    ],
)
def test_a_wrong_command_line_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    monkeypatch.delenv("MIRRORLESS_CONFIG", raising=False)
    monkeypatch.setattr(sys, "argv", ["mirrorless", *arguments])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    assert raised.value.code == COULD_NOT
    assert capsys.readouterr().err == line


def test_a_module_that_no_extra_has_is_a_fault_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> NoReturn:
        raise ModuleNotFoundError(name="mirrorless.gone")

    assert ended(monkeypatch, fail) == 2


def test_a_command_that_returns_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, lambda: None) == 0


def test_a_renamed_option_warns(capsys: pytest.CaptureFixture[str]) -> None:
    assert renamed("--to", "--offset", before=5, now=None) == 5
    assert capsys.readouterr().err == (
        "warning: --to is deprecated and will be removed in the next release: use --offset\n"
    )
    assert renamed("--to", "--offset", before=None, now=7) == 7
    with pytest.raises(click.UsageError, match="--to is the former name of --offset"):
        renamed("--to", "--offset", before=5, now=7)
