"""`--web [PORT]`: the former way to give the page's port, which is `--web-port` now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPTION: Final = "--web"


class CommandWithPort(click.Command):
    """A command with `--web`, after which a number is the port, as in `--web=PORT`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Make an option of its own of the port."""
        return super().parse_args(ctx, list(_with_port(args)))


def _with_port(args: Sequence[str]) -> Iterator[str]:
    is_port = False
    for number, argument in enumerate(args):
        if argument == "--":
            yield from args[number:]
            return
        follows = args[number + 1] if number + 1 < len(args) else ""
        if is_port:
            is_port = False
            yield f"{_OPTION}-port={argument}"
        elif argument.startswith(f"{_OPTION}="):
            yield from (_OPTION, f"{_OPTION}-port={argument.removeprefix(f'{_OPTION}=')}")
        else:
            yield argument
            is_port = argument == _OPTION and follows.isdigit()
