"""What a user can set or call is documented."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

import mirrorless
from mirrorless.cli import root
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.functions.environment import SupervisorEnvironment
from mirrorless.metrics import METRICS, Metric
from mirrorless.settings.load import FLOW_KEYS, WORKER_KEYS

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

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


@pytest.mark.parametrize("state", [*PartitionState, "unreachable"])
def test_every_state_is_in_the_operations_page(state: str) -> None:
    assert f"| `{state}` |" in (DOCS / "operations.md").read_text()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_is_in_the_metrics_page_as_the_list_has_it(metric: Metric) -> None:
    dimensions = "; ".join(", ".join(one) for one in metric.dimensions)
    notes = [*(["MirrorMaker 2's"] if metric.mm2 else []), *(["running total"] if metric.counts else [])]
    notes += [] if metric.cloudwatch else ["Prometheus only"]
    row = f"| `{metric.name}` | {metric.unit} | {dimensions} | {', '.join(notes)} | {metric.meaning} |"
    assert row in (DOCS / "metrics.md").read_text().splitlines()


def test_the_metrics_page_names_no_other() -> None:
    rows = [line for line in (DOCS / "metrics.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == len(METRICS)


@pytest.mark.parametrize("name", [metric.name for metric in METRICS if metric.cloudwatch])
def test_every_metric_is_emitted_by_something(name: str) -> None:
    package = Path(mirrorless.__file__).parent
    texts = [path.read_text() for path in package.rglob("*.py") if path.name != "metrics.py"]
    assert any(f'"{name}"' in text for text in texts)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in DOCS.parent.glob("functions/*/app.py")))
def test_every_function_is_in_the_functions_page(name: str) -> None:
    assert f"| `{name}` |" in (DOCS / "functions.md").read_text()


@pytest.mark.parametrize("field", SupervisorEnvironment.model_fields.values(), ids=lambda field: str(field.alias))
def test_every_variable_is_in_the_functions_page(field: FieldInfo) -> None:
    assert f"| `{field.alias}` |" in (DOCS / "functions.md").read_text()
