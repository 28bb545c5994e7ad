"""Tables that never shorten a number: text wraps, and a table too wide for the terminal is printed row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_UNLIMITED: Final = 1 << 16
"""Columns of an output that is no terminal."""
_TEXT_WIDTH: Final = 12
"""Narrowest column of text, in characters; shorter text takes less."""
_PADDING: Final = 2


def output_console() -> Console:
    """Return a console for standard output; no line is wrapped where that is a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=_UNLIMITED)


class Listing:
    """Rows under named columns; those of `numbers` are right-aligned, and neither wrapped nor shortened."""

    def __init__(self, *columns: str, numbers: Collection[str] = (), title: str | None = None) -> None:
        self._columns = columns
        self._numbers = frozenset(numbers)
        self._title = title
        self._rows: list[Sequence[Text]] = []
        self.caption: str | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, *cells: str | Text) -> None:
        """Append a row, a cell a column; a string is shown as it is, whatever brackets it has."""
        row = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        if len(row) != len(self._columns):
            raise ValueError(f"{len(row)} cells for {len(self._columns)} columns")
        self._rows.append(row)

    def without(self, *columns: str) -> Listing:
        """Return the listing without these columns."""
        kept = [index for index, column in enumerate(self._columns) if column not in columns]
        names = [self._columns[index] for index in kept]
        narrower = Listing(*names, numbers=self._numbers.intersection(names), title=self._title)
        narrower._rows = [[row[index] for index in kept] for row in self._rows]
        narrower.caption = self.caption
        return narrower

    def fits(self, width: int) -> bool:
        """Return whether the table fits into so many characters, with text and headings wrapped and numbers whole."""
        return self._width(" ") <= width

    def _width(self, separator: str) -> int:
        """Return the least width of the table, with the headings of numbers broken at each separator."""
        needed = 1
        for index, column in enumerate(self._columns):
            cells = [row[index].plain for row in self._rows]
            if column in self._numbers:
                needed += max(map(cell_len, (*column.split(separator), *cells)))
            else:
                needed += min(max(map(cell_len, (column, *cells))), _TEXT_WIDTH)
            needed += _PADDING + 1
        return needed

    def table(self, width: int) -> Table:
        """Return the rows as a table for a window of this width in characters."""
        broken = self._width("\n") > width
        title = None if self._title is None else Text(self._title)
        table = Table(title=title, title_justify="left", caption=self.caption)
        for column in self._columns:
            if column in self._numbers:
                table.add_column(column.replace(" ", "\n") if broken else column, justify="right", no_wrap=True)
            else:
                table.add_column(column, overflow="fold")
        for row in self._rows:
            table.add_row(*row)
        return table

    def print(self, console: Console | None = None) -> None:
        """Print the table, or where it does not fit, a line for each cell and an empty line between rows."""
        console = console or output_console()
        if self.fits(console.width):
            console.print(self.table(console.width))
            return
        if self._title is not None:
            console.print(Text(self._title, style="italic"), soft_wrap=True)
        width = max(map(len, self._columns))
        for number, row in enumerate(self._rows):
            if number:
                console.print()
            for column, cell in zip(self._columns, row, strict=True):
                console.print(Text(f"{column:{width}}  ", style="bold"), cell, sep="", soft_wrap=True)
        if self.caption is not None:
            console.print(Text(self.caption, style="italic"), soft_wrap=True)
