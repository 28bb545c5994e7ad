"""Where a partition without progress begins."""

from __future__ import annotations

import time

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from mirrorless.cli.plan import plan
from mirrorless.errors import ClusterError, ConfigurationError
from tests.support.offsets import commit
from tests.support.world import World, fill, read, values


def remote_values(world: World, topic: str) -> list[bytes | None]:
    return values(read(world.target, world.remote(topic))[0])


def test_latest_leaves_out_what_was_there_before(world: World) -> None:
    topic = world.topic()
    world.write_settings(**{f"{world.source_alias}.consumer.auto.offset.reset": "latest"})
    fill(world.source, topic, [b"before"])
    world.copy_unbounded(seconds=5)
    fill(world.source, topic, [b"after"])
    world.copy_to_the_end()
    fill(world.source, topic, [b"later"])
    world.copy_to_the_end()
    assert remote_values(world, topic) == [b"after", b"later"]


def test_a_timestamp_begins_at_its_first_record(world: World) -> None:
    topic = world.topic()
    now_ms = int(time.time() * 1000)
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers, "linger.ms": 0})
    for number in range(10):
        client.produce(topic, value=b"%d" % number, timestamp=now_ms - 10_000 + number * 1_000)
        client.flush()
    world.write_settings(**{"mirrorless.start.timestamp": str(now_ms - 6_500)})
    world.copy()
    assert remote_values(world, topic) == [b"%d" % number for number in range(4, 10)]


def test_a_timestamp_behind_everything_begins_at_the_end(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"old"])
    world.write_settings(**{"mirrorless.start.timestamp": "2100-01-01T00:00:00Z"})
    world.copy()
    fill(world.source, topic, [b"new"])
    world.copy()
    assert remote_values(world, topic) == [b"new"]


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_group_of_another_tool_is_followed(world: World, reset: str) -> None:
    """It has copied 800 of 1,000 records; a partition in which it has no offset begins as configured."""
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % (number // 2) for number in range(2000)), partitions=2)
    world.discover()
    fill(world.target, world.remote(topic), (b"%d" % number for number in range(800)))
    commit(world.source, f"tool-{topic}", {(topic, 0): 800})
    world.write_settings(
        **{
            "mirrorless.start.group": f"tool-{topic}",
            f"{world.source_alias}.consumer.auto.offset.reset": reset,
        }
    )
    shown = CliRunner().invoke(plan, [str(world.file)])
    assert (
        f"  note: 800 records are already in 1 partitions of {world.target_alias} that {world.flow} has not copied to "
        f"yet, among them {world.remote(topic)}-0 with 800: its copies are appended to them, from the offsets of group "
        f"tool-{topic} on"
    ) in shown.output
    world.copy()
    found = read(world.target, world.remote(topic))
    assert values(found[0]) == [b"%d" % number for number in range(1000)]
    assert len(found.get(1, ())) == (1000 if reset == "earliest" else 0)


def test_a_group_without_offsets_is_refused(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"one"])
    world.write_settings(**{"mirrorless.start.group": "mispelt"})
    with pytest.raises(ClusterError, match=r"mirrorless.start.group=mispelt: the group has no offsets there"):
        world.copy()


def test_anything_else_is_refused(world: World) -> None:
    world.topic()
    world.write_settings(**{f"{world.source_alias}.consumer.auto.offset.reset": "none"})
    with pytest.raises(ConfigurationError, match=r"consumer.auto.offset.reset=none: must be earliest or latest"):
        world.discover()
