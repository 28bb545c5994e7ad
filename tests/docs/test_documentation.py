"""What a user can set or call is documented."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from mirrorless.cli import root
from mirrorless.copy.partition import State
from mirrorless.settings.load import FLOW_KEYS, WORKER_KEYS

DOCS = Path(__file__).parents[2] / "docs"
README = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize("key", sorted([*FLOW_KEYS, *WORKER_KEYS]))
def test_every_setting_is_in_the_configuration_page(key: str) -> None:
    assert f"`{key}`" in (DOCS / "configuration.md").read_text()


@pytest.mark.parametrize("name", sorted(root.list_commands(click.Context(root))))
def test_every_command_is_in_the_readme_and_helps(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.help
    assert f"mirrorless {name}" in README.read_text()


@pytest.mark.parametrize("state", [*State, "unreachable"])
def test_every_state_is_in_the_operations_page(state: str) -> None:
    assert f"| `{state}` |" in (DOCS / "operations.md").read_text()
