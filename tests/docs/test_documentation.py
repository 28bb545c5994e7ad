"""What a user can set, call or see is documented."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mirrorless
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.errors import GapKind
from mirrorless.functions.environment import CopyEnvironment, DrillEnvironment, SupervisorEnvironment
from mirrorless.metrics import METRICS
from mirrorless.rights import CONNECT
from mirrorless.settings.model import FLOW_KEYS, WORKER_KEYS
from tests.docs import llms

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

DOCS = Path(__file__).parents[2] / "docs"
VARIABLES = CopyEnvironment.model_fields | DrillEnvironment.model_fields | SupervisorEnvironment.model_fields


@pytest.mark.parametrize("key", sorted([*FLOW_KEYS, *WORKER_KEYS]))
def test_every_setting_is_in_the_configuration_page(key: str) -> None:
    assert f"`{key}`" in (DOCS / "configuration.md").read_text()


@pytest.mark.parametrize("state", [*PartitionState, "unreachable"])
def test_every_state_is_in_the_operations_page(state: str) -> None:
    assert f"| `{state}` |" in (DOCS / "operations.md").read_text()


@pytest.mark.parametrize("kind", GapKind)
def test_every_kind_of_gap_is_in_the_operations_page(kind: GapKind) -> None:
    assert f"| `{kind.name}` |" in (DOCS / "operations.md").read_text()


def test_the_rights_page_names_the_action_that_everything_needs_on_msk() -> None:
    assert f"`{CONNECT}`" in (DOCS / "rights.md").read_text()


@pytest.mark.parametrize("name", [metric.name for metric in METRICS if metric.cloudwatch])
def test_every_metric_is_emitted_by_something(name: str) -> None:
    package = Path(mirrorless.__file__).parent
    texts = [path.read_text() for path in package.rglob("*.py") if path.name != "metrics.py"]
    assert any(f'"{name}"' in text for text in texts)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in DOCS.parent.glob("functions/*/app.py")))
def test_every_function_is_in_the_functions_page(name: str) -> None:
    assert f"| `{name}` |" in (DOCS / "functions.md").read_text()


@pytest.mark.parametrize("field", VARIABLES.values(), ids=lambda field: str(field.alias))
def test_every_variable_is_in_the_functions_page(field: FieldInfo) -> None:
    assert f"| `{field.alias}` |" in (DOCS / "functions.md").read_text()


def test_the_list_for_language_models_is_current() -> None:
    assert llms.FILE.read_text(encoding="utf-8") == llms.text(), "run make reference"
