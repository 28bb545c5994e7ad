"""Every setting says what it is, once, and the documentation says the same."""

from __future__ import annotations

import ast
from pathlib import Path

from mirrorless import settings
from mirrorless.clusters.java_settings import HONOURED_COMMON_KEYS
from mirrorless.settings.client_meanings import CLIENT_MEANINGS
from mirrorless.settings.explain import client_explanations, explanations
from mirrorless.settings.model import FLOW_KEYS, SOURCE_CLIENT_KEYS, WORKER_KEYS, Flow

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
ALL = [*explanations(), *client_explanations()]


def test_settings_are_in_the_page_with_their_defaults_and_meanings() -> None:
    assert [one.key for one in ALL if not one.meaning] == [], "no text under the field in settings/model.py"
    rows = PAGE.splitlines()
    assert [one.row for one in ALL if one.row not in rows] == []


def test_every_field_of_a_flow_can_be_set_by_a_key_of_its_own() -> None:
    keys = [*FLOW_KEYS, *WORKER_KEYS, *SOURCE_CLIENT_KEYS]
    assert len(set(keys)) == len(keys)
    fields = {*FLOW_KEYS.values(), *WORKER_KEYS.values(), *SOURCE_CLIENT_KEYS.values()}
    assert {"source", "target", *fields} == set(Flow.model_fields)


def test_no_other_module_of_the_settings_declares_which_field_a_key_sets() -> None:
    """A key with words in another order than its field's stands beside the field in the model only."""
    fields = {*FLOW_KEYS.values(), *WORKER_KEYS.values(), *SOURCE_CLIENT_KEYS.values()} - {"topics", "groups"}
    for module in Path(settings.__file__).parent.glob("*.py"):
        if module.name not in ("model.py", "migrator.py"):  # the latter has fields of another tool
            strings = {node.value for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Constant)}
            assert not fields & strings, module.name


def test_every_honoured_client_setting_is_explained() -> None:
    assert set(CLIENT_MEANINGS) >= HONOURED_COMMON_KEYS
