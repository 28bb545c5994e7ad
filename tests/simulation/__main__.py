"""`make simulate`: run schedules side by side, and show the first that fails in its shortest form."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial

from tests.simulation.running import PREPARED, Outcome, run_seed, shrunk

_AT_ONCE = 10


def _some(of: str, first: int, count: int, until: float) -> list[Outcome]:
    if time.time() > until:
        return []
    return [run_seed(seed, of=of) for seed in range(first, first + count)]


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no more schedules after so long")
    parser.add_argument("--seed", type=int, help="the first seed; alone: only this one, with its trace")
    parser.add_argument("--keep-going", action="store_true", help="run all, and count failures")
    parser.add_argument("--first-failure", action="store_true", help="end with the lowest seed that fails")
    parser.add_argument("--of", choices=PREPARED, default="copy", help="what the schedules are of")
    options = parser.parse_args()
    if options.seed is not None and options.schedules == 1 and not options.first_failure:
        sys.exit(_one(options.of, options.seed))
    until = time.time() + options.seconds
    sys.exit(_all(options.of, options.seed or 0, options.schedules, keep_going=options.keep_going, until=until))


def _one(of: str, seed: int) -> int:
    with PREPARED[of]():
        outcome = run_seed(seed, of=of, trace=True)
        say("\n".join(outcome.trace))
        if outcome.error is None:
            say(f"seed {seed} holds: {outcome.copied} records copied")
            return 0
        say(f"seed {seed}: {outcome.error}")
        shortest = shrunk(seed, outcome, of=of)
        say(f"\nwithout the faults that it does not need:\n{shortest}")
        return 1


def _all(of: str, first: int, schedules: int, *, keep_going: bool, until: float) -> int:
    began, events, failed, done, copied, cpu_s = time.monotonic(), Counter[str](), 0, 0, 0, 0.0
    end = first + schedules
    spans = [(at, min(_AT_ONCE, end - at), until) for at in range(first, end, _AT_ONCE)]
    workers = min(os.cpu_count() or 1, len(spans))
    with ExitStack() as stack:
        if workers > 1:
            pool = stack.enter_context(ProcessPoolExecutor(workers, initializer=_enter, initargs=(of,)))
            found = pool.map(partial(_some, of), *zip(*spans, strict=True))
        else:
            stack.enter_context(PREPARED[of]())
            found = map(partial(_some, of), *zip(*spans, strict=True))
        for outcomes in found:
            for outcome in outcomes:
                done += 1
                events.update(outcome.events)
                copied += outcome.copied
                cpu_s += outcome.cpu_s
                if outcome.error is not None:
                    failed += 1
                    say(f"seed {outcome.seed}: {outcome.error}")
            if failed and not keep_going:
                if workers > 1:
                    pool.shutdown(cancel_futures=True)
                break
    seconds = time.monotonic() - began
    say(f"{done} schedules in {seconds:.0f} s, {done / seconds:.1f} a second on {workers} cores; {failed} failed")
    say(f"{cpu_s / max(done, 1) * 1000:.0f} ms of CPU each: {done / (cpu_s or 1):.1f} a second on a core of its own")
    say(f"{copied} records copied; " + ", ".join(f"{kind} {count}" for kind, count in events.most_common()))
    return 1 if failed else 0


_entered = ExitStack()


def _enter(of: str) -> None:
    _entered.enter_context(PREPARED[of]())  # until the process ends


if __name__ == "__main__":
    main()
