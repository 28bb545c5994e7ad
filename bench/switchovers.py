"""Applications move from one cluster to the other and back, many times; half of the commands are killed on the way.

    python -m bench.switchovers [--moves 25] [--fence acl --fence config] [--naming default --naming kept]
                                [--naming identical] [--rate 2000] [--groups 5] [--brokers 1] [--quiet 2] [--json FILE]
                                [--pause 1] [--no-kill]
    python -m bench.switchovers --shape 200x50

A writer and consumer groups follow a switch file. Each move is `mirrorless switchover` in a process of its own, with a
quiet time of two seconds; every second one is killed with SIGKILL at a random step, and continued by another process,
unless `--no-kill` is given. The next move begins after `--pause` seconds.
With kept names the flows take turns. The naming `identical` is kept names with identical offsets, which are compared.
At the end every group has to have read every record once and in order. With `--shape` so many groups with offsets in so
many topics are moved once, without applications, and the duration of each step is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any, Final

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.identical import ends, records_at
from tests.support.moving import APPLICATIONS, AUTHORIZER, PARTITIONS, Applications
from tests.support.offsets import commit
from tests.support.secured import eventually
from tests.support.world import World, fill

FENCES: Final = ("acl", "config")
DEFAULT, KEPT = "default", "kept"
NAMINGS: Final = (DEFAULT, KEPT)
IDENTICAL: Final = "identical"
_STEPS: Final = ("preflight", "fence", "drain", "groups", "verify fence", "open", "switch clients", "reverse")
_RECORDS: Final = 100


def move(applications: Applications, target: str, kill_at: str | None) -> dict[str, Any]:
    """Switch over to a cluster; with `kill_at` the process is killed at that step, and another continues."""
    began = time.monotonic()
    process = applications.start("switchover", "--to", target, "--yes")
    killed = False
    if kill_at is not None:
        assert process.stderr is not None
        for line in process.stderr:
            if json.loads(line).get("step") == kill_at:
                os.kill(process.pid, signal.SIGKILL)
                killed = True
                break
    out, said = process.communicate(timeout=180)
    status, report = process.returncode, json.loads(out) if out else {}
    if killed:
        status, report, said = applications.command("operation", "continue")
        if "no operation is open" in said:  # it was killed after its end
            status = 0
    if status:
        raise SystemExit(f"the move to {target} ended with {status}, killed at {kill_at}\n{said}\n{report}")
    return {
        "killed_at": kill_at if killed else None,
        "seconds": time.monotonic() - began,
        "blocked_s": report.get("writers_blocked_seconds"),
        "steps": {one["step"]: one["seconds"] for one in report.get("steps", ())},
    }


def moves(world: World, fence: str, naming: str, given: argparse.Namespace, chance: random.Random) -> dict[str, Any]:
    """Move there and back, so many times, and compare what was written with what was read."""
    applications = Applications(
        world,
        {
            "mirrorless.fence": fence,
            "mirrorless.fence.quiet.seconds": f"{given.quiet:g}",
            "mirrorless.offsets": "identical" if naming == IDENTICAL else "dense",
        },
        log_in=fence == "acl",
        takes_turns=naming != DEFAULT,
        rate=given.rate,
        groups=given.groups,
    )
    found: list[dict[str, Any]] = []
    with applications.running():
        for number in range(given.moves):
            target = (world.target_alias, world.source_alias)[number % 2]
            kills = given.kill and number % 4 in (1, 2)
            found.append(move(applications, target, chance.choice(_STEPS) if kills else None))
            print(f"fence {fence}, {naming} names, move {number + 1} to {target}: {found[-1]}", flush=True)
            time.sleep(given.pause)
            if naming != DEFAULT:
                applications.close()
        outcomes = applications.outcomes()
        moved = at_other_offsets(world, applications.topic) if naming == IDENTICAL else 0
    alone = [one["blocked_s"] for one in found if one["killed_at"] is None and one["blocked_s"] is not None]
    return {
        "fence": fence,
        "naming": naming,
        "brokers": given.brokers,
        "quiet_s": given.quiet,
        "moves": found,
        "records": sum(applications.writer.written),
        "lost": sum(one.lost for one in outcomes),
        "repeated": sum(one.repeated for one in outcomes),
        "out_of_order": sum(one.out_of_order for one in outcomes),
        "at_other_offsets": moved,
        "blocked_median_s": statistics.median(alone),
        "blocked_max_s": max(alone),
        "writer_blocked_median_s": statistics.median(applications.writer.blocked_s),
        "writer_blocked_max_s": max(applications.writer.blocked_s),
    }


def at_other_offsets(world: World, topic: str) -> int:
    """Count the records that are not at the same offset on both sides, once both have all."""
    eventually(
        lambda: all(ends(world.source, topic, one) == ends(world.target, topic, one) for one in range(PARTITIONS))
    )
    ours, theirs = records_at(world.source, topic), records_at(world.target, topic)
    return sum(len(set(map(repr, ours[one])) ^ set(map(repr, theirs[one]))) for one in ours)


def durations(world: World, groups: int, topics: int) -> dict[str, float]:
    """Move groups by topics once; returns the seconds of each step."""
    names = [world.topic(name=f"shape-{number}") for number in range(topics)]
    for name in names:
        fill(world.source, name, [b"%d" % number for number in range(_RECORDS)])
    world.copy_to_the_end()
    for number in range(groups):
        commit(world.source, f"shape-{number}", {(name, 0): (number + 7) % _RECORDS for name in names})
    world.write_settings(**{"mirrorless.fence": "config", "mirrorless.fence.quiet.seconds": "2", "groups": "shape-.*"})
    done = subprocess.run(
        [sys.executable, "-m", "mirrorless", "switchover", world.file, "--to", world.target_alias, "--yes", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout) if done.stdout else {}
    if done.returncode:
        raise SystemExit(f"{done.stderr}\n{report}")
    print(f"groups moved: {report['groups']['moved']}, writers blocked for {report['writers_blocked_seconds']:.1f} s")
    return {one["step"]: one["seconds"] for one in report["steps"]}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=25, help="for each fence and naming")
    parser.add_argument("--fence", action="append", choices=FENCES)
    parser.add_argument("--naming", action="append", choices=[*NAMINGS, IDENTICAL], help="names of remote topics")
    parser.add_argument("--brokers", type=int, default=1, help="of each cluster")
    parser.add_argument("--quiet", type=float, default=2.0, help="mirrorless.fence.quiet.seconds")
    parser.add_argument("--rate", type=int, default=2_000, help="records/s")
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two moves")
    parser.add_argument("--kill", action=argparse.BooleanOptionalAction, default=True, help="kill every second move")
    parser.add_argument("--shape", metavar="GROUPSxTOPICS")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    seed = time.time_ns()
    print(f"seed {seed}")
    specs = [
        ClusterSpec(name=name, brokers=given.brokers, settings=AUTHORIZER, secure=(APPLICATIONS,))
        for name in ("source", "target")
    ]
    results: list[dict[str, Any]] = []
    with start_clusters(specs) as clusters:
        if given.shape:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                world = World(clusters["source"], clusters["target"], Path(folder))
                for step, seconds in durations(world, *map(int, given.shape.split("x"))).items():
                    print(f"{step}: {seconds:.1f} s")
            return
        for fence, naming in product(given.fence or FENCES, given.naming or NAMINGS):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                world = World(clusters["source"], clusters["target"], Path(folder), replicas=min(3, given.brokers))
                chance = random.Random(seed)  # noqa: S311 -- steps to be killed at
                results.append(moves(world, fence, naming, given, chance))
    for one in results:
        print(
            f"fence {one['fence']}, {one['naming']} names: {len(one['moves'])} moves, {one['records']:,} records",
            end=": ",
        )
        print(f"lost {one['lost']}, repeated {one['repeated']}, out of order {one['out_of_order']}", end="")
        print(f", at other offsets {one['at_other_offsets']}" if one["naming"] == IDENTICAL else "")
        for what, key in (("by the report", "blocked"), ("seen by the writer, killed ones too", "writer_blocked")):
            print(f"  blocked, {what}: median {one[f'{key}_median_s']:.1f} s, maximum {one[f'{key}_max_s']:.1f} s")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    if any(one[count] for one in results for count in ("lost", "repeated", "out_of_order", "at_other_offsets")):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
