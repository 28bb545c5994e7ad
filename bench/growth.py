"""How the copy grows: throughput by slots, by partitions and by topics; and how long a pass over the metadata takes.

    python -m bench.growth [--what slots …] [--json FILE]

Beside the copy by partitions and by topics stands tuned MirrorMaker 2, up to a thousand of them. Every engine copies
once uncounted before it is measured.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka.admin import AdminClient, NewTopic

from bench import metadata_scale
from bench.brokers import source_and_target
from bench.engines import OURS, TUNED
from bench.throughput import measure, tidy, warm
from bench.workloads import MANY_PARTITIONS, dense
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.local.embedded_kafka import EmbeddedCluster

_RECORDS: Final = 600_000
_PEER_UP_TO: Final = 1_000
_MANY: Final = 1_000
_SLOTS: Final = (1, 2, 4)
_PARTITIONS: Final = (10, 100, 1_000, 5_000)
_TOPICS: Final = (1, 10, 100, 1_000)
_PASSES: Final = (100, 500, 1_000, 2_000)

Row = dict[str, float | str]


def filled(cluster: EmbeddedCluster, topics: int, partitions: int) -> dict[str, int]:
    """Create topics and spread the records over all their partitions; returns each topic's number of partitions."""
    stem = f"growth-{time.monotonic_ns()}"
    made = {f"{stem}-{number}": partitions for number in range(topics)}
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    config = dict(MANY_PARTITIONS) if topics * partitions >= _MANY else {}
    for future in admin.create_topics([NewTopic(name, partitions, 1, config=config) for name in made]).values():
        future.result()
    for name in made:
        dense(
            cluster,
            name,
            records=_RECORDS // topics,
            size=500,
            codec="lz4",
            batch_bytes=64 << 10,
            partitions=partitions,
        )
    return made


def copied(
    clusters: Mapping[str, EmbeddedCluster], engine: str, made: Mapping[str, int], tasks: int | None = None
) -> float:
    """Records a second of an engine that copies these topics."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder), topics=list(made))
        records = _RECORDS // len(made) * len(made)
        sample = measure(engine, "growth", world, partitions=made, records=records, tasks=tasks)
        tidy(clusters["target"], [world.remote(topic) for topic in made])
    return sample.per_second


def by_slots(clusters: Mapping[str, EmbeddedCluster]) -> list[Row]:
    """One topic of 16 partitions, by the number of slots."""
    made = filled(clusters["source"], 1, 16)
    copied(clusters, OURS, made)
    rows: list[Row] = [
        {"slots": slots, "engine": OURS, "per_second": copied(clusters, OURS, made, slots)} for slots in _SLOTS
    ]
    tidy(clusters["source"], list(made))
    return rows


def by_size(clusters: Mapping[str, EmbeddedCluster], what: str) -> list[Row]:
    """One topic by its partitions, or topics of one partition by their number."""
    rows: list[Row] = []
    for size in _PARTITIONS if what == "partitions" else _TOPICS:
        made = filled(clusters["source"], 1, size) if what == "partitions" else filled(clusters["source"], size, 1)
        engines = [engine for engine in (TUNED, OURS) if engine == OURS or size <= _PEER_UP_TO]
        # A broker compiles anew for every shape of requests: while it does, a copy has a third of its throughput.
        for engine in engines:
            copied(clusters, engine, made)
        rows += [{what: size, "engine": engine, "per_second": copied(clusters, engine, made)} for engine in engines]
        tidy(clusters["source"], list(made))
    return rows


def main() -> None:
    """Measure what is asked for and print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", action="append", choices=["slots", "partitions", "topics", "passes"])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    wanted = given.what or ["slots", "partitions", "topics", "passes"]
    found: dict[str, list[Row]] = defaultdict(list)
    if set(wanted) - {"passes"}:
        with source_and_target() as clusters:
            warm(clusters)
            for what in wanted:
                if what == "slots":
                    found[what] = by_slots(clusters)
                elif what != "passes":
                    found[what] = by_size(clusters, what)
                for row in found[what]:
                    print(f"{row['engine']}, {what} {row[what]:,}: {row['per_second']:,.0f} records/s", flush=True)
                keep(given.json, found)
    if "passes" in wanted:
        found["passes"] = [{"topics": topics, **metadata_scale.measure(topics, 1)} for topics in _PASSES]
        keep(given.json, found)


def keep(file: Path | None, found: Mapping[str, list[Row]]) -> None:
    """Write what there is so far, since the whole takes long; what was not asked for stays in the file."""
    if file is not None:
        before = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**before, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
