"""Where partitions begin of a flow that starts at the latest offset is fixed when topic discovery meets them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from mirrorless.copy.resume.start_positions import StartPositions
from tests.support.world import World, delete, fill, read, values

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import Report


def discover(world: World) -> None:
    """As the function topic_discovery does it."""
    with closing(StartPositions(world.place().load())) as starts:
        fixed = starts.fix()
        world.discover()
        assert (fixed or starts.fix()) is not None


def copied(world: World, topic: str) -> list[bytes]:
    found = read(world.target, world.remote(topic)).values()
    return sorted(value or b"" for records in found for value in values(records))


@pytest.fixture
def latest(world: World) -> World:
    world.write_settings(**{f"{world.source_alias}.consumer.auto.offset.reset": "latest"})
    return world


def test_what_is_written_between_discovery_and_the_first_lease_is_copied(latest: World) -> None:
    topic = latest.topic()
    fill(latest.source, topic, [b"before"])
    discover(latest)
    fill(latest.source, topic, [b"between"])
    latest.copy_to_the_end()
    assert copied(latest, topic) == [b"between"]


def test_what_appeared_since_the_last_look_begins_at_its_beginning(latest: World) -> None:
    there, unwanted = latest.topic(), latest.topic()
    latest.topics.remove(unwanted)
    latest.write_settings()
    for topic in (there, unwanted):
        fill(latest.source, topic, [b"before"])
    discover(latest)
    latest.copy_unbounded(seconds=2)
    # While nothing runs: a new topic, a new partition, and a topic that a changed filter selects.
    new = latest.topic()
    latest.topics.append(unwanted)
    latest.write_settings()
    admin = AdminClient({"bootstrap.servers": latest.source.bootstrap_servers})
    admin.create_partitions([NewPartitions(there, 2)])[there].result()
    for topic, partitions in ((new, 1), (there, 2), (unwanted, 1)):
        fill(latest.source, topic, [b"down", b"down"][:partitions], partitions=partitions)
    discover(latest)
    fill(latest.source, unwanted, [b"selected"])
    reports: list[Report] = latest.copy_to_the_end()
    assert not [report.error for report in reports if report.error]
    assert copied(latest, new) == [b"down"]
    assert copied(latest, there) == [b"down", b"down"]
    assert copied(latest, unwanted) == [b"selected"]


def test_a_new_topic_that_was_not_announced_yet_begins_at_its_beginning(latest: World) -> None:
    """The copy may meet it before topic discovery has announced anything."""
    there = latest.topic()
    discover(latest)
    new = latest.topic()
    fill(latest.source, new, [b"early"])
    latest.discover()
    latest.copy_to_the_end()
    assert copied(latest, new) == [b"early"]
    assert copied(latest, there) == []


def test_where_the_progress_was_lost_nothing_is_announced_over_it(latest: World) -> None:
    """The copy asks the target, finds records of an epoch that nothing announces, and halts."""
    topic = latest.topic()
    discover(latest)
    fill(latest.source, topic, [b"copied"] * 10)
    latest.copy_to_the_end()
    fill(latest.source, topic, [b"not copied"] * 10)
    delete(latest.target, latest.progress_topic)
    discover(latest)
    (report,) = latest.copy()
    assert report.state == "halted"
    assert "which the progress topic does not announce" in str(report.error)
    assert copied(latest, topic) == [b"copied"] * 10
