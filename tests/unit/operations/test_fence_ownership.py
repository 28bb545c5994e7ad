"""A fence that was changed by a process which did not own the operation any more is as the logs say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from mirrorless.operations.fences import settle


@dataclass
class Fence:
    """The topics of a cluster that have the fence; `meanwhile` happens when it is removed."""

    up: set[str]
    meanwhile: list[set[str]] = field(default_factory=list)
    explained: set[str] = field(default_factory=set)

    def plan(self, topics: object) -> dict[str, Any]:
        raise NotImplementedError

    def apply(self, planned: dict[str, Any]) -> None:
        self.up |= planned["before"].keys()

    def remove(self, planned: dict[str, Any]) -> None:
        self.up -= planned["before"].keys()
        if self.meanwhile:
            self.explained = self.meanwhile.pop()

    def unseen(self, planned: dict[str, Any]) -> list[str]:
        raise NotImplementedError

    def left(self, planned: dict[str, Any]) -> list[str]:
        raise NotImplementedError


PLANNED = {"before": {"t": None, "u": "1000"}}


@pytest.mark.parametrize("up", [set(), {"t", "u"}])
@pytest.mark.parametrize("explained", [set(), {"t"}, {"t", "u"}, {"t", "u", "of another operation"}])
def test_what_no_operation_fences_is_opened_and_the_rest_is_fenced(up: set[str], explained: set[str]) -> None:
    fence = Fence(set(up))
    settle(fence, PLANNED, lambda: explained)
    assert fence.up == explained & {"t", "u"}


def test_an_operation_that_begins_meanwhile_keeps_its_fence() -> None:
    fence = Fence({"t", "u"}, meanwhile=[{"u"}])
    settle(fence, PLANNED, lambda: fence.explained)
    assert fence.up == {"u"}
