"""Groups of commands that import a command when it is called, so that a small one need not wait for big libraries."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyGroup(click.Group):
    """Commands by name, each as the module it is in and its name there."""

    def __init__(self, *arguments: Any, commands_in: Mapping[str, tuple[str, str]], **options: Any) -> None:  # noqa: ANN401 -- click's signature
        super().__init__(*arguments, **options)
        self._commands_in = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Names of all commands."""
        return sorted(self._commands_in)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        """Import one command, None if there is none of that name."""
        if cmd_name not in self._commands_in:
            return None
        module, name = self._commands_in[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), name)
        return command
