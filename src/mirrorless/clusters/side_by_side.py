"""Runs blocking calls to clusters side by side, so that far clusters cost one wait instead of one for each call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Answer = TypeVar("_Answer")


@overload
def side_by_side(one: Callable[[], _First], other: Callable[[], _Second], /) -> tuple[_First, _Second]: ...


@overload
def side_by_side(*calls: Callable[[], Any]) -> tuple[Any, ...]: ...


def side_by_side(*calls: Callable[[], Any]) -> tuple[Any, ...]:
    """Call each in a thread of its own and return their results; once all have ended, raises the first error."""
    return tuple(each(calls))


def each(calls: Sequence[Callable[[], _Answer]], *, at_once: int = 16) -> list[_Answer]:
    """As `side_by_side` for many calls of a kind, some of them at once."""
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(at_once, len(calls)), thread_name_prefix="side-by-side") as pool:
        under_way = [pool.submit(copy_context().run, call) for call in calls]
    return [one.result() for one in under_way]
