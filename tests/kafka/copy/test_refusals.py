"""What cannot be appended stops its own partition, with coordinates and a reason, and no other."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.support.world import World, fill, read, values


def test_append_time_is_refused_with_its_coordinates(world: World) -> None:
    bad = world.topic(message_timestamp_type="LogAppendTime")
    good = world.topic()
    for topic in (bad, good):
        fill(world.source, topic, (b"%d" % n for n in range(100)))
    reports = {report.topic: report for report in world.copy()}
    assert reports[bad].state == "halted"
    assert reports[bad].error == (
        f"{bad}-0 at offset 0: its timestamps are the source's append time (message.timestamp.type=LogAppendTime)"
    )
    assert reports[good].state == "caught up"
    assert world.assert_equal(good) == 100


def test_a_batch_that_the_remote_topic_does_not_take(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"small"])
    world.copy()
    limit(world, topic, 2_000)
    fill(world.source, topic, [b"also small"])
    fill(world.source, topic, [b"x" * 5_000])
    (report,) = world.copy()
    assert report.state == "halted"
    assert report.error is not None
    assert report.error.startswith(f"{topic}-0 at offset 2: {world.remote(topic)} refuses the batch of ")
    assert report.error.endswith(f"MESSAGE_SIZE_TOO_LARGE (10); raise max.message.bytes of {world.remote(topic)}")
    assert values(read(world.target, world.remote(topic))[0]) == [b"small", b"also small"]
    limit(world, topic, 1_000_000)
    world.copy()
    assert world.assert_equal(topic) == 3


def limit(world: World, topic: str, size: int) -> None:
    """Set the remote topic's max.message.bytes."""
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, world.remote(topic), incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
