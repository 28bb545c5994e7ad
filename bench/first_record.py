"""How soon a run copies, and what memory it needs for that, beside MirrorMaker 2: in turns, with the median.

    python -m bench.first_record [--rounds 3]

A flow of one topic with a thousand records. Time is from the command to the first record on the target; memory is the
peak of all processes, from then on for ten seconds more.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from bench.brokers import source_and_target
from bench.engines import DEFAULT, OURS, Family
from tests.support.peer import MirrorMaker, peer_settings
from tests.support.processes import Mirrorless
from tests.support.world import World, fill

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_NOT_YET: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._NOENT, KafkaError.NOT_LEADER_FOR_PARTITION})
_PATIENCE_S: Final = 300.0
_LOOK_S: Final = 0.02
_STEADY_S: Final = 10.0
_SPARK: Final = "Mirrorless, --engine spark"
ENGINES: Final = (OURS, DEFAULT, _SPARK)


class Measured(NamedTuple):
    """One start: seconds to the first record, and the peak in MB."""

    seconds: float
    megabytes: float


def begun(admin: AdminClient, topic: str) -> bool:
    """Whether the topic has a record."""
    asked = {TopicPartition(topic, 0): OffsetSpec.latest()}
    try:
        return any(future.result().offset > 0 for future in admin.list_offsets(asked, request_timeout=10).values())
    except KafkaException as error:
        if error.args[0].code() in _NOT_YET:
            return False
        raise


def wait(family: Family, world: World, topic: str) -> float:
    """Wait for the first record, and return when it was there."""
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers, "log_level": 0})
    until = time.monotonic() + _PATIENCE_S
    while not begun(admin, topic):
        assert time.monotonic() < until, f"{topic} has no record"
        family.look()
        time.sleep(_LOOK_S)
    return time.monotonic()


def measured(engine: str, clusters: dict[str, EmbeddedCluster]) -> Measured:
    """Start an engine for a new flow."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder))
        topic = world.topic()
        fill(world.source, topic, (b"%0100d" % number for number in range(1_000)))
        arguments = ("--engine", "spark") if engine == _SPARK else ()
        began = time.monotonic()
        # As shipped: heartbeats and checkpoints are on for either.
        run = (
            MirrorMaker(world.folder, peer_settings(world), as_shipped=True)
            if engine == DEFAULT
            else Mirrorless(world.file, *arguments)
        )
        with run as started:
            family = Family(started.pid if isinstance(started, MirrorMaker) else started.process.pid)
            there = wait(family, world, world.remote(topic))
            while time.monotonic() < there + _STEADY_S:
                family.look()
                time.sleep(_LOOK_S)
            return Measured(there - began, family.peak_bytes / 1e6)


def main() -> None:
    """Measure in turns and print a line for each engine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="*", default=ENGINES)
    given = parser.parse_args()
    found: dict[str, list[Measured]] = {engine: [] for engine in given.engines}
    with source_and_target() as clusters:
        for _ in range(given.rounds):
            for engine in given.engines:
                one = measured(engine, clusters)
                found[engine].append(one)
                print(f"  {engine}: {one.seconds:.1f} s, {one.megabytes:,.0f} MB", flush=True)
    for engine, each in found.items():
        seconds, megabytes = (statistics.median(values) for values in zip(*each, strict=True))
        print(f"{engine}: first record after {seconds:.1f} s, {megabytes:,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
