"""The page of rights shows the table that the doctor goes by and the tests grant."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorless.rights import CONNECT, ROWS, Function, On, Row, Side, without_implied

PAGE = (Path(__file__).parents[2] / "docs" / "rights.md").read_text()
README = (Path(__file__).parents[2] / "README.md").read_text()


def line(row: Row) -> str:
    """A row as the page has it."""
    when = f"{row.why} ({row.when})" if row.when is not None else row.why
    actions = ", ".join(f"`{action.partition(':')[2]}`" for action in row.iam_actions)
    return f"| {row.side} | {row.on} | `{row.operation}` | {actions} | {when} |"


@pytest.mark.parametrize("function", Function)
def test_every_function_has_its_rows_and_no_others(function: Function) -> None:
    _, _, section = PAGE.partition(f"### {function}\n")
    shown = [
        text for text in section.partition("\n#")[0].splitlines() if text.startswith(tuple(f"| {s}" for s in Side))
    ]

    assert shown == [line(row) for row in ROWS if row.function is function]


def test_what_everything_needs_on_msk() -> None:
    assert f"`{CONNECT}`" in PAGE


def cell(function: Function, side: Side) -> str:
    """What a function needs on one side, as the README has it: `*` for what only some settings need."""
    rows = without_implied(row for row in ROWS if row.function is function and row.side is side and row.required)
    found: dict[On, list[str]] = {}
    for row in rows:
        found.setdefault(row.on, []).append(f"`{row.operation}`{'*' if row.when is not None else ''}")
    return "; ".join(f"{on}: {', '.join(operations)}" for on, operations in found.items())


@pytest.mark.parametrize("function", Function)
def test_the_readme_has_them_in_short(function: Function) -> None:
    assert f"| {function} | {cell(function, Side.SOURCE)} | {cell(function, Side.TARGET)} |" in README
