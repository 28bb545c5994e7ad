"""These tests are about Spark, so every flow in them is copied by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.settings.load import ENGINE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def _by_spark() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENGINE_VARIABLE, "spark")
        yield
