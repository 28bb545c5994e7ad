"""Messages in the code are written in plain technical English, as documents are (`tests/docs/test_words.py`)."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.banned_words import INSTEAD, found_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path.relative_to(ROOT) for folder in ("src", "functions", "glue_jobs") for path in (ROOT / folder).rglob("*.py")
)
TEMPLATES = sorted(path.relative_to(ROOT) for path in (ROOT / "infra").glob("*.yaml"))

SHORTEST = 12
"""A shorter text, or one without a blank, is a key or an identifier."""


def texts_of(script: str) -> Iterator[tuple[int, str]]:
    """Yield the messages of a script, the first lines of its docstrings and the descriptions of fields, with lines."""
    tree = ast.parse(script)
    docstrings, parts = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body[:1]:
                case [ast.Expr(value=ast.Constant() as docstring)]:
                    docstrings.add(docstring)
        elif isinstance(node, ast.JoinedStr):
            parts.update(node.values)
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            text = node.value.strip().partition("\n")[0] if node in docstrings else node.value
        if len(text) >= SHORTEST and " " in text.strip():
            yield getattr(node, "lineno", 0), text


def complaints(file: Path, texts: Iterable[tuple[int, str]]) -> list[str]:
    """Return each banned phrase with its line and what to write instead."""
    return [f"{file}:{line}: {phrase} (write: {INSTEAD[phrase]})" for line, text in texts for phrase in found_in(text)]


def test_scripts_have_no_banned_words() -> None:
    assert SCRIPTS
    assert [one for script in SCRIPTS for one in complaints(script, texts_of((ROOT / script).read_text()))] == []


def test_templates_have_no_banned_words() -> None:
    assert TEMPLATES
    lines = {template: enumerate((ROOT / template).read_text().splitlines(), start=1) for template in TEMPLATES}
    assert [one for template, numbered in lines.items() for one in complaints(template, numbered)] == []


def test_messages_first_lines_and_descriptions_are_read_but_not_names() -> None:
    script = '''"""A module that goes on.

It may do so anew.
"""
whoever = f"partition {1} went on at offset {2}"
"""Whoever reads this value."""
names = {"goes_on": "anew"}
'''
    assert {line: found_in(text) for line, text in texts_of(script)} == {1: ["goes on"], 5: ["went on"], 6: ["whoever"]}
