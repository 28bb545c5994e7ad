"""What the copier's unit tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.fake_flow import FakeFlow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def make_flow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeFlow]]:
    """Makes flows between two clusters in memory, with topic `t` of `partitions`."""
    made: list[FakeFlow] = []

    def make(*, partitions: int = 1) -> FakeFlow:
        made.append(FakeFlow(monkeypatch, partitions=partitions))
        return made[-1]

    yield make
    for flow in made:
        flow.loop.close()


@pytest.fixture
def flow(make_flow: Callable[..., FakeFlow]) -> FakeFlow:
    """A flow with topic `t` of one partition."""
    return make_flow()
