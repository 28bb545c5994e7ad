"""The record of what copies a flow."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mirrorless.progress.engine_choice import EngineChoice

LEAST = EngineChoice(engine="spark", since_ms=5, reason="the lag has grown for 5 minutes")
FULL = EngineChoice(
    engine="functions",
    since_ms=1_700_000_000_000,
    reason="Aufholjagd über 7 GB",
    lag_bytes=7,
    looked_ms=8,
    silent_since_ms=9,
    silent_ms=14,
    behind_since_ms=10,
    growing_since_ms=11,
    caught_up_since_ms=12,
    functions_bytes_per_s=13.0,
)


@pytest.mark.parametrize("choice", [LEAST, FULL, replace(FULL, behind_since_ms=None)])
def test_what_is_written_is_read(choice: EngineChoice) -> None:
    assert EngineChoice.parse(json.loads(choice.to_json())) == choice


def test_a_record_of_an_earlier_version_has_less() -> None:
    assert EngineChoice.parse({"engine": "spark", "sinceMs": 5, "reason": LEAST.reason}) == LEAST


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": "connect"},
        {"engine": None},
        {"engine": ["spark"]},
        {"sinceMs": None},
        {"sinceMs": "soon"},
        {"lagBytes": [1]},
        {"functionsBytesPerSecond": "fast"},
    ],
)
def test_a_malformed_record_is_no_choice(wrong: dict[str, Any]) -> None:
    assert EngineChoice.parse(json.loads(FULL.to_json()) | wrong) is None
    assert EngineChoice.parse({}) is None
