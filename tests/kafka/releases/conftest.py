"""One cluster of each release, shared by the tests of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.releases import Releases

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def releases() -> Iterator[Releases]:
    with Releases() as started:
        yield started
