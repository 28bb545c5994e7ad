"""Which groups are waited for, and which offsets an operation commits for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.clusters.groups import Activity
from mirrorless.operations.steps import groups
from tests.support.drill_facts import flow_with, forecast

if TYPE_CHECKING:
    from mirrorless.operations.steps.context import OperationContext


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> OperationContext:
    """An operation between clusters with a group of each state."""
    listed = {activity.name: activity for activity in Activity}
    monkeypatch.setattr(groups, "list_groups", lambda _: (listed, []))
    monkeypatch.setattr(groups, "_unread", lambda _, some: dict.fromkeys(some, 1))
    monkeypatch.setattr(groups, "_committed", lambda _, some: {group: {} for group in some})
    some = SimpleNamespace(
        forward=flow_with(groups=(".*",)),
        request=SimpleNamespace(wait_groups_s=0.0),
        source=None,
        target=None,
        wants_group=lambda _: True,
        wait=lambda _: False,
        warnings=[],
    )
    return cast("OperationContext", some)


def test_groups_that_may_have_members_are_waited_for(context: OperationContext) -> None:
    assert groups._wait_for_members(context) == {"ACTIVE": 1, "UNKNOWN": 1}


def moved(context: OperationContext, **changes: object) -> dict[str, Any]:
    return groups.moves(context, [forecast(**changes)])


def test_a_group_moves_where_it_will_continue_unless_it_is_there(context: OperationContext) -> None:
    wanted = {"billing": {"a.orders": {"0": 60}}}
    assert moved(context, committed=None)["wanted"] == wanted
    assert moved(context, committed=900)["wanted"] == wanted  # set back
    found = moved(context, committed=55)
    assert (found["wanted"], found["upstream"]) == (wanted, {"billing": {"a.orders": {"0": 70}}})
    assert moved(context, committed=60)["wanted"] == {}
    assert moved(context, committed=55, continues_at=55, has_members=True)["on_target"] == ["billing"]
    assert context.warnings == []


def test_a_group_that_skips_records_is_left_and_named(context: OperationContext) -> None:
    found = moved(context, committed=63, continues_at=63, skipped=3)
    assert (found["wanted"], found["skipped"], found["read_again"]) == ({}, {"billing": 3}, {"billing": 0})
    (warning,) = context.warnings
    assert warning.startswith("group billing skips up to 3 records on b")
