"""Tables for people; in a pipe they are as wide as they need to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table

_WIDE: Final = 240


def print_table(table: Table) -> None:
    """Print a table on stdout."""
    console = Console()
    (console if console.is_terminal else Console(width=_WIDE)).print(table)
