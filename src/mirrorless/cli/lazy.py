"""Groups that import a command when it is called: a small command need not wait for big libraries, nor have them."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mirrorless.cli.extras import MissingExtra, missing_extra

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyGroup(click.Group):
    """Commands by name, each as the module it is in, its name there, and what it does in one line for the list.

    A command whose packages are not installed is listed, and ends with a line that says what to install.
    """

    def __init__(self, *arguments: Any, commands_in: Mapping[str, tuple[str, str, str]], **options: Any) -> None:  # noqa: ANN401 -- click's signature
        super().__init__(*arguments, **options)
        self._commands_in = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Names of all commands."""
        return sorted(self._commands_in)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them: that takes a second and more."""
        rows = [(name, self._commands_in[name][2]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; raises `UsageError` with the nearest name for one that does not exist."""
        close = difflib.get_close_matches(args[0], self._commands_in, n=1)
        if args[0] not in self._commands_in and not args[0].startswith("-") and close:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{close[0]}'?")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, None if there is none of that name."""
        if cmd_name not in self._commands_in:
            return None
        module, name, _ = self._commands_in[cmd_name]
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
