"""One name is one option in every command: the same type, the same meaning, the same help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
import pytest
from click.testing import CliRunner

from mirrorless.cli import root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WITHOUT_JSON: Final = {
    "mirrorless archive restore",
    "mirrorless archive serve",
    "mirrorless archive write",
    "mirrorless completion",
    *("mirrorless config convert", "mirrorless demo", "mirrorless kafka up", "mirrorless run", "mirrorless web"),
}
"""They print as they go, for people or a log, or a configuration file; the page has all of it as JSON."""


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS: Final = dict(commands(root, "mirrorless"))


def options(command: click.Command) -> Iterator[click.Option]:
    yield from (one for one in command.params if isinstance(one, click.Option) and not one.hidden)


def test_an_option_name_has_one_type_and_one_help_text() -> None:
    seen: dict[str, tuple[str, tuple[object, ...]]] = {}
    for path, command in COMMANDS.items():
        for option in options(command):
            kind = (type(option.type), option.type.name, option.is_flag, option.multiple, option.metavar, option.help)
            for name in option.opts:
                first, expected = seen.setdefault(name, (path, kind))
                assert kind == expected, f"{name} of {path} is not {name} of {first}"


def test_a_parameter_name_is_the_option_it_is_called_by() -> None:
    names: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for option in options(command):
            names.setdefault(option.opts[0], set()).add(option.name or "")
    assert {name: found for name, found in names.items() if len(found) != 1} == {}


def test_json_is_a_flag_wherever_facts_are_printed() -> None:
    flags = {
        path: [one.is_flag for one in options(command) if "--json" in one.opts] for path, command in COMMANDS.items()
    }
    assert flags == {path: [] if path in WITHOUT_JSON else [True] for path in COMMANDS}


def test_every_command_and_option_has_a_help_text() -> None:
    first = {path: (command.help or "").partition("\n\n")[0] for path, command in COMMANDS.items()}
    assert [path for path, line in first.items() if not line.endswith(".")] == []
    assert [path for path, line in first.items() if len(line) > 62] == [], "it is cut in the list of commands"
    assert [(path, one.name) for path, command in COMMANDS.items() for one in options(command) if not one.help] == []


def test_the_help_of_a_command_that_can_find_something_names_its_exit_statuses() -> None:
    without = {
        path.removeprefix("mirrorless ") for path, one in COMMANDS.items() if "Exit status 0: " not in (one.help or "")
    }
    assert without == {"config explain", "consume", "kafka up", "offsets reset", "offsets show", "pause", "resume"}


@pytest.mark.parametrize("command", ["switchover", "failover", "failback"])
def test_an_alias_that_no_flow_leads_to_is_refused_before_it_is_confirmed(tmp_path: Path, command: str) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n")
    result = CliRunner().invoke(root, [command, str(file), "--to", "bb"])

    assert str(result.exception) == f"{file}: no enabled flow has the target bb; targets: b"
