"""Only its own methods change a `PartitionCopy`: no other module assigns to it, or to anything that it holds."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mirrorless
from mirrorless.copy.partition import state
from mirrorless.copy.partition.state import PartitionCopy

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(mirrorless.__file__).parent
OWNER = Path(state.__file__)
FIELDS = frozenset(field.name for field in fields(PartitionCopy))


def assigned(tree: ast.AST) -> Iterator[ast.Attribute | ast.Subscript]:
    """Attributes and elements that are assigned, augmented, deleted, or the variable of a loop or a `with`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield node


def copies(tree: ast.AST) -> set[str]:
    """Names that hold a copy: `copy`, and those that are annotated as one."""
    return {"copy"} | {
        node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.annotation and ast.unparse(node.annotation).startswith("PartitionCopy")
    }


def changes(source: str) -> list[str]:
    """Assignments of a module to the state of a copy: by a name that holds one, or to a field of that name."""
    tree = ast.parse(source)
    names = copies(tree)
    found = []
    for target in assigned(tree):
        root: ast.expr = target
        path: list[str] = []
        while isinstance(root, ast.Attribute | ast.Subscript):
            path += [root.attr] if isinstance(root, ast.Attribute) else []
            root = root.value
        name = root.id if isinstance(root, ast.Name) else ""
        is_a_field = path[:1] and path[0] in FIELDS and (name != "self" or isinstance(target.value, ast.Subscript))
        if path and (name in names or is_a_field):
            found.append(f"line {target.lineno}: {ast.unparse(target)}")
    return found


def test_no_other_module_assigns_its_state() -> None:
    wrong = {
        str(path.relative_to(PACKAGE)): found
        for path in (PACKAGE / "copy").rglob("*.py")
        if path != OWNER and (found := changes(path.read_text()))
    }
    assert wrong == {}


def test_modules_elsewhere_do_not_know_it() -> None:
    elsewhere = [path for path in PACKAGE.rglob("*.py") if PACKAGE / "copy" not in path.parents]
    assert [path for path in elsewhere if "PartitionCopy" in path.read_text()] == []


@pytest.mark.parametrize(
    "line",
    [
        "copy.state = 1",
        "copy.attempts += 1",
        "del copy.error",
        "copy.skip, x = 1, 2",
        "copy.retry.attempts = 0",
        "copy.stats.gaps += 1",
        "copy.announced[3] = None",
        "self._copies[place].fetch_from = 3",
        "other.fetch_from = 3",
        "for copy.error in (): pass",
        "def change(another: PartitionCopy): another.x = 1",
    ],
)
def test_an_assignment_is_found(line: str) -> None:
    assert changes(line)


@pytest.mark.parametrize(
    "line", ["copy = 1", "self.error = 1", "lane.in_flight -= 1", "copies[place] = copy", "x = copy.error"]
)
def test_other_assignments_are_not(line: str) -> None:
    assert changes(line) == []
