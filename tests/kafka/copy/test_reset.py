"""`mirrorless offsets reset`: a new incarnation, begun on purpose."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from mirrorless.cli import root
from mirrorless.clusters.admin import Admin
from mirrorless.copy.resume.reset import Resetter
from mirrorless.offsets.offset_map import Run, points
from mirrorless.progress.topic import ProgressTopic
from mirrorless.protocol.cluster_client import EARLIEST
from tests.support.world import World, delete, fill, producer, read, values

if TYPE_CHECKING:
    from mirrorless.progress.records import Known


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def reset(world: World, topic: str, *options: str, answer: str | None = None) -> tuple[int, str]:
    arguments = ["offsets", "reset", str(world.file), "--topic", topic, *options]
    result = CliRunner().invoke(root, arguments, input=answer)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.fixture
def copied(world: World) -> str:
    topic = world.topic()
    fill(world.source, topic, numbers(0, 100))
    world.copy()
    return topic


def said_of(world: World, topic: str) -> Known:
    flow = world.place().load()
    with closing(ProgressTopic(flow, Admin(flow.target))) as reader:
        return reader.read()[topic, 0]


def reset_while_it_goes_on(world: World, topic: str) -> None:
    """Plan a reset to the beginning, and carry it out when 50 more records are copied."""
    with closing(Resetter(world.place().load())) as resetter:
        resets = resetter.plan(topic, EARLIEST)
        fill(world.source, topic, numbers(100, 150))
        world.copy()
        resetter.apply(resets)


def test_it_asks_before_records_are_copied_twice(world: World, copied: str) -> None:
    status, said = reset(world, copied, answer="n\n")
    assert status == 1
    assert f"100 offsets that are already copied will be appended to {world.remote(copied)} again. Reset?" in said
    world.copy()
    assert world.assert_equal(copied) == 100


def test_from_the_beginning_behind_what_is_there(world: World, copied: str) -> None:
    status, said = reset(world, copied, "--offset", "earliest", answer="y\n")
    assert (status, said.splitlines()[-1]) == (
        0,
        f"{copied}: 1 partition reset; {world.flow} follows at its next lease, within 120 s",
    )
    world.copy()
    world.copy()
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100) * 2


def test_beside_a_copy_that_goes_on_for_a_while(world: World, copied: str) -> None:
    reset_while_it_goes_on(world, copied)
    with closing(Resetter(world.place().load())) as resetter:
        assert [one.stood_at for one in resetter.plan(copied, 10)] == [0]
        resetter.apply(resetter.plan(copied, 10))
    fill(world.source, copied, numbers(150, 160))
    world.copy()
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 150) + numbers(10, 160)
    known = said_of(world, copied)
    assert points(known.progress, known.announced) == [Run(0, 0, 0), Run(10, 150, 0), Run(160, 300, 0)]


def test_an_epoch_begins_where_the_copy_left_the_target_not_where_it_was_reset(world: World, copied: str) -> None:
    reset_while_it_goes_on(world, copied)
    world.copy()
    world.copy()
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 150) * 2
    known = said_of(world, copied)
    newest = known.announced[max(known.announced)]
    assert (newest.start, newest.downstream, newest.reason) == (0, 150, "reset to 0")
    assert points(known.progress, known.announced) == [Run(0, 150, 0), Run(150, 300, 0)]


def test_into_a_remote_topic_that_was_emptied(world: World, copied: str) -> None:
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    admin.delete_topics([world.remote(copied)])[world.remote(copied)].result()
    while world.remote(copied) in admin.list_topics().topics:
        time.sleep(0.1)
    world.discover()
    status, said = reset(world, copied, "--yes")
    assert status == 0
    assert "appended" not in said
    world.copy()
    assert world.assert_equal(copied) == 100


def test_a_remote_topic_that_is_not_there_yet_is_told(world: World, copied: str) -> None:
    delete(world.target, world.remote(copied))
    result = CliRunner().invoke(root, ["offsets", "reset", str(world.file), "--topic", copied, "--yes"])
    assert result.exit_code != 0
    assert f"{world.remote(copied)} does not exist yet" in str(result.exception)


@pytest.mark.parametrize(("to", "first"), [("latest", 200), ("40", 40)])
def test_from_anywhere(world: World, copied: str, to: str, first: int) -> None:
    fill(world.source, copied, numbers(100, 200))
    assert reset(world, copied, "--offset", to, "--yes")[0] == 0
    fill(world.source, copied, numbers(200, 210))
    world.copy()
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 100) + numbers(first, 210)


def test_from_a_time(world: World, copied: str) -> None:
    now_s = time.time()
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s + 30))
    client = producer(world.source)
    for value in numbers(100, 130):
        client.produce(copied, value=value, timestamp=int((now_s + 60) * 1000))
    assert client.flush(60) == 0
    assert reset(world, copied, "--offset", moment, "--yes")[0] == 0
    world.copy()
    assert values(read(world.target, world.remote(copied))[0]) == numbers(0, 130)


def test_a_halted_partition_goes_on_after_it(world: World, copied: str) -> None:
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    admin.delete_topics([world.remote(copied)])[world.remote(copied)].result()
    while world.remote(copied) in admin.list_topics().topics:
        time.sleep(0.1)
    (report,) = world.copy()
    assert report.state == "halted"
    assert reset(world, copied, "--yes")[0] == 0
    world.copy()
    assert world.assert_equal(copied) == 100


def test_only_the_partitions_that_are_named(world: World) -> None:
    topic = world.topic(partitions=4)
    fill(world.source, topic, numbers(0, 160), partitions=4)
    world.copy()
    status, said = reset(world, topic, "--partition", "1", "--partition", "3", "--offset", "25", "--yes")
    assert (status, said.splitlines()[-1]) == (
        0,
        f"{topic}: 2 partitions reset; {world.flow} follows at its next lease, within 120 s",
    )
    world.copy()
    ours, theirs = read(world.source, topic), read(world.target, world.remote(topic))
    assert theirs == {
        partition: records + (records[25:] if partition in (1, 3) else []) for partition, records in ours.items()
    }


def test_one_line_for_what_cannot_be(world: World, copied: str) -> None:
    for options, line in (
        (["--offset", "yesterday"], "must be earliest, latest, an offset, or a time with its zone"),
        (["--topic", "other"], "topic=other: no flow replicates it"),
        (["--partition", "7"], f"partition=7: {copied} has partitions 0 to 0"),
    ):
        result = CliRunner().invoke(root, ["offsets", "reset", str(world.file), "--topic", copied, *options])
        assert result.exit_code != 0
        assert line in result.output + str(result.exception)
