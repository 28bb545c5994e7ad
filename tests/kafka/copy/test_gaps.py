"""Records that went missing before they were copied: noticed, told with coordinates, and never passed over unasked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from mirrorless.copy.rows import Report
    from mirrorless.local.kafka import EmbeddedCluster


def delete_before(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    """Do what retention does, at once."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result()


def create_again(cluster: EmbeddedCluster, topic: str) -> None:
    """Delete a topic and give its name to a new one."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    for _ in range(100):
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        except KafkaException:  # its deletion is still under way
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"{topic} could not be created again")


def copy_of(world: World, topic: str) -> Report:
    """One lease, and what it says of the topic's only partition."""
    (report,) = [report for report in world.copy() if report.topic == topic]
    return report


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


@pytest.fixture
def copied(world: World) -> str:
    """A topic of which 100 records were copied, beside another one that is well."""
    topic, other = world.topic(), world.topic()
    fill(world.source, topic, numbers(0, 100))
    fill(world.source, other, [b"fine"])
    world.copy()
    return topic


def test_retention_was_faster(world: World, copied: str) -> None:
    fill(world.source, copied, numbers(100, 300))
    delete_before(world.source, copied, 250)
    for _ in range(2):  # a new process does not forget it
        report = copy_of(world, copied)
        assert report.state == "halted"
        assert report.error == (
            f"{copied}-0 at offset 100: the source begins at 250, 150 offsets were deleted before they were copied; "
            "mirrorless.on.gap=continue goes on behind it, mirrorless offsets reset begins the topic anew"
        )
        assert report.gaps == 0
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100)

    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, copied)
    assert (report.state, report.records, report.gaps) == ("caught up", 50, 1)
    assert report.events == (
        f"{copied}-0: epoch 1: retention was faster than the copy: the source begins at 250, 150 offsets were deleted "
        "before they were copied; the copy goes on at 250"
    )
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100) + numbers(250, 300)
    assert world.copy() == []


@pytest.mark.parametrize("again", [40, 500], ids=["shorter", "longer"])
def test_a_source_topic_that_was_created_again(world: World, copied: str, again: int) -> None:
    create_again(world.source, copied)
    fill(world.source, copied, numbers(1_000, 1_000 + again))
    report = copy_of(world, copied)
    assert report.state == "halted"
    assert report.error is not None
    assert report.error.startswith(f"{copied}-0: this topic has the id ")
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, copied)
    assert (report.state, report.records, report.gaps) == ("caught up", again, 1)
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100) + numbers(1_000, 1_000 + again)


def test_a_remote_topic_that_was_created_again(world: World, copied: str) -> None:
    create_again(world.target, world.remote(copied))
    fill(world.source, copied, numbers(100, 150))
    report = copy_of(world, copied)
    assert report.state == "halted"
    assert report.error is not None
    assert "the remote partition ends at 0, before the acknowledged record 99" in report.error
    assert values(read(world.target, world.remote(copied))[0]) == []

    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, copied)
    assert (report.state, report.records) == ("caught up", 150)
    assert world.assert_equal(copied) == 150


def test_another_writer_in_the_remote_topic_is_told(world: World, copied: str) -> None:
    fill(world.target, world.remote(copied), [b"not ours"] * 3)
    fill(world.source, copied, numbers(100, 110))
    report = copy_of(world, copied)
    assert (report.state, report.records, report.foreign) == ("caught up", 10, 3)
    assert report.events.startswith(f"{world.remote(copied)}-0: 3 offsets before 103 were taken by another writer")
    assert world.copy() == []
