"""The options of the page, and the command that serves it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from mirrorless.cli.web_port import CommandWithPort
from mirrorless.cli.web_terms import terms_of
from mirrorless.web.server import ServerTerms
from tests.support.pages import ask

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A->B.enabled = true
"""


@click.command(cls=CommandWithPort)
@click.argument("files", nargs=-1)
@click.option("--web", is_flag=True)
@click.option("--web-port", type=int, default=8480)
def show(files: tuple[str, ...], *, web: bool, web_port: int) -> None:
    """Show what was given."""
    click.echo(f"{web_port if web else None} {' '.join(files)}")


def test_the_port_may_be_left_out() -> None:
    cases: list[tuple[list[str], str]] = [
        (["f"], "None f"),
        (["f", "--web"], "8480 f"),
        (["--web", "f"], "8480 f"),
        (["--web", "9000", "f"], "9000 f"),
        (["f", "--web=0"], "0 f"),
        (["--", "f", "--web"], "None f --web"),
    ]
    assert [(arguments, CliRunner().invoke(show, arguments).output.strip()) for arguments, _ in cases] == cases


def terms(**given: str | None) -> ServerTerms:
    usual: dict[str, str | None] = {"address": "127.0.0.1", "token": None, "cert": None, "key": None}
    return terms_of(port=0, actions=False, **(usual | given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"token": "short"}, "16 characters or more"),
        ({"token": "with a blank in between"}, "printable ASCII"),
        ({"token": "ä" * 20}, "printable ASCII"),
        ({"cert": "page.pem"}, "belong together"),
        ({"key": "page.key"}, "belong together"),
    ],
)
def test_options_that_do_not_fit_together(given: dict[str, str], reason: str) -> None:
    with pytest.raises(click.UsageError, match=reason):
        terms(**given)


def test_options_that_fit_together() -> None:
    assert terms(cert="c", key="k", token="t" * 16) == ServerTerms(cert="c", key="k", token="t" * 16)


def test_the_command_serves_the_page_until_it_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    command = [sys.executable, "-m", "mirrorless", "web", str(file), "--web-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith("the page is at http://localhost:")
        port = int(line.removesuffix("/").rpartition(":")[2])
        assert ask(port, "/").body.startswith(b"<!doctype html>")
        assert ask(port, "/healthz").status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
