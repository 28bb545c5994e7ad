"""Offsets of groups that a process changes which lost the operation meanwhile are set as the logs say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.clusters.groups import Committed
from mirrorless.operation_log.records import (
    OperationKind,
    Operations,
    OperationState,
    Request,
    StepRecord,
    StepState,
)
from mirrorless.operations.steps import groups
from mirrorless.operations.steps.context import OwnershipLost
from tests.support.drill_facts import flow_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mirrorless.operations.steps.context import OperationContext

PLACE = ("t", 0)


class Cluster:
    """The offset of group g in t-0 on the target, None if the group is not there; `suspended` is before each change."""

    def __init__(self, offset: int | None) -> None:
        self.offset = offset
        self.suspended: Callable[[], None] = lambda: None
        self.shortened: list[str] = []

    def committed(self, some: Iterable[str]) -> Iterator[tuple[str, dict[tuple[str, int], Committed]]]:
        assert list(some) == ["g"]
        yield "g", {} if self.offset is None else {PLACE: Committed(self.offset, "")}

    def commit(self, wanted: Mapping[str, Mapping[tuple[str, int], Committed]]) -> dict[str, dict[str, None]]:
        if wanted:
            self.suspended()
            self.offset = wanted["g"][PLACE].offset
        return {}

    def delete(self, *_: object) -> list[str]:
        self.suspended()
        self.offset = None
        return []

    def delete_groups(self, some: Iterable[str]) -> list[str]:
        if list(some):
            self.delete()
        return []

    def close(self) -> None:
        """Nothing is open."""


class World:
    """Operation 1 moves the group to 60, from `before`; another process owns it once `lost`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, before: int | None, at: int | None) -> None:
        self.cluster = Cluster(at)
        monkeypatch.setattr(groups, "GroupOffsets", lambda _: self.cluster)
        self.data = _data(60, before)
        self.operations = Operations()
        self.lost = False
        self.logs(1, self.data)
        self.context = cast(
            "OperationContext",
            SimpleNamespace(
                forward=flow_with(emit_checkpoints_enabled=False),
                request=self.operations.by_id["1"].request,
                operation=self.operations.by_id["1"],
                check=self.check,
                logged=lambda: self.operations,
                warnings=[],
            ),
        )

    def check(self) -> None:
        if self.lost:
            raise OwnershipLost("lost")

    def logs(self, number: int, data: dict[str, Any], *, state: StepState = StepState.DONE, target: str = "b") -> None:
        request = Request(kind=OperationKind.SWITCHOVER, source="a" if target == "b" else "b", target=target)
        operation = OperationState(id=str(number), request=request, created_ms=0, number=number)
        operation.steps["groups"] = StepRecord(state=state, began_ms=0, data=data)
        self.operations.by_id[str(number)] = operation

    def while_suspended(self, happens: Callable[[], None]) -> None:
        """Another process takes the operation before the first change, and does something."""

        def once() -> None:
            self.cluster.suspended = lambda: None
            self.lost = True
            happens()

        self.cluster.suspended = once

    def undone(self) -> None:
        """Another process aborts operation 1."""
        self.logs(1, self.data, state=StepState.UNDONE)


def _data(wanted: int, before: int | None) -> dict[str, Any]:
    return {
        "wanted": {"g": {"t": {"0": wanted}}},
        "before": {"g": {} if before is None else {"t": {"0": before}}},
        "created": ["g"] if before is None else [],
    }


@pytest.mark.parametrize("before", [None, 10])
def test_a_late_commit_is_undone_as_its_operation(monkeypatch: pytest.MonkeyPatch, before: int | None) -> None:
    world = World(monkeypatch, before=before, at=before)
    world.while_suspended(world.undone)
    with pytest.raises(OwnershipLost):
        groups.GroupsStep().act(world.context, world.data)
    assert world.cluster.offset == before


@pytest.mark.parametrize("before", [None, 10])
def test_a_late_commit_gives_way_to_that_of_a_later_operation(
    monkeypatch: pytest.MonkeyPatch, before: int | None
) -> None:
    world = World(monkeypatch, before=before, at=before)

    def moved_again() -> None:
        world.undone()
        world.logs(2, _data(70, before))
        world.logs(3, _data(5, None), target="a")  # on the other cluster
        world.cluster.offset = 70

    world.while_suspended(moved_again)
    with pytest.raises(OwnershipLost):
        groups.GroupsStep().act(world.context, world.data)
    assert world.cluster.offset == 70


def test_a_late_commit_of_an_operation_that_another_process_continued_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, before=10, at=10)
    world.while_suspended(lambda: None)
    with pytest.raises(OwnershipLost):
        groups.GroupsStep().act(world.context, world.data)
    assert world.cluster.offset == 60


@pytest.mark.parametrize("before", [None, 10])
def test_a_late_undo_gives_way_to_a_later_operation(monkeypatch: pytest.MonkeyPatch, before: int | None) -> None:
    world = World(monkeypatch, before=before, at=60)

    def moved_again() -> None:
        world.undone()
        world.logs(2, _data(70, before))
        world.cluster.offset = 70

    world.while_suspended(moved_again)
    with pytest.raises(OwnershipLost):
        groups.GroupsStep().undo(world.context, world.data)
    assert world.cluster.offset == 70


def test_what_others_committed_after_a_late_change_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, before=10, at=10)
    world.undone()

    def lost() -> None:
        world.check()
        world.lost, world.cluster.offset = True, 500

    world.context.check = lost
    with pytest.raises(OwnershipLost):
        groups.GroupsStep().undo(world.context, world.data)
    assert world.cluster.offset == 500


@pytest.mark.parametrize("before", [None, 10])
def test_an_undo_restores_the_offset_or_deletes_the_group(monkeypatch: pytest.MonkeyPatch, before: int | None) -> None:
    world = World(monkeypatch, before=before, at=60)
    groups.GroupsStep().undo(world.context, world.data)
    assert world.cluster.offset == before


def test_an_undo_leaves_an_offset_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, before=10, at=500)
    groups.GroupsStep().undo(world.context, world.data)
    assert world.cluster.offset == 500
