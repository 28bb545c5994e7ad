"""Many topics renamed by a pattern: copied, compared, failed over to with groups, and failed back from."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.cli import root
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations import run
from mirrorless.operations.close import close_fence
from mirrorless.operations.refusals import Terms
from mirrorless.settings import load
from tests.support.moving import checkpoint
from tests.support.offsets import commit, committed
from tests.support.world import World, read, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.local.embedded_kafka import EmbeddedCluster

pytestmark = pytest.mark.timeout(400)
GROUPS = 4


def write(cluster: EmbeddedCluster, topics: Sequence[str], what: str) -> None:
    """Write three records to each topic."""
    client = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 50})
    for topic in topics:
        for number in range(3):
            client.produce(topic, f"{what} {number}".encode(), partition=0)
    assert client.flush(60) == 0


def verified(world: World, flow: str) -> None:
    """Assert that `verify` finds no difference."""
    done = CliRunner().invoke(root, ["verify", str(world.file), "--flow", flow, "--with", "python", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["flows"][0]["status"] in (0, "identical"), done.stdout


@pytest.mark.parametrize("number", [12, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_topics_are_copied_failed_over_to_and_failed_back_from(world: World, number: int) -> None:
    word = f"t{time.time_ns()}"
    here = [f"legacy.{word}-{one}" for one in range(number)]
    there = [f"{word}-{one}" for one in range(number)]
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in here], operation_timeout=60).values():
        future.result(120)
    back = f"{world.target_alias}->{world.source_alias}"
    world.write_settings(
        **{
            "replication.policy.class": "IdentityReplicationPolicy",
            "mirrorless.both.directions": "turns",
            "mirrorless.active.cluster": world.source_alias,
            f"{world.flow}.topics": rf"legacy\\.{word}-.*",
            f"{world.flow}.mirrorless.topics.rename": r"legacy\\.(.*) -> $1",
            f"{back}.enabled": "true",
            f"{back}.topics": f"{word}-.*",
            "groups": f"{word}-group-.*",
            "mirrorless.fence.quiet.seconds": "0.2",
        }
    )
    settings = load(str(world.file))
    groups = {f"{word}-group-{one}": here[one::GROUPS] for one in range(GROUPS)}
    write(world.source, here, "a")
    for group, topics in groups.items():
        commit(world.source, group, {(topic, 0): 2 for topic in topics})
    world.copy_to_the_end()
    checkpoint(settings.flow(world.flow))
    verified(world, world.flow)

    over = run.begin(settings, OperationKind.FAILOVER, world.target_alias, Terms())
    assert over.error is None, over
    for group, topics in groups.items():
        assert committed(world.target, group) == {(topic.removeprefix("legacy."), 0): 2 for topic in topics}
    write(world.target, there, "b")
    for group, topics in groups.items():
        commit(world.target, group, {(topic.removeprefix("legacy."), 0): 5 for topic in topics})

    returned = run.begin(settings, OperationKind.FAILBACK, world.source_alias, Terms())
    assert returned.error is None, returned
    for group, topics in groups.items():
        assert committed(world.source, group) == {(topic, 0): 5 for topic in topics}
    close_fence(settings)
    write(world.source, here, "c")
    world.copy_to_the_end()
    checkpoint(settings.flow(world.flow))
    verified(world, world.flow)
    expected = [f"{what} {one}".encode() for what in "abc" for one in range(3)]
    for topic in (here[0], here[-1]):
        assert values(read(world.source, topic)[0]) == expected
        assert values(read(world.target, topic.removeprefix("legacy."))[0]) == expected
