"""Groups that import a command when it is called: a small command need not wait for big libraries, nor have them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mirrorless.cli.extras import MissingExtra, missing_extra

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyGroup(click.Group):
    """Commands by name, each as the module it is in and its name there.

    A command whose packages are not installed is listed, and ends with a line that says what to install.
    """

    def __init__(self, *arguments: Any, commands_in: Mapping[str, tuple[str, str]], **options: Any) -> None:  # noqa: ANN401 -- click's signature
        super().__init__(*arguments, **options)
        self._commands_in = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Names of all commands."""
        return sorted(self._commands_in)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, None if there is none of that name."""
        if cmd_name not in self._commands_in:
            return None
        module, name = self._commands_in[cmd_name]
        try:
            command: click.Command = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            missing = missing_extra(f"{ctx.command_path} {cmd_name}", error)
            if missing is None:
                raise
            return _unavailable(cmd_name, missing)
        return command

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- click's signature
        """Run the command; a package that it imports on the way may be missing too."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            missing = missing_extra(f"{ctx.command_path} {ctx.invoked_subcommand}", error)
            if missing is None:
                raise
            raise missing from None


def _unavailable(name: str, missing: MissingExtra) -> click.Command:
    def refuse() -> NoReturn:
        raise missing

    return click.Command(
        name,
        callback=refuse,
        help=f"Not available: {missing.message}.",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
