"""A compacted source whose cleaner ran while the progress was behind: counting leads too far, and is mended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from tests.kafka.copy.test_resume_at_target import write_progress
from tests.support.world import Seen, World, read

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = 50


def write(world: World, topic: str, name: str, count: int) -> None:
    """Records of a few keys, ten a batch."""
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers, "linger.ms": 1_000})
    for number in range(count):
        client.produce(topic, key=b"%d" % (number % KEYS), value=b"%s %d " % (name.encode(), number) + b"x" * 200)
        if number % 10 == 9:
            client.flush()
    client.flush()


def latest(records: Sequence[Seen]) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in records}


def wait_for_the_cleaner(world: World, topic: str) -> None:
    until = time.monotonic() + 90
    before = None
    while True:
        there = read(world.source, topic)[0]
        if any(record.value and record.value.startswith(b"first") for record in there):
            before = len(there)
        else:
            return
        assert time.monotonic() < until, f"the cleaner did not run, {before} records are left"
        write(world, topic, "roll", KEYS)
        time.sleep(0.5)


def test_nothing_is_skipped(world: World) -> None:
    topic = world.topic(
        cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01", segment_ms="1000"
    )
    write(world, topic, "first", 300)
    write(world, topic, "second", 300)
    world.copy()
    # As if the process had died before its progress was written.
    write_progress(world, topic, b'{"offset":99,"sequence":100,"epoch":0,"downstream":99}')
    wait_for_the_cleaner(world, topic)
    (report,) = world.copy()
    assert report.state == "caught up"
    assert "the source was cleaned in between" in report.events
    assert latest(read(world.target, world.remote(topic))[0]) == latest(read(world.source, topic)[0])
    assert world.copy() == []
