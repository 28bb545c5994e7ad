"""Topic discovery gives selected topics their remote topic, and may run as often as one likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from mirrorless.metadata.actions import GrowTopic

if TYPE_CHECKING:
    from tests.support.world import World


def counts(world: World) -> dict[str, int]:
    """Partitions of the flow's topics on the target."""
    metadata = AdminClient({"bootstrap.servers": world.target.bootstrap_servers}).list_topics(timeout=60)
    own = (f"{world.source_alias}.", world.progress_topic)
    return {name: len(topic.partitions) for name, topic in metadata.topics.items() if name.startswith(own)}


def test_a_second_pass_finds_nothing_to_do(world: World) -> None:
    topic = world.topic(partitions=5)
    first = world.discover()
    assert {(applied.action.topic, getattr(applied.action, "on_source", None)) for applied in first.applied} == {
        (world.remote(topic), False),
        (world.progress_topic, False),
        (f"mm2-offset-syncs.{world.target_alias}.internal", True),
    }
    assert counts(world) == {world.remote(topic): 5, world.progress_topic: 2}
    assert world.discover().applied == ()


def test_partitions_grow_and_never_shrink(world: World) -> None:
    grown, ahead = world.topic(partitions=2), world.topic(partitions=2)
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    admin.create_topics([NewTopic(world.remote(ahead), 6, 1)])[world.remote(ahead)].result()
    world.discover()
    source_admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    source_admin.create_partitions([NewPartitions(grown, 4)])[grown].result()
    (applied,) = world.discover().applied
    assert applied.action == GrowTopic(
        topic=world.remote(grown),
        partitions=4,
        reason=f"{grown} has 4 partitions, {world.remote(grown)} has 2",
    )
    assert applied.error is None
    assert counts(world) == {world.remote(grown): 4, world.remote(ahead): 6, world.progress_topic: 2}


def test_a_topic_that_cannot_be_created_does_not_hold_up_the_others(world: World) -> None:
    # 249 characters are the most a name may have, and the remote topic's name is longer than its source's.
    long = "x" * 249
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    if long not in admin.list_topics(timeout=60).topics:
        admin.create_topics([NewTopic(long, 1, 1)])[long].result()
    world.topics.append(long)
    topic = world.topic()
    found = world.discover()
    assert world.remote(topic) in counts(world)
    (failure,) = found.failures
    assert failure.action.topic == world.remote(long)
    assert failure.error is not None
    assert "249" in failure.error


def test_topics_that_the_filter_leaves_out_get_none(world: World) -> None:
    chosen, other = world.topic(), world.topic()
    world.topics.remove(other)
    world.write_settings()
    world.discover()
    assert world.remote(chosen) in counts(world)
    assert world.remote(other) not in counts(world)
