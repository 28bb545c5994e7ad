"""A target that refuses old records by default, as Express brokers of MSK do, gets remote topics that accept them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import NewTopic

from mirrorless.cli.doctor import doctor
from mirrorless.cli.plan import plan
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import ConfigChange, Origin, alter_topic_configs, topic_configs
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.metadata.actions import AlterConfigs
from mirrorless.metadata.timestamp_limits import BEFORE, UNLIMITED
from tests.support.metadata import sync_configs
from tests.support.secured import eventually
from tests.support.world import World, producer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster

DAY_MS: Final = 86_400_000


@pytest.fixture(scope="module")
def express(clusters: dict[str, EmbeddedCluster]) -> Iterator[EmbeddedCluster]:
    specs = [ClusterSpec(name="express", settings={f"log.{BEFORE}": str(DAY_MS)})]
    with start_clusters(specs) as started:
        yield started["express"]


@pytest.fixture
def old(source: EmbeddedCluster, express: EmbeddedCluster, tmp_path: Path) -> tuple[World, str]:
    """A flow to such a target, with a topic whose records are three days old."""
    world = World(source, express, tmp_path)
    topic = world.topic()
    client = producer(source)
    at_ms = int(time.time() * 1000) - 3 * DAY_MS
    for number in range(10):
        client.produce(topic, value=b"%d" % number, timestamp=at_ms + number)
    assert client.flush(60) == 0
    return world, topic


def planned(world: World) -> str:
    return CliRunner().invoke(plan, [str(world.file)]).stdout


def own_limit(world: World, topic: str) -> str | None:
    """The limit that a remote topic has of its own."""
    name = world.remote(topic)
    admin = Admin(world.place().load().target)
    one = topic_configs(admin, [name])[0][name][BEFORE]
    return one.value if one.origin == Origin.TOPIC else None


def test_old_records_are_copied_and_the_limit_stays_lifted(old: tuple[World, str]) -> None:
    world, topic = old
    remote = world.remote(topic)
    shown = planned(world)
    assert (
        f"  create {remote}: 1 partition, replication factor 1 ({topic} has no remote topic on {world.target_alias}; "
        f"records of {topic} older than 1 day would be refused)\n    {BEFORE} = {UNLIMITED}\n"
    ) in shown.replace("      ", "    ")

    world.copy_to_the_end()

    assert world.assert_equal(topic) == 10
    for _ in range(2):
        assert sync_configs(world.place().load()).applied == ()
        assert own_limit(world, topic) == UNLIMITED
    assert f"{world.flow}: no changes" in planned(world)


def test_the_limit_of_a_topic_that_is_there_is_lifted_by_the_sync_of_configs(old: tuple[World, str]) -> None:
    world, topic = old
    remote = world.remote(topic)
    admin = Admin(world.place().load().target)
    admin.client.create_topics([NewTopic(remote, 1, 1)])[remote].result()
    eventually(lambda: remote in admin.metadata().topics)
    shown = planned(world)
    assert f"alter {remote} (records of {topic} older than 1 day would be refused)" in shown
    assert f"set {BEFORE} = {UNLIMITED} (now {DAY_MS})" in shown

    (applied,) = sync_configs(world.place().load()).applied

    assert isinstance(applied.action, AlterConfigs)
    assert applied.error is None
    eventually(lambda: own_limit(world, topic) == UNLIMITED)
    assert sync_configs(world.place().load()).applied == ()
    world.copy_to_the_end()
    assert world.assert_equal(topic) == 10


def test_an_excluded_limit_stays_and_the_doctor_names_the_record(old: tuple[World, str]) -> None:
    world, topic = old
    assert timestamps(world)["status"] == "ok"
    world.write_settings(**{"config.properties.exclude": r"message\\.timestamp\\..*"})
    world.discover()

    assert sync_configs(world.place().load()).applied == ()
    assert own_limit(world, topic) is None
    found = timestamps(world)
    assert found["status"] == "failed"
    assert found["text"].startswith(f"{topic} has a record 3 days old, which {world.remote(topic)} refuses")


def test_a_limit_that_was_set_by_hand_is_lifted_too(old: tuple[World, str]) -> None:
    world, topic = old
    world.discover()
    remote, admin = world.remote(topic), Admin(world.place().load().target)
    assert alter_topic_configs(admin, {remote: [ConfigChange(BEFORE, "3600000")]}) == {remote: None}
    eventually(lambda: own_limit(world, topic) == "3600000")

    sync_configs(world.place().load())

    eventually(lambda: own_limit(world, topic) == UNLIMITED)


def timestamps(world: World) -> dict[str, str]:
    """The doctor's finding about timestamps."""
    (findings,) = json.loads(CliRunner().invoke(doctor, [str(world.file), "--json"]).stdout)["flows"].values()
    (found,) = [one for one in findings if one["check"] == "timestamps"]
    return dict(found)
