"""`make simulate`: run schedules side by side, and show the first that fails in its shortest form."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack

from tests.simulation.running import Outcome, prepared, run_seed, shrunk

_AT_ONCE = 10


def _some(first: int, count: int) -> list[Outcome]:
    return [run_seed(seed) for seed in range(first, first + count)]


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, help="the first seed; alone: only this one, with its trace")
    parser.add_argument("--keep-going", action="store_true", help="run all, and count failures")
    parser.add_argument("--first-failure", action="store_true", help="end with the lowest seed that fails")
    options = parser.parse_args()
    if options.seed is not None and options.schedules == 1 and not options.first_failure:
        sys.exit(_one(options.seed))
    sys.exit(_all(options.seed or 0, options.schedules, keep_going=options.keep_going))


def _one(seed: int) -> int:
    with prepared():
        outcome = run_seed(seed, trace=True)
        if outcome.error is None:
            return 0
        shrunk(seed, outcome)
        return 1


def _all(first: int, schedules: int, *, keep_going: bool) -> int:
    began, events, failed, done, copied, cpu_s = time.monotonic(), Counter[str](), 0, 0, 0, 0.0
    workers = os.cpu_count() or 1
    with ProcessPoolExecutor(workers, initializer=_enter) as pool:
        spans = [(at, min(_AT_ONCE, first + schedules - at)) for at in range(first, first + schedules, _AT_ONCE)]
        for outcomes in pool.map(_some, *zip(*spans, strict=True)):
            for outcome in outcomes:
                done += 1
                events.update(outcome.events)
                copied += outcome.copied
                cpu_s += outcome.cpu_s
                if outcome.error is not None:
                    failed += 1
            if failed and not keep_going:
                pool.shutdown(cancel_futures=True)
                break
    time.monotonic() - began
    return 1 if failed else 0


_entered = ExitStack()


def _enter() -> None:
    _entered.enter_context(prepared())  # until the process ends


if __name__ == "__main__":
    main()
