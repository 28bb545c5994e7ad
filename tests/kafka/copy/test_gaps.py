"""Records that went missing before they were copied: noticed, told with coordinates, and never passed over unasked."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.cli import root
from mirrorless.copy.engines import lease_run
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.planning.lease_planner import LeasePlanner
from tests.kafka.copy.test_resume_at_target import write_progress
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.local.embedded_kafka import EmbeddedCluster


def delete_before(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    """Do what retention does, at once."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result()


def create_again(cluster: EmbeddedCluster, topic: str, **config: str) -> None:
    """Delete a topic and give its name to a new one, with these configs."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    for _ in range(100):
        try:
            admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result()
        except KafkaException:  # its deletion is still under way
            time.sleep(0.1)
        else:
            while admin.list_topics(topic, timeout=60).topics[topic].error is not None:
                time.sleep(0.05)
            return
    pytest.fail(f"{topic} could not be created again")


def copy_of(world: World, topic: str) -> Report:
    """One lease, and what it says of the topic's only partition."""
    (report,) = [report for report in world.copy() if report.topic == topic]
    return report


def halted_by_its_id(world: World, topic: str) -> Report:
    """One lease that halts since a topic is another one, and what the next one says, which goes on."""
    report = copy_of(world, topic)
    assert report.state == "halted"
    assert report.error is not None
    assert report.error.startswith(f"{topic}-0: the source topic was deleted and recreated: its id is ")
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    return copy_of(world, topic)


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
            "set mirrorless.on.gap=continue to skip the gap, or run `mirrorless offsets reset` to restart the topic"
        )
        assert report.gaps == 0
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100)

    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, copied)
    assert (report.state, report.records, report.gaps) == ("caught up", 50, 1)
    assert report.events == (
        f"{copied}-0: epoch 1: retention was faster than the copy: the source begins at 250, 150 offsets were deleted "
        "before they were copied; the copy continues at 250"
    )
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100) + numbers(250, 300)
    assert world.copy() == []


def test_a_source_topic_that_was_created_again(world: World, copied: str) -> None:
    create_again(world.source, copied)
    fill(world.source, copied, numbers(1_000, 1_150))  # longer than before: only its id tells
    report = halted_by_its_id(world, copied)
    assert (report.state, report.records, report.gaps) == ("caught up", 150, 1)
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100) + numbers(1_000, 1_150)


def test_both_topics_were_created_again(world: World) -> None:
    """What the target lost is of the old topic: the new one is copied from its beginning."""
    topic = world.topic()
    fill(world.source, topic, numbers(0, 100))
    delete_before(world.source, topic, 60)
    world.copy()
    create_again(world.source, topic)
    fill(world.source, topic, numbers(1_000, 1_150))
    assert copy_of(world, topic).state == "halted"
    create_again(world.target, world.remote(topic))
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, topic)
    assert (report.state, report.records) == ("caught up", 150)
    # Progress of before, as a process writes it that was thought dead: the target's newer epoch counts.
    write_progress(world, topic, b'{"offset":99,"sequence":100,"epoch":0,"downstream":99}')
    fill(world.source, topic, [b"more"])
    report = copy_of(world, topic)
    assert (report.state, report.records, report.gaps) == ("caught up", 1, 0)
    assert world.assert_equal(topic) == 151


def test_a_target_that_lost_records_behind_a_reset_is_told(world: World, copied: str) -> None:
    """Else the copy would begin before where it was announced to, and groups be sent ahead of themselves."""
    arguments = ["offsets", "reset", str(world.file), "--topic", copied, "--offset", "earliest", "--yes"]
    assert CliRunner().invoke(root, arguments).exit_code == 0
    create_again(world.target, world.remote(copied))
    report = copy_of(world, copied)
    assert report.state == "halted"
    assert "the remote partition ends at 0, before the acknowledged record 99" in (report.error or "")
    assert CliRunner().invoke(root, arguments).exit_code == 0
    assert copy_of(world, copied).records == 100
    assert world.assert_equal(copied) == 100


def test_what_a_halt_remembers_of_the_target_is_not_what_is_true_later(world: World, copied: str) -> None:
    remote = world.remote(copied)
    fill(world.source, copied, numbers(100, 110))
    write_progress(world, copied, b'{"offset":109,"sequence":110,"epoch":0,"downstream":109}')
    report = copy_of(world, copied)
    assert (report.state, report.gaps) == ("halted", 0)
    assert "the remote partition ends at 100, before the acknowledged record 109" in (report.error or "")
    # More is lost before somebody looks: all of it.
    create_again(world.target, remote)
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, copied)
    assert (report.state, report.records, report.gaps) == ("caught up", 110, 1)
    assert world.assert_equal(copied) == 110


def test_what_the_target_has_again_is_not_copied_twice(world: World, copied: str) -> None:
    fill(world.source, copied, numbers(100, 110))
    write_progress(world, copied, b'{"offset":109,"sequence":110,"epoch":0,"downstream":109}')
    assert copy_of(world, copied).state == "halted"
    # As if the disk were back with which the target had lost them.
    write_progress(world, copied, b'{"offset":99,"sequence":100,"epoch":0,"downstream":99}')
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, copied)
    assert (report.state, report.records, report.gaps) == ("caught up", 10, 0)
    assert "it has them again, and the copy continues at 100" in report.events
    assert world.assert_equal(copied) == 110
    world.write_settings(**{"mirrorless.on.gap": "halt"})
    fill(world.source, copied, numbers(110, 120))
    assert copy_of(world, copied).records == 10  # the halt is left behind


def test_a_gap_that_another_one_has_passed_is_not_passed_again(world: World, copied: str) -> None:
    fill(world.source, copied, numbers(100, 300))
    delete_before(world.source, copied, 250)
    assert copy_of(world, copied).state == "halted"
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    place = world.place()
    with closing(LeasePlanner(place.load(), bounded=True)) as planner:
        old_rows = [row for pile in planner.plan(place.load()) for row in pile]
    assert copy_of(world, copied).records == 50
    try:
        (report,) = run_lease(place, old_rows, control=Control(), lease=2, slot=0)
    finally:
        lease_run._slots.pop(world.flow).close()
    assert (report.state, report.records, report.gaps) == ("caught up", 0, 0)
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100) + numbers(250, 300)


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
    assert report.events.startswith(f"{world.remote(copied)}-0: another writer took 3 offsets before 103")
    assert world.copy() == []
