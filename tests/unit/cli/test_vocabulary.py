"""One word for one thing in the options of all commands, and former words are accepted."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.cli.failover_plan import failover_plan
from mirrorless.cli.offsets import group as offsets
from mirrorless.cli.offsets.reset import reset
from mirrorless.cli.offsets.translate import translate
from mirrorless.cli.operation import operation
from mirrorless.cli.options import any_of
from mirrorless.cli.run import run
from mirrorless.cli.switchover import switchover
from mirrorless.cli.verify import verify
from mirrorless.cli.web import web

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.cli.lazy import LazyGroup


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from commands(child, (*path, name))


def options() -> Iterator[tuple[str, click.Option]]:
    for name, command in commands(root):
        yield from ((name, one) for one in command.params if isinstance(one, click.Option) and not one.hidden)


def test_help_shows_the_default_of_each_option_that_has_one() -> None:
    without = [
        f"{command} {option.opts[0]}"
        for command, option in options()
        if not option.is_flag and not option.multiple and option.to_info_dict()["default"] is not None
        if not option.show_default
    ]
    assert without == []


def test_one_word_for_one_thing() -> None:
    words = {one for _, option in options() for one in option.opts}
    assert words & {"--group", "--port", "--topics", "--groups", "--web-port"} == {"--topics", "--groups", "--web-port"}
    assert [command for command, option in options() if "--topic" in option.opts] == ["offsets reset"]  # one name


def test_each_command_about_flows_can_be_limited_to_one() -> None:
    found = {command for command, option in options() if "--flow" in option.opts}
    assert found >= {"apply", "consume", "doctor", "drill", "pause", "plan", "resume", "run", "status", "verify", "web"}


@pytest.mark.parametrize(
    ("command", "arguments", "name", "value"),
    [
        (verify, ["f", "--topic", "a,b"], "topics", "a,b"),
        (switchover, ["f", "--to", "b", "--topic", "a", "--group", "g"], "groups", "g"),
        (failover_plan, ["f", "--to", "b", "--group", "g.*"], "groups", "g.*"),
        (translate, ["f", "--from", "a", "--group", "g"], "groups", "g"),
        (reset, ["f", "--topics", "t"], "topic", "t"),
        (web, ["f", "--port", "0"], "web_port", 0),
        (web, ["f"], "web_port", 8480),
        (run, ["f", "--web", "9000"], "web_port", 9000),
        (run, ["f", "--web=9000"], "web_port", 9000),
        (run, ["f", "--web"], "web_port", 8480),
    ],
)
def test_former_words_are_accepted(command: click.Command, arguments: list[str], name: str, value: object) -> None:
    assert command.make_context("x", arguments).params[name] == value


def test_patterns_are_a_list_everywhere() -> None:
    found = any_of("billing, (?i)audit.*")
    assert [bool(found.fullmatch(name)) for name in ("billing", "AUDIT-1", "Billing", "other")] == [
        True,
        True,
        False,
        False,
    ]
    refused = CliRunner().invoke(failover_plan, ["f", "--to", "b", "--groups", "("])
    assert (refused.exit_code, "--groups" in refused.output) == (2, True)


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (("FILE",), None),
        (("show", "FILE"), None),
        (("FILE", "show"), None),
        (("show",), "FILE"),
        ((), "FILE"),
    ],
)
def test_the_words_of_an_operation_are_no_files(
    words: tuple[str, ...], variable: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`operation continue` was read as a file called continue, also where a variable has the file."""
    file = tmp_path / "no.properties"
    monkeypatch.delenv("MIRRORLESS_CONFIG", raising=False)
    if variable:
        monkeypatch.setenv("MIRRORLESS_CONFIG", str(file))
    result = CliRunner().invoke(operation, [str(file) if word == "FILE" else word for word in words])
    assert str(result.exception).startswith(f"{file}: cannot be read")


def test_an_operation_without_a_file() -> None:
    runner = CliRunner(env={"MIRRORLESS_CONFIG": None})
    assert "Missing argument 'FILE'" in runner.invoke(operation, ["continue"]).output
    assert "contine is not one of show, continue" in runner.invoke(operation, ["f", "contine"]).output


@pytest.mark.parametrize("group", [root, offsets], ids=["mirrorless", "offsets"])
def test_the_list_of_commands_has_their_own_first_lines(group: LazyGroup) -> None:
    """It is written without importing the commands."""
    context = click.Context(group)
    for name, (_, _, summary) in group._commands_in.items():
        command = group.get_command(context, name)
        assert command is not None
        assert (name, command.get_short_help_str(1_000)) == (name, summary)


def test_the_list_of_commands_imports_none() -> None:
    code = "import sys, mirrorless.cli as c; c.root.main(['--help'], standalone_mode=False); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Move applications to another cluster as planned." in done.stdout
    assert "mirrorless.cli.switchover" not in done.stdout


def test_a_misspelt_command_gets_the_nearest_one() -> None:
    assert "Did you mean 'status'?" in CliRunner().invoke(root, ["statu"]).output
    assert "did you mean continue?" in CliRunner().invoke(operation, ["f", "contine"]).output
