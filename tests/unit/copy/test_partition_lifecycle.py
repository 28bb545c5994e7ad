"""States of a partition: which may follow which, as the methods make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.partition.lifecycle import READABLE, TRANSITIONS, PartitionState
from mirrorless.copy.partition.state import PartitionCopy

if TYPE_CHECKING:
    from collections.abc import Callable

REPORTED_ONLY = {PartitionState.WAITING}


def copy_in(state: PartitionState, *, source_end: int = 10) -> PartitionCopy:
    row = LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=source_end)
    return PartitionCopy(row, 1 << 61, {}, state=state, source_end=source_end, fetch_from=10)


def resume(copy: PartitionCopy) -> None:
    copy.resume_at(10, epoch=0, sequence=0, last_downstream=-1, node=1)


METHODS: dict[str, Callable[[PartitionCopy], object]] = {
    "resume_at": resume,
    "settle": PartitionCopy.settle,
    "interrupt": lambda copy: copy.interrupt("failed", now=0),
    "halt_with": lambda copy: copy.halt_with("gap"),
    "close": PartitionCopy.close,
}


def test_every_state_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(PartitionState)
    assert set(READABLE) <= set(PartitionState)


def test_the_methods_make_these_transitions_and_refuse_all_others() -> None:
    made: dict[PartitionState, set[PartitionState]] = {state: set() for state in PartitionState}
    for state in set(PartitionState) - REPORTED_ONLY:
        for method in METHODS.values():
            for source_end in (10, 20):
                copy = copy_in(state, source_end=source_end)
                try:
                    method(copy)
                except AssertionError:
                    assert copy.state is state
                made[state].add(copy.state)
    assert {state: frozenset(found - {state}) for state, found in made.items()} == TRANSITIONS


@pytest.mark.parametrize("method", METHODS)
def test_only_a_new_lease_ends_a_halt(method: str) -> None:
    copy = copy_in(PartitionState.HALTED)
    if method == "resume_at":
        with pytest.raises(AssertionError, match="halted to copying"):
            resume(copy)
    else:
        METHODS[method](copy)
    assert copy.state is PartitionState.HALTED
