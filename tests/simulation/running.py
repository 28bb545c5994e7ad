"""Runs one seed, and finds the shortest form of one that fails."""

from __future__ import annotations

import gc
import random
import time
import traceback
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulation.copier import replace_clients
from tests.simulation.copying import Copying
from tests.simulation.functions import replace_engine_clients
from tests.simulation.operated import operated
from tests.simulation.operating import Operating
from tests.simulation.world import Violation, clock, install, uninstall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager


@dataclass
class Outcome:
    """What came of a seed: `error` is None if all held."""

    seed: int
    error: str | None = None
    copied: int = 0
    cpu_s: float = 0.0
    events: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)


@contextmanager
def prepared() -> Iterator[None]:
    """Give the product's modules simulated clocks and clients."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        replace_clients(monkeypatch)
        replace_engine_clients(monkeypatch)
        names = install()
        # A schedule is one large cycle. What was loaded before is never looked at: collections are rare and short.
        gc.collect()
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()
            uninstall(names)


SCHEDULES: dict[str, type[Copying | Operating]] = {"copy": Copying, "operations": Operating}
"""What a seed is a schedule of."""
PREPARED: dict[str, Callable[[], AbstractContextManager[None]]] = {"copy": prepared, "operations": operated}


def run_seed(
    seed: int,
    *,
    of: str = "copy",
    without: Collection[int] = (),
    setup: Any = None,  # noqa: ANN401 -- each kind of schedule has its own
    trace: bool = False,
) -> Outcome:
    """Run one schedule; `without` and `setup` are as of `Copying` and `Operating`."""
    random.seed(seed)  # the jitter of pauses
    schedule = SCHEDULES[of](seed, without=without, setup=setup, trace=trace)
    clock.world = schedule.world
    outcome, began = Outcome(seed), time.process_time()
    gc.disable()
    try:
        schedule.run()
    except Violation as error:
        outcome.error = str(error)
    except Exception as error:  # noqa: BLE001 -- the product's code must not fail either
        where = traceback.extract_tb(error.__traceback__)[-1]
        outcome.error = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        if trace:
            outcome.error += "\n" + "".join(traceback.format_exception(error))
    finally:
        gc.enable()
    outcome.cpu_s = time.process_time() - began
    outcome.copied = schedule.copied
    outcome.events = schedule.world.events
    outcome.trace = schedule.world.trace or []
    return outcome


def shrunk(seed: int, outcome: Outcome, *, of: str = "copy") -> str:
    """The setup and the faults that a failing seed needs to fail, one a line: the least of each that still fails."""
    first = SCHEDULES[of](seed)
    faults = first.may_be_left_out
    without: set[int] = set()
    for number in range(len(faults)):
        if run_seed(seed, of=of, without=without | {number}).error is not None:
            without.add(number)
    setup: Any = first.setup
    simpler: list[dict[str, Any]] = (
        []
        if isinstance(first, Operating)
        else [
            {"copiers": 1},
            {"partitions": 1},
            {"transactions": False},
            {"leave_out": False},
            {"old": False},
            {"seconds": setup.seconds / 2},
            {"seconds": setup.seconds / 4},
        ]
    )
    for change in simpler:
        changed = replace(setup, **change)
        if changed != setup and run_seed(seed, of=of, without=without, setup=changed).error is not None:
            setup = changed
    left = run_seed(seed, of=of, without=without, setup=setup)
    lines = [str(fault) for number, fault in enumerate(faults) if number not in without]
    return "\n".join([str(setup), *lines, str(left.error), f"without={sorted(without)}"])
