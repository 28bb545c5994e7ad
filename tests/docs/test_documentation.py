"""What a user can set, call or see is documented."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import mirrorless
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.errors import GapKind
from mirrorless.functions.environment import CopyEnvironment, DrillEnvironment, SupervisorEnvironment
from mirrorless.metrics import METRICS
from mirrorless.rights import CONNECT
from mirrorless.settings.model import FLOW_KEYS, WORKER_KEYS
from tests.docs import llms

if TYPE_CHECKING:
    from collections.abc import Iterable

DOCS = Path(__file__).parents[2] / "docs"
VARIABLES = CopyEnvironment.model_fields | DrillEnvironment.model_fields | SupervisorEnvironment.model_fields


def missing(page: str, texts: Iterable[str]) -> list[str]:
    """Return the texts that a page does not have."""
    page = (DOCS / page).read_text(encoding="utf-8")
    return [text for text in texts if text not in page]


def test_every_setting_is_in_the_configuration_page() -> None:
    assert missing("configuration.md", [f"`{key}`" for key in (*FLOW_KEYS, *WORKER_KEYS)]) == []


def test_every_state_and_every_kind_of_gap_is_in_the_operations_page() -> None:
    names = [*PartitionState, "unreachable", *(kind.name for kind in GapKind)]
    assert missing("operations.md", [f"| `{name}` |" for name in names]) == []


def test_the_rights_page_names_the_action_that_everything_needs_on_msk() -> None:
    assert f"`{CONNECT}`" in (DOCS / "rights.md").read_text()


def test_every_metric_is_emitted_by_something() -> None:
    package = Path(mirrorless.__file__).parent
    texts = [path.read_text() for path in package.rglob("*.py") if path.name != "metrics.py"]
    names = [metric.name for metric in METRICS if metric.cloudwatch]
    assert [name for name in names if not any(f'"{name}"' in text for text in texts)] == []


def test_every_function_and_every_variable_is_in_the_functions_page() -> None:
    names = [path.parent.name for path in sorted(DOCS.parent.glob("functions/*/app.py"))]
    names += [str(field.alias) for field in VARIABLES.values()]
    assert missing("functions.md", [f"| `{name}` |" for name in names]) == []


def test_the_list_for_language_models_is_current() -> None:
    assert llms.FILE.read_text(encoding="utf-8") == llms.text(), "run make reference"
