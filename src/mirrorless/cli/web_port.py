"""`--web [PORT]`: an option whose value may be left out, also before an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFAULT_PORT: Final = 8480
_OPTION: Final = "--web"


class CommandWithPort(click.Command):
    """A command with `--web [PORT]`: what follows it is its value only if it is a number."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give the option its default where no port follows."""
        return super().parse_args(ctx, list(_with_port(args)))


def _with_port(args: Sequence[str]) -> Iterator[str]:
    for number, argument in enumerate(args):
        yield argument
        if argument == "--":
            yield from args[number + 1 :]
            return
        follows = args[number + 1] if number + 1 < len(args) else ""
        if argument == _OPTION and not follows.isdigit():
            yield str(DEFAULT_PORT)
