"""Steps are done once, in order, by the process that owns the operation, and undone in the opposite order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.operation_log.records import OperationKind, OperationState, Request, StepRecord, StepState
from mirrorless.operations.runner import may_be_undone, run_steps, undo_steps
from mirrorless.operations.steps.context import OperationStep, OwnershipLost, StepFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.operations.runner import Ownership
    from mirrorless.operations.steps.context import OperationContext

REQUEST = Request(kind=OperationKind.SWITCHOVER, source="a", target="b")


class Step(OperationStep):
    """Notes what is done with it."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name = name
        self.seen = seen
        self.fails = False

    def plan(self, context: OperationContext) -> dict[str, Any]:  # noqa: ARG002 -- as steps have it
        self.seen.append(f"plan {self.name}")
        return {"planned": self.name}

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 -- as steps have it
        assert planned["planned"] == self.name
        if self.fails:
            raise StepFailed("not now")
        self.seen.append(f"act {self.name}")
        return planned

    def undo(self, context: OperationContext, data: dict[str, Any]) -> None:  # noqa: ARG002 -- as steps have it
        assert data["planned"] == self.name
        self.seen.append(f"undo {self.name}")

    def text(self, data: dict[str, Any]) -> str:  # noqa: ARG002 -- as steps have it
        return "done"


class Owned:
    """An operation of two steps that this process owns, until it has looked `checks` times."""

    def __init__(self, checks: int = 1_000) -> None:
        self.operation = OperationState(id="1", request=REQUEST, created_ms=1)
        self.seen: list[str] = []
        self.steps = (Step("fence", self.seen), Step("drain", self.seen))
        self._checks = checks
        self._context = cast("OperationContext", SimpleNamespace(operation=self.operation, warnings=[]))

    def check(self) -> None:
        self._checks -= 1
        if self._checks < 0:
            raise OwnershipLost("taken over")

    def note(self, step: str, record: StepRecord) -> None:
        self.operation.steps[step] = record
        self.seen.append(f"{step} {record.state.lower()}")

    def run(self) -> list[str]:
        return self._do(run_steps)

    def undo(self) -> list[str]:
        return self._do(undo_steps)

    def _do(self, what: Callable[..., None]) -> list[str]:
        self.seen.clear()
        what(self.steps, self._context, cast("Ownership", self), report=lambda *_: None)
        return list(self.seen)


WHOLE = ["plan fence", "fence begun", "act fence", "fence done", "plan drain", "drain begun", "act drain", "drain done"]


def test_each_step_is_recorded_before_and_after_it_is_done() -> None:
    assert Owned().run() == WHOLE


def test_what_is_done_is_not_done_again_and_what_was_begun_is_not_planned_again() -> None:
    owned = Owned()
    owned.steps[1].fails = True
    with pytest.raises(StepFailed):
        owned.run()
    owned.steps[1].fails = False
    assert owned.run() == ["act drain", "drain done"]
    assert owned.run() == []


def test_the_last_step_is_undone_first_and_once() -> None:
    owned = Owned()
    owned.run()
    assert owned.undo() == ["undo drain", "drain undone", "undo fence", "fence undone"]
    assert owned.undo() == []
    assert owned.run() == WHOLE


@pytest.mark.parametrize("checks", range(8))
def test_a_process_that_lost_the_operation_does_nothing_more(checks: int) -> None:
    owned = Owned(checks)
    with pytest.raises(OwnershipLost):
        owned.run()
    assert owned.seen == WHOLE[:checks]


@pytest.mark.parametrize(
    ("state", "undoable"), [(None, True), (StepState.BEGUN, False), (StepState.DONE, False), (StepState.UNDONE, True)]
)
def test_once_applications_begin_to_move_nothing_is_undone(state: StepState | None, undoable: bool) -> None:
    steps = {} if state is None else {"open": StepRecord(state=state, began_ms=1)}
    assert may_be_undone(OperationState(id="1", request=REQUEST, created_ms=1, steps=steps)) is undoable
