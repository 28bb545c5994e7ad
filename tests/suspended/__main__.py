"""Every schedule: each write of each kind of operation, continued and aborted meanwhile, with three clocks."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorless.errors import MirrorlessError
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.suspended.schedules import CASES, IDLE_MS, MEANWHILE, Case, Result, Schedule

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_CLOCKS_S = (0.0, 120.0, -120.0)


def say(fields: dict[str, object]) -> None:
    """Write a line of JSON."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _run(
    clusters: tuple[EmbeddedCluster, EmbeddedCluster],
    folder: Path,
    case: Case,
    at: int,
    *,
    meanwhile: str,
    ahead_s: float,
) -> Result:
    try:
        return Schedule(clusters, folder, case).run(at, meanwhile, ahead_s=ahead_s)
    except (AssertionError, MirrorlessError) as error:
        return Result(label=f"write {at}", wrong=[f"{type(error).__name__}: {error}"])


def main() -> None:
    """Run all schedules, or those of one command; a line for each, and at last their numbers."""
    parser = argparse.ArgumentParser(prog="tests.suspended", description=__doc__)
    parser.add_argument("--case", default="", help='cases whose name has this text, as "abort, turns"')
    parser.add_argument("--meanwhile", choices=MEANWHILE, help="what the other process does; both unless told")
    parser.add_argument("--from-write", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="each nth write only")
    parser.add_argument("--seconds", type=float, default=36_000.0, help="begin no schedule after so many seconds")
    given = parser.parse_args()
    settings = {"connections.max.idle.ms": str(IDLE_MS)}
    done: Counter[str] = Counter()
    failed: list[dict[str, object]] = []
    until = time.monotonic() + given.seconds
    with start_clusters([ClusterSpec(name=name, settings=settings) for name in ("one", "two")]) as started:
        clusters = started["one"], started["two"]
        for number, case in enumerate(one for one in CASES if given.case in str(one)):
            for meanwhile in (given.meanwhile,) if given.meanwhile else MEANWHILE:
                at, clock = given.from_write, number
                while time.monotonic() < until:
                    with tempfile.TemporaryDirectory() as folder:
                        ahead_s = _CLOCKS_S[clock % len(_CLOCKS_S)]
                        result = _run(clusters, Path(folder), case, at, meanwhile=meanwhile, ahead_s=ahead_s)
                        said = Path(folder, "process.log")
                        log = said.read_text()[-3000:] if result.wrong and said.exists() else ""
                    if not result.label:
                        break
                    done[str(case)] += 1
                    line = {"case": str(case), "clock": ahead_s, "at": result.label, "meanwhile": result.ended}
                    say(line | ({"wrong": result.wrong, "log": log} if result.wrong else {}))
                    if result.wrong:
                        failed.append(line)
                    at, clock = at + given.every, clock + 1
    say({"schedules": sum(done.values()), "failed": len(failed), "by case": done})
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
