"""Every setting says what it is, once, and the documentation says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorless.clusters.java_settings import HONOURED_COMMON_KEYS
from mirrorless.settings.client_meanings import CLIENT_MEANINGS
from mirrorless.settings.explain import Explanation, client_explanations, explanations
from mirrorless.settings.load import FLOW_KEYS, WORKER_KEYS
from mirrorless.settings.model import Flow

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
ALL = [*explanations(), *client_explanations()]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.key)
def test_a_setting_is_in_the_page_with_its_default_and_meaning(one: Explanation) -> None:
    assert one.meaning, f"the field of {one.key} has no text under it in settings/model.py"
    assert one.row in PAGE.splitlines()


def test_every_field_of_a_flow_can_be_set() -> None:
    fields = {*FLOW_KEYS.values(), *WORKER_KEYS.values(), "auto_offset_reset", "source", "target"}

    assert fields == set(Flow.model_fields)


def test_every_honoured_client_setting_is_explained() -> None:
    assert set(CLIENT_MEANINGS) >= HONOURED_COMMON_KEYS
